"""What demur's three evaluators have in common as evaluators of LlamaIndex's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from langchain_core.documents import Document
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import AGENT_CHAT_RESPONSE_TYPE
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType

from demur import FEWL, DemurError, Evaluation, RefChecker, ReverseValidation, Sample
from llama_index.evaluation.demur._metering import while_judging
from llama_index.evaluation.demur._nodes import as_documents
from llama_index.evaluation.demur._prompts import as_prompt, as_template
from llama_index.evaluation.demur._reply import Reply, read
from llama_index.evaluation.demur._result import evidence_of

Core = TypeVar("Core", bound="FEWL | ReverseValidation | RefChecker")
_Response: TypeAlias = RESPONSE_TYPE | AGENT_CHAT_RESPONSE_TYPE


class HallucinationResult(EvaluationResult):
    """What an evaluator of demur's found, as LlamaIndex has it, and all of it."""

    evaluation: Evaluation
    """The whole finding: claims with their evidence, usage, fingerprints, every number."""
    sample: Sample
    """What was judged. Of a response, the contexts are its source nodes."""

    @property
    def evidence(self) -> list[dict[str, Any]]:
        """The passages that decided about claims, with their places in nodes: see `evidence_of`."""
        return evidence_of([self.evaluation], self.sample.contexts)


class HallucinationEvaluator(BaseEvaluator, Generic[Core]):
    """Base of demur's evaluators for LlamaIndex: they evaluate by `evaluator`, one of demur's.

    A result's `feedback` is the evaluation's explanation. Where nothing could be decided
    (`evaluation.undetermined`), `invalid_result` is True, `invalid_reason` says why, and `score`
    and `passing` are None. Where the answer states nothing to check, or the evaluator has no
    threshold, `passing` is None and the result is valid.

    Many of LlamaIndex's LLMs have a temperature above 0 by default: with 0 an answer is judged
    alike each time, as far as the model can.
    """

    # Variables that templates may have, though our own prompt has not.
    _further: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, evaluator: Core) -> None:
        self._evaluator = evaluator

    @property
    def evaluator(self) -> Core:
        """A Runnable from `Sample` to `Evaluation`; with other prompts there is another one."""
        return self._evaluator

    @property
    def fingerprints(self) -> dict[str, str]:
        """What scores depend on, in texts: those of other ones cannot be compared with them."""
        return self._evaluator.fingerprints

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
        """Evaluate an answer in this thread, also where an event loop runs in it.

        Args:
            query: What was asked.
            response: The answer.
            contexts: What the answer was given from.
            reference: A text known to be right, such as a gold answer.
            metadata: Of the sample, such as "entity" for Reverse Validation.
            sleep_time_in_seconds: How long to wait first.
            **kwargs: Not used: what one `BatchEvalRunner` gives its other evaluators.

        Raises:
            ValueError: There is no response; or the contexts are no list of texts.
            TypeError: The query, the response or the reference is no text.
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
        """As `evaluate`, natively asynchronous."""
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
        """Evaluate an engine's response, held against its source nodes as the model was shown them.

        Args:
            query: What was asked.
            response: Of a query engine or of a chat engine. One that streams is read to its end;
                a query engine's keeps the text, a chat engine's cannot be read again.
            reference: As `evaluate` has it.
            metadata: As `evaluate` has it.
            sleep_time_in_seconds: As `evaluate` has it.
            **kwargs: Not used.

        Raises:
            ValueError: There is no response.
            TypeError: It is a text, or the query or the reference is none.
            DemurError: It is none of LlamaIndex's; or an asynchronous stream, for
                `aevaluate_response`.
        """
        reply = _read(response)
        if isinstance(response, AsyncStreamingResponse) and reply.streams:
            raise DemurError(
                "an AsyncStreamingResponse cannot be read here: aevaluate_response can"
            )
        # LlamaIndex's way to read it keeps the text, so that it can be shown later too.
        if isinstance(response, StreamingResponse):
            reply = read(response.get_response())
        text = "".join(reply.pieces())
        sample = _sample(query, text, as_documents(reply.nodes), reference, metadata)
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
        """As `evaluate_response`, natively asynchronous."""
        reply = _read(response)
        if isinstance(response, StreamingResponse):
            reply = read(await asyncio.to_thread(response.get_response))
        elif isinstance(response, AsyncStreamingResponse):
            reply = read(await response.get_response())
        text = "".join([piece async for piece in reply.apieces()])
        sample = _sample(query, text, as_documents(reply.nodes), reference, metadata)
        await asyncio.sleep(sleep_time_in_seconds)
        return await self._ajudge(sample)

    def _judge(self, sample: Sample) -> HallucinationResult:
        with while_judging():
            return _result(self._evaluator.invoke(sample), sample)

    async def _ajudge(self, sample: Sample) -> HallucinationResult:
        with while_judging():
            return _result(await self._evaluator.ainvoke(sample), sample)

    def _get_prompts(self) -> PromptDictType:
        prompts = self._evaluator.prompts
        return {field.name: as_template(getattr(prompts, field.name)) for field in fields(prompts)}

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _update_prompts(self, prompts_dict: Mapping[str, BasePromptTemplate]) -> None:
        now: Any = self._evaluator.prompts  # a dataclass of prompts
        ours = type(now)()
        names = [field.name for field in fields(now)]
        unknown = [name for name in prompts_dict if name not in names]
        if unknown:
            raise ValueError(
                f"unknown prompts {', '.join(map(repr, unknown))}: expected some of "
                f"{', '.join(map(repr, names))}"
            )
        updated = {
            name: as_prompt(name, template, getattr(ours, name), getattr(now, name), self._further)
            for name, template in prompts_dict.items()
        }
        prompts = replace(now, **updated)
        if prompts != now:
            copied: Any = self._evaluator.model_copy(update={"prompts": prompts})
            self._evaluator = copied


def _sample(
    query: str | None,
    response: str | None,
    contexts: Sequence[str | Document] | None,
    reference: str | None,
    metadata: Mapping[str, Any] | None,
) -> Sample:
    if response is None:
        raise ValueError("there is no response to evaluate: pass response=...")
    # In the names of LlamaIndex, before demur complains in its own.
    for name, text in (("query", query), ("response", response), ("reference", reference)):
        if not (text is None or isinstance(text, str)):
            whole = ": evaluate_response takes an engine's" if name == "response" else ""
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
        raise TypeError("response: expected an engine's response, got str: evaluate takes texts")
    return read(response)


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
