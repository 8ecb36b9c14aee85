"""Run the guarded chain once, as a call that `runtime` makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import Runnable, RunnableConfig

from demur.errors import DemurError
from demur.guard.capture import Capture
from demur.guard.inside import as_context, inside
from demur.guard.widening import Widening, while_widening
from demur.runtime import NO_STREAM, CallPolicy, Outcome, within_scope

_INTERRUPTED = (
    "a graph inside the guard was interrupted, and a guard keeps nothing from which it could be "
    "resumed: guard the agent from the inside with HallucinationMiddleware of langchain-demur, or "
    "interrupt in a node outside of the guard"
)


@dataclass(frozen=True)
class ChainCall:
    """Run the guarded chain once. The value of the outcome is the chain's output.

    This is the only call that raises the errors of what it runs, so that the guard does not come
    between a chain and its caller's error handling.
    """

    chain: Runnable[Any, Any]
    input: Any
    kwargs: Mapping[str, Any]
    number: int
    """The number of the attempt, from 1."""
    widening: Widening
    """The queries that the chain's widened retrievers add to their own. It also notes which of
    these retrievers were asked."""
    capture: Capture = field(default_factory=Capture)
    """A record of what the chain retrieved and spent, complete when the run is over."""
    stage: str = "chain"

    def at_once(self, policy: CallPolicy | None) -> int:
        """Return 1, since a guarded call runs its chain once at a time."""
        return 1

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[Any]:
        """Run the chain in this thread."""
        with self.running(config) as inner:
            return Outcome(self.chain.invoke(self.input, inner, **self.kwargs))

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[Any]:
        """Run the chain in the running loop."""
        with self.running(config) as inner:
            return Outcome(await self.chain.ainvoke(self.input, inner, **self.kwargs))

    @contextmanager
    def running(self, config: RunnableConfig) -> Iterator[RunnableConfig]:
        """Yield the config for the chain's run, made from the guarded call's config.

        Raises:
            DemurError: A graph inside the chain was interrupted.
        """
        inner = inside(config)
        manager = inner["callbacks"]
        assert isinstance(manager, BaseCallbackManager)  # a run's children have one
        manager.add_handler(self.capture)
        manager.add_tags([f"attempt:{self.number}"], inherit=False)
        # For a client's own handlers that stream, which cannot be recognised by their class.
        inner["tags"] = [*inner.get("tags", []), NO_STREAM]
        self.capture.namespace = inner.get("configurable", {}).get("checkpoint_ns")
        # The chain's model calls are not reserved. Their usage is counted when the run is over.
        with within_scope(None), while_widening(self.widening), as_context(inner):
            try:
                yield inner
            except Exception as error:
                if self.capture.is_interrupt_inside(error):
                    raise DemurError(_INTERRUPTED) from None
                raise
