"""Run the guarded chain, and everything else that runs inside a guard.

Handlers that stream to a client do not hear these runs, and no checkpointer stores them. The guard
hears what the chain retrieves and spends. The module knows LangGraph only by names, since demur
does not depend on it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config

from demur.errors import DemurError
from demur.guard.trace import OUTCOME, USAGE
from demur.guard.widening import Widening, while_widening
from demur.runtime import (
    JUDGE,
    NO_STREAM,
    Call,
    CallPolicy,
    Outcome,
    Scope,
    current_scope,
    is_interrupt,
    reported_usage,
    within_scope,
)
from demur.schema import Usage
from demur.shapes import ANSWER_KEYS, distinct

T_co = TypeVar("T_co", covariant=True)

_INTERRUPTED = (
    "a graph inside the guard was interrupted, and a guard keeps nothing from which it could be "
    "resumed: guard the agent from the inside with HallucinationMiddleware of langchain-demur, or "
    "interrupt in a node outside of the guard"
)
_STREAMING = {"_StreamingCallbackHandler", "_V2StreamingCallbackHandler"}
"""The class names of LangChain's handlers that pass on what they hear to a client: those of
`astream_events`, `astream_log` and `stream_events`, and LangGraph's for messages and tools."""

_STREAM = "__pregel_stream"
"""The key under which LangGraph tells an inner graph where to write what it streams."""
_CHECKPOINTER = "__pregel_checkpointer"
"""The key under which an inner graph finds the checkpointer of the outer graph."""


# --- The chain -----------------------------------------------------------------------------------


