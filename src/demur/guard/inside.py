"""What runs inside a guard: nobody who streams to a client listens to it, and nothing keeps it.

langgraph is known by its names only, since demur does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config

from demur.runtime import Call, CallPolicy, Outcome

T_co = TypeVar("T_co", covariant=True)

_STREAMING = {"_StreamingCallbackHandler", "_V2StreamingCallbackHandler"}
"""What LangChain calls handlers that pass on to a client what they hear: those of `astream_events`,
`astream_log` and `stream_events`, and langgraph's of messages and tools."""

_STREAM = "__pregel_stream"
"""Where langgraph has a graph inside of another one write what it streams."""
_CHECKPOINTER = "__pregel_checkpointer"
"""Where a graph inside of another one finds the checkpointer of that."""


def inside(config: RunnableConfig) -> RunnableConfig:
    """The config for what a guard runs, out of the guard's own."""
    changed: RunnableConfig = {**config}
    manager = config.get("callbacks")
    if isinstance(manager, BaseCallbackManager):
        manager = manager.copy()
        manager.handlers = _not_streaming(manager.handlers)
        manager.inheritable_handlers = _not_streaming(manager.inheritable_handlers)
        changed["callbacks"] = manager
    configurable = {k: v for k, v in config.get("configurable", {}).items() if k != _STREAM}
    # None, and not left out: then graphs inside take up none either, not even one of their own.
    changed["configurable"] = {**configurable, _CHECKPOINTER: None}
    return changed


@contextmanager
def as_context(config: RunnableConfig) -> Iterator[None]:
    """Have what runs in the block take up this config where it is not passed on."""
    token = var_child_runnable_config.set(config)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


@dataclass(frozen=True)
class Inside(Generic[T_co]):
    """A call of another kind, made where nobody listens who streams to a client."""

    call: Call[T_co]

    @property
    def stage(self) -> str:
        """The call's."""
        return self.call.stage

    def at_once(self, policy: CallPolicy | None) -> int:
        """The call's."""
        return self.call.at_once(policy)

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        """Make the call in this thread."""
        inner = inside(config)
        with as_context(inner):
            return self.call.run(inner, policy)

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        """Make the call in the running loop."""
        inner = inside(config)
        with as_context(inner):
            return await self.call.arun(inner, policy)


def refuse_memory(chain: Any) -> None:
    """Refuse a chain in which something is seen that remembers answers which a guard rejects.

    Args:
        chain: A Runnable, or a function. What a function calls is seen as far as it is named in it.

    Raises:
        ValueError: Something remembers; the message says what to do.
    """
    seen: set[int] = set()
    waiting = [*_runnables([chain])]
    while waiting:
        runnable = waiting.pop()
        if id(runnable) in seen:
            continue
        seen.add(id(runnable))
        names = {base.__name__ for base in type(runnable).__mro__}
        if "Pregel" in names and getattr(runnable, "checkpointer", None) not in (None, False):
            raise ValueError(
                f"the graph {_name(runnable)!r} inside the guard has a checkpointer of its own, "
                "which would keep the answers that the guard rejects: compile it without one (give "
                "that to the graph around it), or, if it is an agent, guard it from the inside "
                "with HallucinationMiddleware of langchain-demur"
            )
        if "RunnableWithMessageHistory" in names:
            raise ValueError(
                "the message history inside the guard would keep the answers that the guard "
                "rejects: put it around the guard, RunnableWithMessageHistory(Guard(...), ...)"
            )
        waiting += _runnables(vars(runnable).values())
        if isinstance(runnable, RunnableLambda):
            waiting += runnable.deps


def _runnables(values: Iterable[Any]) -> Iterator[Runnable[Any, Any]]:
    """The Runnables among values, in lists and mappings too, and those of a graph's nodes."""
    for value in values:
        bound = value if isinstance(value, Runnable) else getattr(value, "bound", None)
        if isinstance(bound, Runnable):
            yield bound
        elif isinstance(value, Mapping):
            yield from _runnables(value.values())
        elif isinstance(value, (list, tuple)):
            yield from _runnables(value)


def _name(graph: Any) -> str:
    return str(getattr(graph, "name", None) or type(graph).__name__)


def _not_streaming(handlers: Iterable[BaseCallbackHandler]) -> list[BaseCallbackHandler]:
    return [handler for handler in handlers if not _streams(handler)]


def _streams(handler: BaseCallbackHandler) -> bool:
    named = any(base.__name__ in _STREAMING for base in type(handler).__mro__)
    # The method is what these classes are for: should they be named anew, it still tells.
    return named or hasattr(handler, "tap_output_iter")
