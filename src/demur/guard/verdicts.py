"""From what evaluators gave to a verdict, and to what is told of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pydantic import ValidationError

from demur._once_a_minute import warn
from demur.errors import DemurError
from demur.guard.feedback import Feedback
from demur.guard.trace import Attempt, Verdict
from demur.runtime import Outcome
from demur.schema import Evaluation, OnAbstain, Sample

_log = logging.getLogger(__name__)


def as_verdict(name: str, outcome: Outcome[object]) -> Evaluation:
    """What an evaluator gave, which a guard can act on.

    Raises:
        DemurError: It gave something else, or no verdict for want of a threshold.
    """
    evaluation = as_evaluation(name, outcome)
    if evaluation.finding == "scored":
        raise DemurError(no_verdict(name))
    return evaluation


def as_evaluation(name: str, outcome: Outcome[object]) -> Evaluation:
    """What an evaluator gave, or an undetermined evaluation where it raised.

    Raises:
        DemurError: It gave something else.
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
        return Evaluation.model_validate(dict(judgement))  # a copy may hold anything: "false", NaN
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, wrong["loc"]))
        why = f"it gave an evaluation that is none: {where}: {wrong['msg']}"
        return Evaluation(name=name, error=why, explanation=why)


def warn_of(evaluation: Evaluation, sample: Sample) -> None:
    """Log that an evaluator could not decide, so that an outage does not pass for caution.

    It is logged once a minute for each evaluator and reason. No text of an answer is in it, and
    nothing that a provider said.
    """
    reason = evaluation.cause or "it tells no kind of error; its own words are in the trace"
    found = (
        "" if sample.contexts else " The guard found no contexts: contexts= says where they are."
    )
    warn(
        _log,
        f"{evaluation.name}: {reason}",
        "%s could not decide about an answer: %s.%s",
        evaluation.name,
        reason,
        found,
    )


def no_verdict(name: str) -> str:
    """What is wrong with an evaluator that only scores."""
    return (
        f"{name} scores answers but decides nothing (`passed` is None), so a guard cannot act on "
        "it: give it a threshold; to a function or a Runnable with as_evaluator(function, "
        "threshold=...) of demur.evaluators"
    )


def accepts(evaluation: Evaluation, on_abstain: OnAbstain = "pass") -> bool:
    """Whether an evaluation lets an answer through: it passed, or there was nothing to check."""
    finding = evaluation.finding
    return finding == "passed" or (finding == "nothing_to_check" and on_abstain == "pass")


def verdict_of(
    evaluations: Sequence[Evaluation], on_abstain: OnAbstain = "pass", evaluators: int = 1
) -> Verdict:
    """The verdict on an answer. A failure weighs most, then what could not be decided.

    Args:
        evaluations: Of the answer, or of each of its sentences in turn.
        on_abstain: See `Guard`.
        evaluators: How many there are, with an evaluation each of the answer or of a sentence.
    """
    findings = [evaluation.finding for evaluation in evaluations]
    by_evaluator = (set(findings[at::evaluators]) for at in range(evaluators))
    silent = any(of_evaluator <= {"nothing_to_check"} for of_evaluator in by_evaluator)
    if "failed" in findings or (silent and on_abstain == "fail"):
        return "failed"
    order: tuple[Verdict, ...] = ("undetermined", "scored", "passed")
    return next((finding for finding in order if finding in findings), "nothing_to_check")


def feedback_on(attempt: Attempt, number: int = 1, instruction: str = "") -> Feedback:
    """Why an attempt was not let through."""
    # What failed though no evaluation rejects it has failed because it states nothing.
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
