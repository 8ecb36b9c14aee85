"""Turn the results of evaluators into a verdict, and into feedback."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pydantic import ValidationError

from demur._system import warn_once_a_minute
from demur.errors import DemurError
from demur.guard.feedback import Feedback
from demur.guard.trace import Attempt, Verdict
from demur.runtime import Outcome
from demur.schema import Evaluation, OnAbstain, Sample, in_words
from demur.shapes import status_of_call

_log = logging.getLogger(__name__)


def as_verdict(name: str, outcome: Outcome[object]) -> Evaluation:
    """Return an evaluator's evaluation, which must be one that a guard can act on.

    Raises:
        DemurError: The evaluator returned another value, or gave no verdict because it has no
            threshold.
    """
    evaluation = as_evaluation(name, outcome)
    if evaluation.finding == "scored":
        raise DemurError(no_verdict(name))
    return evaluation


def as_evaluation(name: str, outcome: Outcome[object]) -> Evaluation:
    """Return an evaluator's evaluation, or an undetermined one if the evaluator raised an error.

    Raises:
        DemurError: The evaluator returned a value that is not an `Evaluation`.
    """
    if outcome.error is not None:
        why = f"it raised {outcome.error}"
        return Evaluation(name=name, error=why, explanation=why, cause=outcome.cause)
    judgement = outcome.value
    if not isinstance(judgement, Evaluation):
        raise DemurError(
            f"{name} returned a {type(judgement).__name__}, expected an Evaluation: an evaluator "
            "is a Runnable from Sample to Evaluation"
        )
    try:
        return Evaluation.model_validate(dict(judgement))  # `model_copy` does not validate
    except ValidationError as error:
        why = f"it returned an invalid evaluation: {in_words(error)}"
        return Evaluation(name=name, error=why, explanation=why)


def warn_of(evaluation: Evaluation, sample: Sample) -> None:
    """Log that an evaluator could not decide, so that an outage does not look like caution.

    The warning is logged at most once a minute for each evaluator and reason. It holds no text of
    an answer and no message of a provider.
    """
    reason = evaluation.cause or "the kind of error is unknown, and its message is in the trace"
    has_sources = any(status_of_call(document) is None for document in sample.contexts)
    found = "" if has_sources else " The guard found no contexts: contexts= says where they are."
    warn_once_a_minute(
        _log,
        f"{evaluation.name}: {reason}",
        "%s could not decide about an answer: %s.%s",
        evaluation.name,
        reason,
        found,
    )


def no_verdict(name: str) -> str:
    """Return the error message about an evaluator that gives scores but no verdict."""
    return (
        f"{name} scores answers but decides nothing (`passed` is None), so a guard cannot act on "
        "it: give it a threshold; for a function or a Runnable, use as_evaluator(function, "
        "threshold=...) of demur.evaluators"
    )


def accepts(evaluation: Evaluation, on_abstain: OnAbstain = "pass") -> bool:
    """Return whether an evaluation lets an answer through.

    It does if the answer passed. If there was nothing to check, `on_abstain` decides.
    """
    finding = evaluation.finding
    return finding == "passed" or (finding == "nothing_to_check" and on_abstain == "pass")


def verdict_of(
    evaluations: Sequence[Evaluation], on_abstain: OnAbstain = "pass", evaluators: int = 1
) -> Verdict:
    """Return the verdict on an answer. A failure weighs most, then an undetermined evaluation.

    Args:
        evaluations: The evaluations of the answer, or those of each of its sentences in turn.
        on_abstain: See `Guard`.
        evaluators: The number of evaluators. Each of them gave one evaluation of the answer or of
            each sentence.
    """
    findings = [evaluation.finding for evaluation in evaluations]
    by_evaluator = (set(findings[at::evaluators]) for at in range(evaluators))
    silent = any(of_evaluator <= {"nothing_to_check"} for of_evaluator in by_evaluator)
    if "failed" in findings or (silent and on_abstain == "fail"):
        return "failed"
    order: tuple[Verdict, ...] = ("undetermined", "scored", "passed")
    return next((finding for finding in order if finding in findings), "nothing_to_check")


def feedback_on(attempt: Attempt, number: int = 1, instruction: str = "") -> Feedback:
    """Return why an attempt was not let through."""
    # An answer that failed without a rejecting evaluation failed because it states nothing.
    rejected = any(evaluation.finding == "failed" for evaluation in attempt.evaluations)
    on_abstain: OnAbstain = "fail" if attempt.verdict == "failed" and not rejected else "pass"
    return Feedback(
        question=attempt.question,
        answer=attempt.answer,
        evaluations=tuple(
            evaluation for evaluation in attempt.evaluations if not accepts(evaluation, on_abstain)
        ),
        instruction=instruction,
        attempt=number,
    )
