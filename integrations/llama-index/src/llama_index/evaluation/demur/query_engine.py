"""GuardedQueryEngine: a query engine whose answers are checked before anyone reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import InitVar, dataclass, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle

from demur import DemurError
from demur.guard import Budget, Cite, OnError, OnFail
from demur.schema import OnAbstain
from demur.shapes import NoSuchForm, find_answer
from llama_index.evaluation.demur._asking import (
    Ask,
    Asks,
    Call,
    Opened,
    retry_text,
    sources_of,
)
from llama_index.evaluation.demur._guarding import (
    Answer,
    End,
    Guarding,
    StreamingMode,
)
from llama_index.evaluation.demur._nodes import KEY, as_documents
from llama_index.evaluation.demur._reply import Reply, changed, read
from llama_index.evaluation.demur._result import GuardResult
from llama_index.evaluation.demur._runnables import EvaluatorLike


class GuardedQueryEngine(BaseQueryEngine):
    """Check every answer of a query engine, and recover when it fails.

    It is asked as the engine is, and returns what the engine returns: a response whose metadata
    holds a `GuardResult` under "demur". The contexts of an answer are the response's source nodes,
    as LlamaIndex shows them to a model.

    An answer that fails is answered again by the engine itself: from the nodes that it had and
    those that its retriever finds for the claims that failed (`engine.retrieve` and
    `engine.synthesize`), told what was wrong. An engine that has not got these methods is queried
    again, with what was wrong after the question; its retriever still searches for the question.
    Where no answer passes, the response is a refusal.

    Of an engine that streams, the response is a stream, which is checked as it is read; its
    metadata is there when it has ended. A structured answer leaves a stream as JSON, when all of it
    is there.

    Engines of engines count what the engines inside have said among their source nodes
    (SubQuestionQueryEngine, MultiStepQueryEngine): an answer that repeats it has support in it.
    Guard the engines inside, or those too.

    It can be pickled where the engine can, and the evaluators and recoveries that it was given.

    Examples:
        >>> guarded = GuardedQueryEngine(index.as_query_engine(), RefCheckerEvaluator())
        >>> response = guarded.query("How tall is the tower?")
        >>> response.metadata["demur"]["outcome"]

    Args:
        query_engine: Any query engine.
        evaluators: At least one: ours, other evaluators of LlamaIndex, or demur's own. All are run
            on every answer, side by side.
        on_fail: What to do about an answer that fails, as `demur.Guard` takes it, like what is not
            named here; with LLMs and retrievers of LlamaIndex too: `Repair(llm)`,
            `Retrieve(index.as_retriever())`. The `tell` of a `Regenerate` makes of the query and
            the `Feedback` the query that the engine is asked next; without one, the engine answers
            again as told above. None: what fails for want of support is searched for by the
            engine's own retriever.
        on_pass: What is done to an answer that passes. `Cite()`: each supported sentence has the
            number of the node that it rests on, [1] for `response.source_nodes[0]`. A node that is
            cited says in its metadata, under "demur", what is quoted from it. The result has the
            `citations`. `Cite(form)`: "footnotes" or "links" in place of numbers, or "list", which
            leaves the text as it is. None: nothing is done.
        streaming: When the text of a stream leaves. "buffer": when the whole answer was checked;
            "sentence": each sentence when it was, for which every evaluator must judge claims. If
            a later sentence fails, what corrects the answer follows after a blank line, and a
            `ReplaceEvent` says how much of the text before still holds; `get_response()` has the
            answer that does.
        model: In place of `on_fail`: an LLM, a LangChain chat model, or a name for
            `demur.resolve_model`, that answers from the nodes when the engine's answer failed.
        callback_manager: LlamaIndex's; None for the engine's.

    Raises:
        ValueError: There is no evaluator, or one without a threshold; an argument is out of its
            range; `on_fail` and `model` are both given; `on_pass` is `Cite("blocks")`.
        TypeError: Something is no engine, no evaluator, no LLM, no retriever, or no recovery.
    """

    def __init__(
        self,
        query_engine: BaseQueryEngine,
        *evaluators: EvaluatorLike | Sequence[EvaluatorLike],
        on_fail: OnFail = None,
        on_pass: Cite | None = None,
        budget: Budget | None = None,
        on_error: OnError = "closed",
        on_abstain: OnAbstain = "pass",
        streaming: StreamingMode = "buffer",
        model: LLM | BaseChatModel | str | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """See the class."""
        if not isinstance(query_engine, BaseQueryEngine):
            raise TypeError(
                f"expected a LlamaIndex query engine, such as index.as_query_engine(), got "
                f"{type(query_engine).__name__}"
            )
        given = callback_manager or getattr(query_engine, "callback_manager", None)
        super().__init__(given)
        self._query_engine = query_engine
        self._guarding = Guarding(
            _Asks(query_engine),
            evaluators,
            on_fail=on_fail,
            on_pass=on_pass,
            budget=budget,
            on_error=on_error,
            on_abstain=on_abstain,
            streaming=streaming,
            model=model,
        )

    def get_prompts(self) -> PromptDictType:
        """The engine's prompts, under its own names."""
        return self._query_engine.get_prompts()

    def update_prompts(self, prompts_dict: PromptDictType) -> None:
        """Give the engine other prompts."""
        self._query_engine.update_prompts(prompts_dict)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """What the engine retrieves."""
        return self._query_engine.retrieve(query_bundle)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        """Answer, checked.

        Raises:
            AnswerRejected: No answer was let through.
            EvaluatorFailed: An evaluator could not decide, and `on_error` is "raise".
            DemurError: The engine returned no response, or an evaluator gives no verdict.
        """
        ask = _ask(query_bundle)
        answer = self._guarding.answer(ask)
        if not isinstance(answer, Opened):
            return _response(answer)
        end = End.of(answer.reply)
        pieces = self._guarding.stream(ask, answer, end.reached)
        return GuardedStreamingResponse(pieces, end.nodes, end.metadata, end=end)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        ask = _ask(query_bundle)
        answer = await self._guarding.aanswer(ask)
        if not isinstance(answer, Opened):
            return _response(answer)
        end = End.of(answer.reply)
        pieces = self._guarding.astream(ask, answer, end.reached)
        return GuardedAsyncStreamingResponse(pieces, end.nodes, end.metadata, end=end)


