"""Put demur's guard around an engine, for both guarded engines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs, var_child_runnable_config
from llama_index.core.instrumentation.span import active_span_id
from llama_index_instrumentation import get_dispatcher

from demur import Guard
from demur.guard import (
    DECISION,
    EVALUATION,
    OUTCOME,
    REPLACE,
    Again,
    Cite,
    Feedback,
    OnFail,
    Regenerate,
    Repair,
    Retrieve,
    Strip,
    Trace,
    make_policy,
)
from llama_index.evaluation.demur._answer import Answer
from llama_index.evaluation.demur._asking import Ask, AskedEngine, Asks, Call, Opened
from llama_index.evaluation.demur._llm import as_chat_model
from llama_index.evaluation.demur._nodes import KEY, as_retriever
from llama_index.evaluation.demur._runnables import EvaluatorLike, adapted
from llama_index.evaluation.demur.events import (
    DecisionEvent,
    EvaluationEvent,
    OutcomeEvent,
    ReplaceEvent,
)

_dispatcher = get_dispatcher(__name__)


class Guarding:
    """Put a guard around an engine. It can be pickled if the engine and the arguments can."""

    def __init__(
        self,
        asks: Asks,
        evaluators: Sequence[EvaluatorLike | Sequence[EvaluatorLike]],
        *,
        on_fail: OnFail,
        on_pass: Cite | None,
        model: Any,
        conversation: Callable[[Ask], Any] | None = None,
        **options: Any,
    ) -> None:
        """Make a guard around an engine.

        Args:
            asks: How the engine is asked.
            evaluators: As `GuardedQueryEngine` takes them.
            on_fail: As `GuardedQueryEngine` takes it.
            on_pass: As `GuardedQueryEngine` takes it.
            model: As `GuardedQueryEngine` takes it.
            conversation: A function that returns the messages that support an answer too. None: no
                messages do.
            **options: The arguments that `demur.Guard` takes in the same way.

        Raises:
            ValueError: The form of `on_pass` is not for LlamaIndex.
        """
        if isinstance(on_pass, Cite) and on_pass.form == "blocks":
            raise ValueError(
                "on_pass=Cite('blocks') is for LangChain's messages, but a response of LlamaIndex "
                "holds a text: choose Cite('numbers'), Cite('footnotes') or Cite('links') for "
                "marks in the text, or Cite('list') for none; with each of them, "
                f"response.metadata[{KEY!r}]['citations'] has the citations"
            )
        given = {"on_fail": on_fail, "on_pass": on_pass, "model": model, **options}
        self._made = partial(Guarding, asks, evaluators, conversation=conversation, **given)
        self._guard: Guard[Ask, dict[str, Any]] = _EngineGuard(
            AskedEngine(asks),  # type: ignore[arg-type, call-arg]  # mypy's plugin sees no __init__
            *map(adapted, evaluators),
            on_fail=make_policy(on_fail, model, adapt=_asking_again, retriever=asks.retriever),
            on_pass=on_pass,
            question=attrgetter("question"),
            answer="answer",
            conversation=conversation or False,
            **options,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _called, (self._made,)  # as an argument, so that a deep copy copies the engine

    def answer(self, ask: Ask) -> Answer | Opened:
        """Return the checked answer, or the stream that the engine opened, for `stream` to read."""
        telling = Telling()
        output = self._guard.invoke(ask, telling.config)
        telling.take(output)
        return output.get("opened") or telling.answer

    async def aanswer(self, ask: Ask) -> Answer | Opened:
        """Do the same as `answer`, natively asynchronous."""
        telling = Telling()
        output = await self._guard.ainvoke(ask, telling.config)
        telling.take(output)
        return output.get("opened") or telling.answer

    def stream(
        self, ask: Ask, opened: Opened, done: Callable[[Answer], None]
    ) -> Generator[str, None, None]:
        """Read a stream that the engine has opened, and yield the text that was checked.

        Args:
            ask: What the engine was asked.
            opened: The stream.
            done: Called with the answer, before the stream ends.
        """
        telling = Telling()  # made here, because it notes the span of the caller

        def read() -> Generator[str, None, None]:
            for chunk in self._guard.stream(_taking_up(ask, opened), telling.config):
                if piece := telling.take(chunk):
                    yield piece
            done(telling.answer)

        return read()

    def astream(
        self, ask: Ask, opened: Opened, done: Callable[[Answer], None]
    ) -> AsyncGenerator[str, None]:
        """Do the same as `stream`, natively asynchronous."""
        telling = Telling()

        async def read() -> AsyncGenerator[str, None]:
            chunks = self._guard.astream(_taking_up(ask, opened), telling.config)
            async with aclosing(chunks):  # type: ignore[type-var]  # it is a generator
                async for chunk in chunks:
                    if piece := telling.take(chunk):
                        yield piece
            done(telling.answer)

        return read()


def _called(make: Callable[[], Guarding]) -> Guarding:
    return make()


class _EngineGuard(Guard[Ask, dict[str, Any]]):
    """Run a guard that ends without an error if the engine opens a stream."""

    def _output(
        self, input: Ask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        try:
            return super()._output(input, config, **kwargs)
        except Opened as opened:
            return {"opened": opened}

    async def _aoutput(
        self, input: Ask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        try:
            return await super()._aoutput(input, config, **kwargs)
        except Opened as opened:
            return {"opened": opened}


def adapted_recovery(recovery: Again) -> Again:
    """Return a recovery with demur's forms of LlamaIndex's LLMs and retrievers."""
    if isinstance(recovery, Strip) and recovery.model is None:
        return recovery  # `Strip()` without a model rewords nothing
    if isinstance(recovery, (Repair, Strip)):
        return replace(recovery, model=as_chat_model(recovery.model))
    if isinstance(recovery, Retrieve):
        return replace(recovery, retriever=as_retriever(recovery.retriever))
    return recovery


def _asking_again(recovery: Again) -> Again:
    """Return a recovery as `adapted_recovery` does, or one that asks the engine again."""
    if not isinstance(recovery, Regenerate):
        return adapted_recovery(recovery)
    tell = recovery.tell

    def again(ask: Ask, feedback: Feedback) -> Ask:
        return Ask(ask.question, ask.given, ask.call, feedback, tell)

    return replace(recovery, tell=again)


def _taking_up(ask: Ask, opened: Opened) -> Ask:
    """Return an ask that reads the engine's open stream, instead of asking the engine again."""
    call = Call(opened=opened, nodes=opened.reply.nodes)
    return replace(ask, call=call)


