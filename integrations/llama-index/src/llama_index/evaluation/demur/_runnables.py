"""Adapt evaluators of any kind for demur's guards and handlers."""

from __future__ import annotations

import math
from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult

from demur import Evaluation, Sample, Usage
from demur.evaluators import EvaluatorLike as Accepted
from llama_index.evaluation.demur._metering import Meter, while_judging
from llama_index.evaluation.demur.evaluators import HallucinationEvaluator

EvaluatorLike = BaseEvaluator | Accepted
"""What engines and handlers take as an evaluator."""


def adapted(given: object) -> Any:
    """Return an evaluator, or a list of evaluators, in a form that demur takes.

    Args:
        given: An evaluator of this package; another `BaseEvaluator`, such as LlamaIndex's
            FaithfulnessEvaluator; or anything else, which is returned unchanged for
            `demur.evaluators.as_evaluator` to take or to refuse.
    """
    if isinstance(given, (list, tuple)):
        return [adapted(one) for one in given]
    if isinstance(given, HallucinationEvaluator):
        return given.evaluator
    return _judged_by(given) if isinstance(given, BaseEvaluator) else given


def _judged_by(evaluator: BaseEvaluator) -> Runnable[Sample, Evaluation]:
    name = type(evaluator).__name__

    def judge(sample: Sample) -> Evaluation:
        with while_judging(), Meter() as meter:
            result = evaluator.evaluate(**_arguments(sample))
        return as_evaluation(name, result, meter.usage)

    async def ajudge(sample: Sample) -> Evaluation:
        with while_judging(), Meter() as meter:
            found = await evaluator.aevaluate(**_arguments(sample))
        return as_evaluation(name, found, meter.usage)

    return RunnableLambda(judge, ajudge, name=name)


def _arguments(sample: Sample) -> dict[str, Any]:
    reference = {} if sample.reference is None else {"reference": sample.reference}
    # LlamaIndex's evaluators that need contexts refuse None. Given [], they would decide that
    # nothing supports the answer.
    contexts = [document.page_content for document in sample.contexts] or None
    return {
        "query": sample.question,
        "response": sample.answer,
        "contexts": contexts,
        **reference,
    }


def as_evaluation(name: str, found: EvaluationResult, usage: Usage) -> Evaluation:
    """Return the result of a LlamaIndex evaluator as an evaluation.

    An invalid result becomes undetermined.
    """
    score = found.score
    error: str | None = None
    if found.invalid_result:
        error = found.invalid_reason or f"{name} calls its result invalid, and does not say why"
    elif score is not None and not math.isfinite(score):
        error = f"{name} gave the score {score}, which is no number"
    elif score is None and found.passing is None:
        error = f"{name} gave neither a score nor a decision: {found.feedback or 'no feedback'}"
    if error is not None:
        return Evaluation(name=name, error=error, explanation=error, usage=usage)
    return Evaluation(
        name=name,
        score=score,
        passed=found.passing,
        explanation=found.feedback or "",
        usage=usage,
    )