@dataclass(frozen=True)
class _Asks(Asks):
    """How a query engine is asked."""

    engine: BaseQueryEngine

    @property
    def retriever(self) -> Runnable[str, Any] | None:
        """The engine's own, if it shows one."""
        if not _overrides(self.engine, "retrieve"):
            return None
        name = f"{type(self.engine).__name__}.retrieve"
        return RunnableLambda(self._retrieve, self._aretrieve, name=name)

    def _retrieve(self, query: str) -> Sequence[Any]:
        return as_documents(self.engine.retrieve(QueryBundle(query)))

    async def _aretrieve(self, query: str) -> Sequence[Any]:
        # No method of every engine; those that have it retrieve in the loop.
        aretrieve = getattr(self.engine, "aretrieve", None)
        if aretrieve is None:
            return await asyncio.to_thread(self._retrieve, query)
        return as_documents(await aretrieve(QueryBundle(query)))

    def ask(self, ask: Ask) -> Reply:
        if self._synthesizes(ask):
            bundle, sources = self._next(ask, shown=False)
            with suppress(NotImplementedError):  # of an engine inside this one
                return read(self.engine.synthesize(bundle, sources))
        bundle, sources = self._next(ask, shown=True)
        return read(self.engine.query(bundle), sources)

    async def aask(self, ask: Ask) -> Reply:
        if self._synthesizes(ask):
            bundle, sources = self._next(ask, shown=False)
            with suppress(NotImplementedError):  # as above
                return read(await self.engine.asynthesize(bundle, sources))
        bundle, sources = self._next(ask, shown=True)
        return read(await self.engine.aquery(bundle), sources)

    def _synthesizes(self, ask: Ask) -> bool:
        """Whether the engine is given the nodes, and does not look for them."""
        again = ask.feedback is not None and ask.tell is None
        return again and _overrides(self.engine, "synthesize", "asynthesize")

    def _next(self, ask: Ask, *, shown: bool) -> tuple[QueryBundle, list[NodeWithScore]]:
        """What to query, which shows the nodes that are known before or not, and those nodes."""
        bundle: QueryBundle = ask.given
        if ask.feedback is None:
            return bundle, []
        if ask.tell is not None:
            return ask.tell(bundle, ask.feedback), []
        sources = sources_of(ask)
        query = retry_text(bundle.query_str, ask.feedback, sources if shown else ())
        return replace(
            bundle, query_str=query, custom_embedding_strs=bundle.embedding_strs
        ), sources


