"""Provide demur's evaluators as LlamaIndex evaluators."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from llama_index.core.agent.workflow import AgentOutput
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import AGENT_CHAT_RESPONSE_TYPE
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType

from demur import CallPolicy, DemurError, Evaluation, RefChecker, Sample, Threshold
from demur.evaluators import EvaluatorLike, RefCheckerPrompts, as_evaluator
from llama_index.evaluation.demur._calls import contexts_of
from llama_index.evaluation.demur._llm import as_chat_model
from llama_index.evaluation.demur._metering import while_judging
from llama_index.evaluation.demur._nodes import as_documents, as_retriever
from llama_index.evaluation.demur._reply import Reply, read
from llama_index.evaluation.demur._result import evidence_of

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

_Response: TypeAlias = RESPONSE_TYPE | AGENT_CHAT_RESPONSE_TYPE | AgentOutput
_PROMPTS = RefCheckerPrompts()


class HallucinationResult(EvaluationResult):
    """Hold an evaluation by demur, as a LlamaIndex result with all of its details."""

    evaluation: Evaluation
    """The whole evaluation: claims with their evidence, usage, fingerprints and all figures."""
    sample: Sample
    """The sample that was judged. For a response, the contexts are its source nodes."""

    @property
    def evidence(self) -> list[dict[str, Any]]:
        """Return the passages that decided about claims, as `evidence_of` describes them."""
        return evidence_of([self.evaluation], self.sample.contexts)


class HallucinationEvaluator(BaseEvaluator):
    """Evaluate answers in LlamaIndex with any evaluator of demur.

    The `feedback` of a result is the evaluation's explanation. If nothing could be decided
    (`evaluation.undetermined`), `invalid_result` is True, `invalid_reason` says why, and `score`
    and `passing` are None. If the answer states nothing to check, or the evaluator has no
    threshold, `passing` is None and the result is valid.

    Many of LlamaIndex's LLMs have a default temperature above 0. Set it to 0 to have an answer
    judged the same each time, as far as the model allows.

    Examples:
        >>> evaluator = HallucinationEvaluator(ReverseValidation(as_chat_model(llm)))
        >>> BatchEvalRunner({"reverse validation": evaluator})

    Args:
        evaluator: An evaluator, or anything else that `demur.evaluators.as_evaluator` takes.

    Raises:
        TypeError: `evaluator` is none of these.
    """

    def __init__(self, evaluator: EvaluatorLike) -> None:
        """Make the evaluator; the class describes the argument."""
        self._evaluator = as_evaluator(evaluator)

    @property
    def evaluator(self) -> Runnable[Any, Evaluation]:
        """Return demur's evaluator, a Runnable from `Sample` to `Evaluation`."""
        return self._evaluator

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return what the scores depend on beside the sample, as texts by name.

        Scores with other fingerprints cannot be compared. A function has none.
        """
        return getattr(self._evaluator, "fingerprints", {})

    def evaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        *,
        reference: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        sleep_time_in_seconds: float = 0,
        **kwargs: Any,
    ) -> HallucinationResult:
        """Evaluate an answer in this thread, even if an event loop runs in it.

        Args:
            query: The question.
            response: The answer.
            contexts: The texts that the answer was given from.
            reference: A text known to be right, such as a gold answer.
            metadata: The metadata of the sample, such as "entity" for Reverse Validation.
            sleep_time_in_seconds: The seconds to wait first.
            **kwargs: Ignored. A `BatchEvalRunner` passes arguments here that are for other
                evaluators.

        Raises:
            ValueError: There is no response, or the contexts are not a list of texts.
            TypeError: The query, the response or the reference is not a text.
        """
        sample = _sample(query, response, contexts, reference, metadata)
        time.sleep(sleep_time_in_seconds)
        return self._judge(sample)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        *,
        reference: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        sleep_time_in_seconds: float = 0,
        **kwargs: Any,
    ) -> HallucinationResult:
        """Do the same as `evaluate`, natively asynchronous."""
        sample = _sample(query, response, contexts, reference, metadata)
        await asyncio.sleep(sleep_time_in_seconds)
        return await self._ajudge(sample)

    def evaluate_response(
        self,
        query: str | None = None,
        response: _Response | None = None,
        *,
        reference: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        sleep_time_in_seconds: float = 0,
        **kwargs: Any,
    ) -> HallucinationResult:
        """Evaluate an engine's response against its source nodes, as the model was shown them.

        The output of an agent is evaluated against what its tools returned in the run, and what it
        says that it did is held against its calls.

        Args:
            query: The question.
            response: A response of a query engine or a chat engine, or the `AgentOutput` of an
                agent's run. A stream is read to its end. The text of a query engine's stream stays
                readable, that of a chat engine's stream does not.
            reference: As in `evaluate`.
            metadata: As in `evaluate`.
            sleep_time_in_seconds: As in `evaluate`.
            **kwargs: Ignored.

        Raises:
            ValueError: There is no response.
            TypeError: The response is a text, or the query or the reference is not a text.
            DemurError: The response is not one of LlamaIndex's, or is an asynchronous stream, which
                `aevaluate_response` reads.
        """
        reply = _read(response)
        if isinstance(response, AsyncStreamingResponse) and reply.streams:
            raise DemurError(
                "an AsyncStreamingResponse cannot be read synchronously: call aevaluate_response"
            )
        # `get_response` keeps the text, so that the response can still be shown later.
        if isinstance(response, StreamingResponse):
            reply = read(response.get_response())
        text = "".join(reply.pieces())
        sample = _sample(query, text, _contexts(reply), reference, metadata)
        time.sleep(sleep_time_in_seconds)
        return self._judge(sample)

    async def aevaluate_response(
        self,
        query: str | None = None,
        response: _Response | None = None,
        *,
        reference: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        sleep_time_in_seconds: float = 0,
        **kwargs: Any,
    ) -> HallucinationResult:
        """Do the same as `evaluate_response`, natively asynchronous."""
        reply = _read(response)
        if isinstance(response, StreamingResponse):
            reply = read(await asyncio.to_thread(response.get_response))
        elif isinstance(response, AsyncStreamingResponse):
            reply = read(await response.get_response())
        text = "".join([piece async for piece in reply.apieces()])
        sample = _sample(query, text, _contexts(reply), reference, metadata)
        await asyncio.sleep(sleep_time_in_seconds)
        return await self._ajudge(sample)

    def _judge(self, sample: Sample) -> HallucinationResult:
        with while_judging():
            return _result(self._evaluator.invoke(sample), sample)

    async def _ajudge(self, sample: Sample) -> HallucinationResult:
        with while_judging():
            return _result(await self._evaluator.ainvoke(sample), sample)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _update_prompts(self, prompts_dict: Mapping[str, BasePromptTemplate]) -> None:
        if prompts_dict:
            raise ValueError("demur's prompts are no templates: give an evaluator its prompts=...")


class RefCheckerEvaluator(HallucinationEvaluator):
    """Split an answer into claims, and label each claim against the contexts (arXiv 2405.14486).

    `score` is the share of the claims that the contexts entail, in [0, 1]. `passing` is whether the
    answer's label is Entailment. With aggregation="strict", the default, every claim must be
    entailed. With "soft", `score` must reach `threshold`, which is 0.8 by default.
    `evaluation.claims` has each claim with its label and its evidence. `demur.RefChecker` describes
    the method.

    Examples:
        >>> evaluator = RefCheckerEvaluator(llm)
        >>> evaluator.evaluate_response(query, query_engine.query(query)).passing

    Args:
        llm: A LlamaIndex LLM, a LangChain chat model, or a name for `demur.resolve_model`. Or
            "small": demur's own judge, which needs no model. None: `Settings.llm`.
        retriever: A retriever of LlamaIndex, or a Runnable from a query to documents. It is asked
            for answers without contexts.

    The other arguments are those of `demur.RefChecker`.

    Raises:
        ValueError, TypeError, DemurError: For the same reasons as in `demur.RefChecker`.
    """

    def __init__(
        self,
        llm: LLM | BaseChatModel | str | None = None,
        *,
        checker: str | CrossEncoder = "auto",
        claims: Literal["auto", "sentences", "triplets"] = "auto",
        aggregation: Literal["strict", "major", "soft"] = "strict",
        threshold: float | Threshold | str | Path | None = "auto",
        known: Sequence[str | Document] = (),
        refusals: Sequence[str | re.Pattern[str]] = (),
        retriever: BaseRetriever | Runnable[str, Any] | None = None,
        prompts: RefCheckerPrompts = _PROMPTS,
        window_tokens: int | None = None,
        max_windows: int | None = None,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes the arguments."""
        super().__init__(
            RefChecker(
                llm if llm == "small" else as_chat_model(llm),
                checker=checker,
                claims=claims,
                aggregation=aggregation,
                threshold=threshold,
                known=known,
                refusals=refusals,
                retriever=None if retriever is None else as_retriever(retriever),
                prompts=prompts,
                window_tokens=window_tokens,
                max_windows=max_windows,
                name=name,
                call_policy=call_policy,
            )
        )


