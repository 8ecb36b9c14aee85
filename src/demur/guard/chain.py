"""A run of the guarded chain, and of all else inside a guard.

Nobody who streams to a client listens to what runs inside, and nothing keeps it. What the chain
retrieved and spent is heard. langgraph is known by its names only, since demur does not depend on
it.
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
"""What LangChain calls handlers that pass on to a client what they hear: those of `astream_events`,
`astream_log` and `stream_events`, and langgraph's of messages and tools."""

_STREAM = "__pregel_stream"
"""Where langgraph has a graph inside of another one write what it streams."""
_CHECKPOINTER = "__pregel_checkpointer"
"""Where a graph inside of another one finds the checkpointer of that."""


# --- The chain -----------------------------------------------------------------------------------


class Capture(BaseCallbackHandler):
    """Listens to one run of a chain, in whatever threads and tasks the chain makes.

    Of retrievers inside retrievers only the outermost counts: what a compressor or a reranker
    dropped never reached the model. What an evaluator inside the chain retrieved does not count: it
    is not what the answer was given from.
    """

    run_inline = True  # in a chain's own task; it takes microseconds

    def __init__(self) -> None:
        self._covered: set[UUID] = set()
        """Runs whose retrievals do not count, since an enclosing run's do, or a judge made them."""
        self._retrieved: dict[UUID, Sequence[Document]] = {}
        self._started: dict[UUID, float] = {}
        self._usage: dict[UUID, Usage] = {}
        self._reported: list[Usage] = []
        self.instructions: str | None = None
        """What the chain told the chat model in a system message that it asked last."""
        self.refusals: set[str] = set()
        """What guards inside the chain put in the place of answers."""
        self.namespace: str | None = None
        """langgraph's for the node in which the guard runs; None outside of a graph."""
        self._tasks: set[UUID] = set()
        """Runs in graphs inside the chain."""
        self._interrupted = False

    def is_interrupt_inside(self, error: BaseException) -> bool:
        """Whether an exception interrupts the graph around the chain out of a graph inside."""
        return self._interrupted and is_interrupt(error)

    @property
    def documents(self) -> tuple[Document, ...]:
        """What the chain's retrievers returned, in the order they were asked, without repeats."""
        return distinct(d for documents in [*self._retrieved.values()] for d in documents)

    @property
    def usage(self) -> Usage:
        """What the chain's model calls cost, those included that failed or were cut short."""
        # Copies first: a chain that is being streamed writes from another thread.
        usage = {**dict.fromkeys([*self._started], Usage(calls=1)), **dict(self._usage)}
        return sum([*usage.values(), *self._reported], Usage())

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """Note where the run belongs."""
        self._enter(**kwargs)
        namespace = (kwargs.get("metadata") or {}).get("langgraph_checkpoint_ns")
        if namespace not in (None, self.namespace):
            self._tasks.add(kwargs["run_id"])

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """Note that a graph inside the chain was interrupted."""
        if kwargs["run_id"] in self._tasks and is_interrupt(error):
            self._interrupted = True

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """Note where the run belongs."""
        self._enter(**kwargs)

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        """Take a place for the documents, unless an enclosing retriever has one."""
        run_id: UUID = kwargs["run_id"]
        self._enter(**kwargs)
        if run_id not in self._covered:
            self._covered.add(run_id)
            self._retrieved[run_id] = ()

    def on_retriever_end(self, documents: Sequence[Document], **kwargs: Any) -> None:
        """Keep the documents."""
        if kwargs["run_id"] in self._retrieved:
            self._retrieved[kwargs["run_id"]] = documents

    def on_chat_model_start(
        self, serialized: Any, messages: Sequence[Sequence[BaseMessage]], **kwargs: Any
    ) -> None:
        """Begin to count a call, and keep what its system message says."""
        self._started[kwargs["run_id"]] = time.monotonic()
        told = [str(one.text) for one in messages[0] if one.type == "system"] if messages else []
        if JUDGE not in (kwargs.get("tags") or ()):
            self.instructions = "\n".join(told) or None

    def on_llm_start(self, serialized: Any, prompts: Any, **kwargs: Any) -> None:
        """Begin to count a call."""
        self._started[kwargs["run_id"]] = time.monotonic()

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Count a call and its tokens."""
        generations = [generation for several in response.generations for generation in several]
        first = generations[0] if generations else None
        usage = self._call(kwargs["run_id"])
        if isinstance(first, ChatGeneration):
            usage = reported_usage(first.message, usage)
        self._usage[kwargs["run_id"]] = usage

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """Count a call that failed."""
        self._usage[kwargs["run_id"]] = self._call(kwargs["run_id"])

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """Keep the refusal of a guard inside the chain, and what the chain itself says it cost."""
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
    """One run of the guarded chain. Its outcome's value is what the chain returned.

    The one call that raises: a guard does not come between a chain and its caller's error handling.
    """

    chain: Runnable[Any, Any]
    input: Any
    kwargs: Mapping[str, Any]
    number: int
    """Which attempt it is, from 1."""
    widening: Widening
    """Knows what its retrievers are to search for, and whether there are any that would."""
    capture: Capture = field(default_factory=Capture)
    """Knows, when it is over, what the chain retrieved and spent."""
    stage: str = "chain"

    def at_once(self, policy: CallPolicy | None) -> int:
        """There is one at a time."""
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
        """While the chain runs: its config, out of the guarded call's.

        Raises:
            DemurError: A graph inside the chain was interrupted.
        """
        inner = inside(config)
        manager = inner["callbacks"]
        assert isinstance(manager, BaseCallbackManager)  # a run's children have one
        manager.add_handler(self.capture)
        manager.add_tags([f"attempt:{self.number}"], inherit=False)
        # For handlers of a client's own that stream, which nothing but their use tells.
        inner["tags"] = [*inner.get("tags", []), NO_STREAM]
        self.capture.namespace = inner.get("configurable", {}).get("checkpoint_ns")
        # Its own calls are not reserved: what they spent is counted when it is over.
        with within_scope(None), while_widening(self.widening), as_context(inner):
            try:
                yield inner
            except Exception as error:
                if self.capture.is_interrupt_inside(error):
                    raise DemurError(_INTERRUPTED) from None
                raise


# --- Inside --------------------------------------------------------------------------------------


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
    scope: Scope | None = None
    """In which it is made; None: in that of whoever makes it."""

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
    # The method is what these classes are for: should they be named anew, it still tells.
    return named or hasattr(handler, "tap_output_iter")


# --- What is refused -----------------------------------------------------------------------------


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
        if _is_graph(runnable) and getattr(runnable, "checkpointer", None) not in (None, False):
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


def refuse_agent(chain: Runnable[Any, Any]) -> None:
    """Refuse a graph whose answer is in its messages, before it is asked anything.

    Raises:
        ValueError: It is one; the message says what to do.
    """
    given = getattr(chain, "output_channels", ())
    if _is_graph(chain) and "messages" in given and not {*ANSWER_KEYS} & {*given}:
        raise ValueError(
            f"{_name(chain)!r} is an agent or a graph, whose answer stands in its messages: guard "
            "an agent from the inside, where its steps are not done again, with "
            "HallucinationMiddleware of langchain-demur; or have the last message judged, which "
            "can be let through or blocked, Guard(agent, ..., "
            "answer=lambda state: state['messages'][-1])"
        )


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


def streams_steps(chain: Runnable[Any, Any]) -> bool:
    """Whether a chain ends in a graph, whose stream is what its nodes did and no answer."""
    while True:
        inner = getattr(chain, "last", None) or getattr(chain, "bound", None)
        if not isinstance(inner, Runnable) or _is_graph(chain):
            return _is_graph(chain)
        chain = inner


def _is_graph(runnable: Any) -> bool:
    return any(base.__name__ == "Pregel" for base in type(runnable).__mro__)


def _name(graph: Any) -> str:
    return str(getattr(graph, "name", None) or type(graph).__name__)