def _overrides(engine: BaseQueryEngine, *methods: str) -> bool:
    """Whether an engine has these, which the base class has only to refuse."""
    return all(
        getattr(type(engine), method) is not getattr(BaseQueryEngine, method) for method in methods
    )


def _ask(bundle: QueryBundle) -> Ask:
    return Ask(bundle.query_str, bundle, Call(may_stream=True))


def _response(answer: Answer) -> RESPONSE_TYPE:
    """The engine's own response where the answer is its; with the result in a copy of it.

    An answer that was repaired or trimmed is of the engine's class of structured answers, if that
    takes its values.
    """
    given: RESPONSE_TYPE = answer.reply.response
    metadata = {**answer.metadata, KEY: GuardResult.of(answer.trace)}
    if answer.unedited and not isinstance(given, (StreamingResponse, AsyncStreamingResponse)):
        as_given = answer.first and answer.verbatim
        nodes = given.source_nodes if as_given else answer.source_nodes
        changes: dict[str, Any] = {"metadata": metadata, "source_nodes": nodes}
        if isinstance(given, Response):
            changes["response"] = answer.text
        copied: RESPONSE_TYPE = changed(given, **changes)
        return copied
    if isinstance(given, PydanticResponse) and answer.trace.outcome in ("recovered", "trimmed"):
        with suppress(NoSuchForm):
            repaired = find_answer(given.response).repaired(answer.said)
            return PydanticResponse(repaired, answer.source_nodes, metadata)
    return Response(answer.text, answer.source_nodes, metadata)


# --- Streams -------------------------------------------------------------------------------------


@dataclass
class GuardedStreamingResponse(StreamingResponse):
    """A stream of text that was checked. Its metadata is complete when it has ended."""

    end: InitVar[End | None] = None

    def __post_init__(self, end: End | None) -> None:
        self._end = end

    def get_response(self) -> Response:
        """The answer that holds at the end, where that is not all that was streamed.

        Raises:
            DemurError: There is none, since the stream has failed or was left before.
        """
        whole = _final(super().get_response(), self._end)
        self.response_txt = whole.response
        return whole

    def __str__(self) -> str:
        return self.get_response().response or "None"


@dataclass
class GuardedAsyncStreamingResponse(AsyncStreamingResponse):
    """As `GuardedStreamingResponse`, natively asynchronous."""

    end: InitVar[End | None] = None

    def __post_init__(self, end: End | None) -> None:
        super().__post_init__()
        self._end = end

    async def get_response(self) -> Response:
        """As that of `GuardedStreamingResponse`."""
        return _final(await super().get_response(), self._end)

    async def _yield_response(self) -> AsyncGenerator[str, None]:
        async with aclosing(super()._yield_response()) as pieces:
            async for piece in pieces:
                yield piece
        if self._end is not None and self._end.text is not None:
            self.response_txt = self._end.text

    async def _async_str(self) -> str:
        return (await self.get_response()).response or "None"


def _final(whole: Response, end: End | None) -> Response:
    if end is None:
        return whole
    if end.text is None:
        raise DemurError(
            "the stream has failed, or was left before its end: no answer holds. Query again"
        )
    return replace(whole, response=end.text)