def _sample(
    query: str | None,
    response: str | None,
    contexts: Sequence[str | Document] | None,
    reference: str | None,
    metadata: Mapping[str, Any] | None,
) -> Sample:
    if response is None:
        raise ValueError("there is no response to evaluate: pass response=...")
    # Checked here, so that the error has LlamaIndex's names and not demur's.
    for name, text in (("query", query), ("response", response), ("reference", reference)):
        if not (text is None or isinstance(text, str)):
            whole = ": call evaluate_response for engines' responses" if name == "response" else ""
            raise TypeError(f"{name}: expected text, got {type(text).__name__}{whole}")
    return Sample.model_validate(
        {
            "question": query,
            "answer": response,
            "contexts": contexts,
            "reference": reference,
            "metadata": metadata or {},
        }
    )


def _read(response: _Response | None) -> Reply:
    if response is None:
        raise ValueError("there is no response to evaluate: pass response=...")
    if isinstance(response, str):
        raise TypeError("response: expected an engine's response, got str: call evaluate for texts")
    if isinstance(response, AgentOutput):
        return Reply(response, [], str(response))
    return read(response)


def _contexts(reply: Reply) -> tuple[Document, ...]:
    output = reply.response
    return contexts_of(output) if isinstance(output, AgentOutput) else as_documents(reply.nodes)


def _result(evaluation: Evaluation, sample: Sample) -> HallucinationResult:
    return HallucinationResult(
        query=sample.question,
        contexts=[document.page_content for document in sample.contexts],
        response=sample.answer,
        passing=evaluation.passed,
        score=evaluation.score,
        feedback=evaluation.explanation,
        invalid_result=evaluation.undetermined,
        invalid_reason=evaluation.error,
        evaluation=evaluation,
        sample=sample,
    )


__all__ = ["HallucinationEvaluator", "HallucinationResult", "RefCheckerEvaluator"]