# --- Events -------------------------------------------------------------------------------------


class Telling(BaseCallbackHandler):
    """Listen to the guard of one call, and report to LlamaIndex's dispatcher."""

    run_inline = True  # run in the call's own task, because it takes only microseconds

    def __init__(self) -> None:
        self._text = ""
        """The streamed text, as far as it still holds."""
        self._reply: Any = None
        self._run_id = uuid4()
        self._span_id = active_span_id.get()
        self._outcome: Mapping[str, Any] = {}
        self._trace: Trace | None = None

    @property
    def config(self) -> RunnableConfig:
        """Return the guard's config: the config of the current context, with this listener."""
        mine = RunnableConfig(callbacks=[self], run_id=self._run_id, run_name="demur:guard")
        return merge_configs(var_child_runnable_config.get(), mine)

    def take(self, chunk: Mapping[str, Any]) -> str:
        """Take in a chunk of the guard's output, and return the piece of text in it."""
        self._reply = chunk.get("reply", self._reply)
        piece = str(chunk.get("answer", ""))
        self._text += piece
        return piece

    @property
    def trace(self) -> Trace:
        """Return the trace of the call, which must have ended."""
        assert self._trace is not None  # the guard reports it before it returns
        return self._trace

    @property
    def answer(self) -> Answer:
        """Return the answer of the call, which must have ended."""
        return Answer(self._text, self._reply, self.trace)

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if run_id != self._run_id:
            return  # the event is from a guard inside the engine
        if name == OUTCOME:
            self._outcome = data
        elif name == REPLACE:
            self._text = self._text[: data["keep"]]
        if name in _EVENTS:
            _dispatcher.event(_EVENTS[name](span_id=self._span_id, **data))

    def on_guard_end(self, trace: Trace, *, run_id: UUID) -> None:
        if run_id == self._run_id:
            self._trace = trace
            _dispatcher.event(OutcomeEvent(trace, span_id=self._span_id, **self._outcome))


_EVENTS = {EVALUATION: EvaluationEvent, DECISION: DecisionEvent, REPLACE: ReplaceEvent}
