"""Provide a query engine whose answers are checked before anyone reads them."""

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
from llama_index.core.llms import LLM
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle

from demur import DemurError
from demur.guard import Budget, Cite, OnError, OnFail, Streaming
from demur.schema import OnAbstain
from demur.shapes import NoSuchForm, find_answer
from llama_index.evaluation.demur._answer import Answer, End
from llama_index.evaluation.demur._asking import (
    Ask,
    Asks,
    Call,
    Opened,
    retry_text,
    sources_of,
)
from llama_index.evaluation.demur._guarding import Guarding
from llama_index.evaluation.demur._nodes import as_documents
from llama_index.evaluation.demur._reply import Reply, changed, read
from llama_index.evaluation.demur._runnables import EvaluatorLike


class GuardedQueryEngine(BaseQueryEngine):
    """Check every answer of a query engine, and recover when an answer fails.

    A guarded engine takes the same queries as the engine inside it and returns the same responses.
    The metadata of a response has a `GuardResult` under "demur". The contexts of an answer are the
    response's source nodes, as LlamaIndex shows them to a model.

    If an answer fails, the engine itself answers again, and is told what was wrong. It answers from
    the nodes that it had, and from the nodes that its retriever finds for the failed claims
    (`engine.retrieve` and `engine.synthesize`). An engine without `synthesize` is queried again,
    with the problems and the nodes after the question. Its retriever then still searches for the
    question alone. An engine without `retrieve` gets no further nodes. If no answer passes, the
    response is a refusal.

    If the engine streams, the response is a stream, and the answer is checked while the stream is
    read. The metadata is complete when the stream has ended. A structured answer leaves a stream as
    JSON, in one piece at the end.

    Some engines ask other engines (SubQuestionQueryEngine, MultiStepQueryEngine). The answers of
    the inner engines are among the source nodes, so they support an answer that repeats them. Guard
    the inner engines too, or only them.

    A guarded engine can be pickled if the engine, the evaluators and the recoveries can be pickled.

    Examples:
        >>> guarded = GuardedQueryEngine(index.as_query_engine(), RefCheckerEvaluator())
        >>> response = guarded.query("How tall is the tower?")
        >>> response.metadata["demur"]["outcome"]

    Args:
        query_engine: Any query engine.
        evaluators: One or more evaluators: those of this package, other evaluators of LlamaIndex,
            or demur's own. All of them judge every answer, at the same time.
        on_fail: What to do about an answer that fails. This argument, and those not described here,
            are as `demur.Guard` takes them. Recoveries also take LLMs and retrievers of LlamaIndex:
            `Repair(llm)`, `Retrieve(index.as_retriever())`. The `tell` of a `Regenerate` takes the
            query and the `Feedback`, and returns the engine's next query; without a `tell`, the
            engine answers again as described above. None: the engine's own retriever is asked about
            claims that lack support.
        on_pass: What to do to an answer that passes. With `Cite()`, each supported sentence gets
            the number of the node that supports it: [1] for `response.source_nodes[0]`. The
            metadata of a cited node has the quotes under "demur", and the `GuardResult` has the
            `citations`. `Cite(form)` takes another form: "footnotes", "links", or "list", which
            leaves the text unchanged. None: the answer leaves unchanged.
        streaming: When the text of a stream leaves. "buffer": after the whole answer was checked.
            "sentence": each sentence leaves as soon as it was checked, which needs evaluators that
            all judge claims. If a later sentence fails, the correction follows after a blank line,
            and a `ReplaceEvent` says how much of the text before it still holds. `get_response()`
            returns the answer that holds.
        model: A shorter form of `on_fail`: an LLM, a LangChain chat model, or a name for
            `demur.resolve_model`, that answers from the nodes when the engine's answer failed.

    Raises:
        ValueError: There is no evaluator, or an evaluator has no threshold; an argument is out of
            its range; `on_fail` and `model` are both given; or `on_pass` is `Cite("blocks")`.
        TypeError: A value is not an engine, an evaluator, an LLM, a retriever or a recovery where
            one is expected.
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
        streaming: Streaming = "buffer",
        model: LLM | BaseChatModel | str | None = None,
    ) -> None:
        """Make the guarded engine; the class describes the arguments."""
        if not isinstance(query_engine, BaseQueryEngine):
            raise TypeError(
                f"expected a LlamaIndex query engine, such as index.as_query_engine(), got "
                f"{type(query_engine).__name__}"
            )
        super().__init__(getattr(query_engine, "callback_manager", None))
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
        """Return the engine's prompts, under its own names."""
        return self._query_engine.get_prompts()

    def update_prompts(self, prompts_dict: PromptDictType) -> None:
        """Replace prompts of the engine."""
        self._query_engine.update_prompts(prompts_dict)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return the nodes that the engine retrieves for a query."""
        return self._query_engine.retrieve(query_bundle)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        """Return a checked answer of the engine.

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
    """Ask a query engine."""

    engine: BaseQueryEngine

    @property
    def retriever(self) -> Runnable[str, Any] | None:
        """Return the engine's own retriever, or None if the engine does not show one."""
        if not _overrides(self.engine, "retrieve"):
            return None
        name = f"{type(self.engine).__name__}.retrieve"
        return RunnableLambda(self._retrieve, self._aretrieve, name=name)

    def _retrieve(self, query: str) -> Sequence[Any]:
        return as_documents(self.engine.retrieve(QueryBundle(query)))

    async def _aretrieve(self, query: str) -> Sequence[Any]:
        # Only some engines have `aretrieve`. It retrieves in the running event loop.
        aretrieve = getattr(self.engine, "aretrieve", None)
        if aretrieve is None:
            return await asyncio.to_thread(self._retrieve, query)
        return as_documents(await aretrieve(QueryBundle(query)))

    def ask(self, ask: Ask) -> Reply:
        if self._synthesizes(ask):
            bundle, sources = self._next(ask, shown=False)
            with suppress(NotImplementedError):  # raised by an engine inside this one
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
        """Return whether the engine is to answer from given nodes, without a search."""
        again = ask.feedback is not None and ask.tell is None
        return again and _overrides(self.engine, "synthesize", "asynthesize")

    def _next(self, ask: Ask, *, shown: bool) -> tuple[QueryBundle, list[NodeWithScore]]:
        """Return the query for this attempt, and the nodes that are known from earlier attempts.

        Args:
            ask: What to ask.
            shown: Whether the text of the query shows these nodes.
        """
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
    """Return whether an engine has these methods, which the base class only refuses."""
    return all(
        getattr(type(engine), method) is not getattr(BaseQueryEngine, method) for method in methods
    )


