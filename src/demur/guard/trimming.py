"""What fails in an answer, and what is left without it."""

from __future__ import annotations

from collections.abc import Iterable

from demur._json_places import path_of, places
from demur.edits import Remainder, remainder
from demur.guard.trace import Attempt
from demur.schema import Claim, ClaimLabel, Evaluation, Failure


def failing_claims(evaluations: Iterable[Evaluation]) -> list[Claim] | None:
    """The claims of a rejected answer that do not hold, or of which nothing is known.

    Wrong citations count where nothing else fails.

    Returns:
        None where an evaluator rejects the answer for something else.
    """
    rejecting = [e for e in evaluations if e.finding == "failed"]
    rejecting = [e for e in rejecting if e.failure is not Failure.CITATION] or rejecting
    failing: list[Claim] = []
    for evaluation in rejecting:
        wrong = [c for c in evaluation.claims if c.label is not ClaimLabel.ENTAILMENT]
        if not wrong or evaluation.failure is Failure.SELF_CONTRADICTION:
            return None
        failing += wrong
    return failing or None


def remainder_of(attempt: Attempt, rewords: bool) -> Remainder | None:
    """An answer in prose without what fails.

    Args:
        attempt: The one that was rejected.
        rewords: Whether what went on from a sentence that is gone will be put in other words; else
            it goes too.

    Returns:
        None where it cannot be taken out, or what is left would be of no use.
    """
    failing = failing_claims(attempt.evaluations)
    left = None if failing is None else remainder(attempt.answer, failing)
    if left is None:
        return None
    left = left if rewords else left.without_lost()
    return left if is_of_use(attempt, left) else None


def paths_of(attempt: Attempt) -> list[str]:
    """The values of a structured answer that fail, as paths such as "$.items[0].price"."""
    answer = attempt.answer
    return [path_of(answer, start, end) or "$" for start, end in values_of(attempt) or ()]


def is_of_use(attempt: Attempt, left: Remainder) -> bool:
    """Whether what is left says something that is supported, and still answers the question."""
    gone = [(left.pieces[at].start, left.pieces[at].end) for at in left.removed]
    return _holds(attempt, gone) and left.answers(attempt.question)


def values_of(attempt: Attempt) -> list[tuple[int, int]] | None:
    """Where the values stand in a structured answer that fail.

    None for an answer in prose, where one has no place, and where nothing that holds would be left.
    """
    failing = failing_claims(attempt.evaluations)
    held = places(attempt.answer)
    if failing is None or held is None or any(claim.span is None for claim in failing):
        return None
    spans = [(claim.span.start, claim.span.end) for claim in failing if claim.span]
    return spans if _holds(attempt, spans) else None


def _holds(attempt: Attempt, gone: Iterable[tuple[int, int]]) -> bool:
    """Whether a supported claim stands outside of what is gone."""
    spans = list(gone)
    return any(
        claim.label is ClaimLabel.ENTAILMENT
        and claim.span is not None
        and not any(start <= claim.span.start < end for start, end in spans)
        for evaluation in attempt.evaluations
        for claim in evaluation.claims
    )
