"""Take what fails out of an attempt, for `Strip`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from demur._text import path_of, places
from demur.guard.edits import Remainder, remainder
from demur.guard.inside import Inside
from demur.guard.prompts import rewording_prompt
from demur.guard.recoveries import Strip
from demur.guard.trace import Attempt
from demur.runtime import ChatCall, Steps, ask_all
from demur.runtime.prompting import without_delimiters
from demur.schema import Claim, ClaimLabel, Evaluation, Failure, Usage
from demur.shapes import Answer, NoSuchForm


def failing_claims(evaluations: Iterable[Evaluation]) -> list[Claim] | None:
    """Return the claims of a rejected answer that do not hold or could not be decided about.

    Claims about citations count only if nothing else fails.

    Returns:
        The claims; None if an evaluator rejects the answer for another reason than its claims.
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


@dataclass(frozen=True)
class Stripped:
    """Hold an answer without what fails."""

    output: Any
    """The output that holds the rest of the answer; None if the rest would be of no use."""
    removed: Sequence[str]
    """The sentences that were taken out, or the paths of values."""
    usage: Usage = field(default_factory=Usage)


def can_strip(strip: Strip, attempt: Attempt, answer: Answer) -> bool:
    """Return whether a rejected answer would be of use without what fails."""
    if (values := _values(attempt)) is None:
        left = _remainder(attempt, strip) if answer.is_text else None
        return left is not None and _is_of_use(attempt, left)
    try:
        return answer.without(values) is not None
    except NoSuchForm:
        return False


def stripped(strip: Strip, attempt: Attempt, answer: Answer) -> Steps[Stripped]:
    """Return a rejected answer without what fails. `can_strip` must hold."""
    if (values := _values(attempt)) is not None:
        paths = [path_of(attempt.answer, start, end) or "$" for start, end in values]
        return Stripped(answer.without(values), paths)
    left = _remainder(attempt, strip)
    assert left is not None  # `can_strip` has checked it
    reworded, usage = yield from _reworded(strip, left)
    left = left.with_reworded(reworded).without_lost()
    if not _is_of_use(attempt, left):
        return Stripped(None, (), usage)
    return Stripped(answer.reworded(left.text), left.texts_removed, usage)


def _remainder(attempt: Attempt, strip: Strip) -> Remainder | None:
    """Return an answer in prose without what fails; None if that cannot be taken out.

    Sentences that refer to a removed one are taken out too, unless a model is to reword them.
    """
    failing = failing_claims(attempt.evaluations)
    left = None if failing is None else remainder(attempt.answer, failing)
    return left.without_lost() if left is not None and strip.model is None else left


def _reworded(strip: Strip, left: Remainder) -> Steps[tuple[dict[int, str], Usage]]:
    """Return a model's rewording of each sentence that refers to a removed one, and the usage."""
    lost = left.lost  # none where there is no model
    calls = [Inside(ChatCall(strip.model, rewording_prompt(left, at), "rewording")) for at in lost]
    outcomes = yield from ask_all(calls)
    said = {
        at: " ".join(without_delimiters(outcome.value.text).split())
        for at, outcome in zip(lost, outcomes, strict=True)
        if not outcome.error
    }
    usage = sum((outcome.usage for outcome in outcomes), Usage())
    return {at: text for at, text in said.items() if text}, usage


def _is_of_use(attempt: Attempt, left: Remainder) -> bool:
    """Return whether the rest says something that is supported, and still answers the question."""
    gone = [(left.pieces[at].start, left.pieces[at].end) for at in left.removed]
    return _holds(attempt, gone) and left.answers(attempt.question)


def _values(attempt: Attempt) -> list[tuple[int, int]] | None:
    """Return the places of the failing values in a structured answer.

    The result is None for an answer in prose, if a failing claim has no place, and if nothing
    supported would be left.
    """
    failing = failing_claims(attempt.evaluations)
    held = places(attempt.answer)
    if failing is None or held is None or any(claim.span is None for claim in failing):
        return None
    spans = [(claim.span.start, claim.span.end) for claim in failing if claim.span]
    return spans if _holds(attempt, spans) else None


def _holds(attempt: Attempt, gone: Iterable[tuple[int, int]]) -> bool:
    """Return whether a supported claim stands outside of the removed places."""
    spans = list(gone)
    return any(
        claim.label is ClaimLabel.ENTAILMENT
        and claim.span is not None
        and not any(start <= claim.span.start < end for start, end in spans)
        for evaluation in attempt.evaluations
        for claim in evaluation.claims
    )