def _ask(bundle: QueryBundle) -> Ask:
    return Ask(bundle.query_str, bundle, Call(may_stream=True))


def _response(answer: Answer) -> RESPONSE_TYPE:
    """Return the response with the answer and its result.

    If the engine gave the answer, it is a copy of the engine's own response. If a structured answer
    was repaired or trimmed, it has the engine's class, unless that class refuses the values.
    """
    given: RESPONSE_TYPE = answer.reply.response
    if answer.unedited and not isinstance(given, (StreamingResponse, AsyncStreamingResponse)):
        as_given = answer.first and answer.verbatim
        nodes = given.source_nodes if as_given else answer.source_nodes
        changes: dict[str, Any] = {"metadata": answer.metadata, "source_nodes": nodes}
        if isinstance(given, Response):
            changes["response"] = answer.text
        copied: RESPONSE_TYPE = changed(given, **changes)
        return copied
    if isinstance(given, PydanticResponse) and answer.trace.outcome in ("recovered", "trimmed"):
        with suppress(NoSuchForm):
            repaired = find_answer(given.response).repaired(answer.said)
            return PydanticResponse(repaired, answer.source_nodes, answer.metadata)
    return Response(answer.text, answer.source_nodes, answer.metadata)


# --- Streams -------------------------------------------------------------------------------------


@dataclass
class GuardedStreamingResponse(StreamingResponse):
    """Stream text that was checked; the metadata is complete when the stream has ended."""

    end: InitVar[End | None] = None

    def __post_init__(self, end: End | None) -> None:
        self._end = end

    def get_response(self) -> Response:
        """Return the answer that holds at the end; it may differ from the text that was streamed.

        Raises:
            DemurError: No answer holds, because the stream failed or was not read to its end.
        """
        whole = _final(super().get_response(), self._end)
        self.response_txt = whole.response
        return whole

    def __str__(self) -> str:
        return self.get_response().response or "None"


@dataclass
class GuardedAsyncStreamingResponse(AsyncStreamingResponse):
    """Do the same as `GuardedStreamingResponse`, natively asynchronous."""

    end: InitVar[End | None] = None

    def __post_init__(self, end: End | None) -> None:
        super().__post_init__()
        self._end = end

    async def get_response(self) -> Response:
        """Do the same as `GuardedStreamingResponse.get_response`."""
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
            "no answer holds, because the stream failed or was not read to its end: query again"
        )
    return replace(whole, response=end.text)