class Capture(BaseCallbackHandler):
    """Record what one run of a chain retrieves and spends, in all threads and tasks that it uses.

    Of retrievers inside retrievers, only the outermost counts: the model never saw what a
    compressor or a reranker dropped. Retrievals of an evaluator inside the chain do not count,
    because the answer was not based on them.
    """

    run_inline = True  # in the chain's own task, since a call takes microseconds

    def __init__(self) -> None:
        self._covered: set[UUID] = set()
        """The runs whose retrievals do not count, because an enclosing run's count or a judge made
        them."""
        self._retrieved: dict[UUID, Sequence[Document]] = {}
        self._started: dict[UUID, float] = {}
        self._usage: dict[UUID, Usage] = {}
        self._reported: list[Usage] = []
        self.instructions: str | None = None
        """The system message of the chain's latest call to a chat model; None if that call had
        none."""
        self.refusals: set[str] = set()
        """The refusals that guards inside the chain put in the place of answers."""
        self.namespace: str | None = None
        """LangGraph's namespace for the node in which the guard runs; None outside of a graph."""
        self._tasks: set[UUID] = set()
        """The runs in graphs inside the chain."""
        self._interrupted = False

    def is_interrupt_inside(self, error: BaseException) -> bool:
        """Return whether an exception is an interrupt that comes from a graph inside the chain."""
        return self._interrupted and is_interrupt(error)

    @property
    def documents(self) -> tuple[Document, ...]:
        """Return the documents of the chain's retrievers, in order and without repeats."""
        return distinct(d for documents in [*self._retrieved.values()] for d in documents)

    @property
    def usage(self) -> Usage:
        """Return what the chain's model calls cost, including failed and interrupted calls."""
        # Copy first, because a chain that is being streamed writes from another thread.
        usage = {**dict.fromkeys([*self._started], Usage(calls=1)), **dict(self._usage)}
        return sum([*usage.values(), *self._reported], Usage())

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """Note whether the run's retrievals count, and whether it is in an inner graph."""
        self._enter(**kwargs)
        namespace = (kwargs.get("metadata") or {}).get("langgraph_checkpoint_ns")
        if namespace not in (None, self.namespace):
            self._tasks.add(kwargs["run_id"])

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """Note that a graph inside the chain was interrupted."""
        if kwargs["run_id"] in self._tasks and is_interrupt(error):
            self._interrupted = True

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """Note whether the run's retrievals count."""
        self._enter(**kwargs)

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        """Reserve a place for the documents, unless an enclosing retriever has one."""
        run_id: UUID = kwargs["run_id"]
        self._enter(**kwargs)
        if run_id not in self._covered:
            self._covered.add(run_id)
            self._retrieved[run_id] = ()

    def on_retriever_end(self, documents: Sequence[Document], **kwargs: Any) -> None:
        """Record the documents."""
        if kwargs["run_id"] in self._retrieved:
            self._retrieved[kwargs["run_id"]] = documents

    def on_chat_model_start(
        self, serialized: Any, messages: Sequence[Sequence[BaseMessage]], **kwargs: Any
    ) -> None:
        """Count a model call that begins, and record its system message."""
        self._started[kwargs["run_id"]] = time.monotonic()
        told = [str(one.text) for one in messages[0] if one.type == "system"] if messages else []
        if JUDGE not in (kwargs.get("tags") or ()):
            self.instructions = "\n".join(told) or None

    def on_llm_start(self, serialized: Any, prompts: Any, **kwargs: Any) -> None:
        """Count a model call that begins."""
        self._started[kwargs["run_id"]] = time.monotonic()

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Record the usage of a model call."""
        generations = [generation for several in response.generations for generation in several]
        first = generations[0] if generations else None
        usage = self._call(kwargs["run_id"])
        if isinstance(first, ChatGeneration):
            usage = reported_usage(first.message, usage)
        self._usage[kwargs["run_id"]] = usage

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """Record the usage of a model call that failed."""
        self._usage[kwargs["run_id"]] = self._call(kwargs["run_id"])

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """Record the refusal of a guard inside the chain, or usage that the chain reports."""
        if name == OUTCOME and data.get("refusal") is not None:
            self.refusals.add(data["refusal"])
        elif name == USAGE:
            self._reported.append(Usage.model_validate(data))

    def _enter(
        self,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        **_: Any,
    ) -> None:
        if parent_run_id in self._covered or JUDGE in (tags or ()):
            self._covered.add(run_id)

    def _call(self, run_id: UUID) -> Usage:
        began = self._started.get(run_id)
        return Usage(calls=1, seconds=0.0 if began is None else time.monotonic() - began)


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


# --- Inside --------------------------------------------------------------------------------------


def inside(config: RunnableConfig) -> RunnableConfig:
    """Return the config for what a guard runs, made from the guard's own config."""
    changed: RunnableConfig = {**config}
    manager = config.get("callbacks")
    if isinstance(manager, BaseCallbackManager):
        manager = manager.copy()
        manager.handlers = _not_streaming(manager.handlers)
        manager.inheritable_handlers = _not_streaming(manager.inheritable_handlers)
        changed["callbacks"] = manager
    configurable = {k: v for k, v in config.get("configurable", {}).items() if k != _STREAM}
    # With None, graphs inside use no checkpointer. Without the key, they would use their own.
    changed["configurable"] = {**configurable, _CHECKPOINTER: None}
    return changed


@contextmanager
def as_context(config: RunnableConfig) -> Iterator[None]:
    """Make a config the default for Runnables in the block that are not given one."""
    token = var_child_runnable_config.set(config)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


@dataclass(frozen=True)
class Inside(Generic[T_co]):
    """Make a call of another kind so that handlers which stream to a client do not hear it."""

    call: Call[T_co]
    scope: Scope | None = None
    """The scope of the call; None: the scope of the code that makes it."""

    @property
    def stage(self) -> str:
        """Return the stage of the inner call."""
        return self.call.stage

    def at_once(self, policy: CallPolicy | None) -> int:
        """Return how many calls of the inner kind may run at once."""
        return self.call.at_once(policy)

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        """Make the call in this thread."""
        inner = inside(config)
        with as_context(inner), within_scope(self.scope or current_scope()):
            return self.call.run(inner, policy)

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        """Make the call in the running loop."""
        inner = inside(config)
        with as_context(inner), within_scope(self.scope or current_scope()):
            return await self.call.arun(inner, policy)


def _not_streaming(handlers: Iterable[BaseCallbackHandler]) -> list[BaseCallbackHandler]:
    return [handler for handler in handlers if not _streams(handler)]


def _streams(handler: BaseCallbackHandler) -> bool:
    named = any(base.__name__ in _STREAMING for base in type(handler).__mro__)
    # The method defines these classes, and recognises them even if they are renamed.
    return named or hasattr(handler, "tap_output_iter")


# --- Chains that a guard refuses -----------------------------------------------------------------


def refuse_memory(chain: Any) -> None:
    """Refuse a chain with a part that would remember answers which the guard rejects.

    Args:
        chain: A Runnable or a function. The check sees the Runnables that a function refers to by
            name.

    Raises:
        ValueError: A part of the chain keeps a memory; the message says what to do.
    """
    seen: set[int] = set()
    waiting = [*_runnables([chain])]
    while waiting:
        runnable = waiting.pop()
        if id(runnable) in seen:
            continue
        seen.add(id(runnable))
        names = {base.__name__ for base in type(runnable).__mro__}
        if _is_graph(runnable) and getattr(runnable, "checkpointer", None) not in (None, False):
            raise ValueError(
                f"the graph {_name(runnable)!r} inside the guard has a checkpointer of its own, "
                "which would keep the answers that the guard rejects: compile it without a "
                "checkpointer (give that to the graph around the guard), or, if it is an agent, "
                "guard it from the inside with HallucinationMiddleware of langchain-demur"
            )
        if "RunnableWithMessageHistory" in names:
            raise ValueError(
                "the message history inside the guard would keep the answers that the guard "
                "rejects: put it around the guard, RunnableWithMessageHistory(Guard(...), ...)"
            )
        waiting += _runnables(vars(runnable).values())
        if isinstance(runnable, RunnableLambda):
            waiting += runnable.deps


def refuse_agent(chain: Runnable[Any, Any]) -> None:
    """Refuse an agent or a graph whose answer is in its messages, before it is asked anything.

    Raises:
        ValueError: The chain is such a graph; the message says what to do.
    """
    given = getattr(chain, "output_channels", ())
    if _is_graph(chain) and "messages" in given and not {*ANSWER_KEYS} & {*given}:
        raise ValueError(
            f"{_name(chain)!r} is an agent or a graph, whose answer stands in its messages: guard "
            "an agent from the inside, where its steps are not repeated, with "
            "HallucinationMiddleware of langchain-demur; or have only its last message judged, "
            "then let through or blocked, with Guard(agent, ..., "
            "answer=lambda state: state['messages'][-1])"
        )


def _runnables(values: Iterable[Any]) -> Iterator[Runnable[Any, Any]]:
    """Yield the Runnables among values, also in lists, in mappings and in a graph's nodes."""
    for value in values:
        bound = value if isinstance(value, Runnable) else getattr(value, "bound", None)
        if isinstance(bound, Runnable):
            yield bound
        elif isinstance(value, Mapping):
            yield from _runnables(value.values())
        elif isinstance(value, (list, tuple)):
            yield from _runnables(value)


def streams_steps(chain: Runnable[Any, Any]) -> bool:
    """Return whether a chain ends in a graph, whose stream is steps of nodes and not an answer."""
    while True:
        inner = getattr(chain, "last", None) or getattr(chain, "bound", None)
        if not isinstance(inner, Runnable) or _is_graph(chain):
            return _is_graph(chain)
        chain = inner


def _is_graph(runnable: Any) -> bool:
    return any(base.__name__ == "Pregel" for base in type(runnable).__mro__)


def _name(graph: Any) -> str:
    return str(getattr(graph, "name", None) or type(graph).__name__)
