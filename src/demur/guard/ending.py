"""What leaves in the end: an answer, a refusal, a note with it, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from demur.guard.attempts import Ended, Tried, best_of, feedback_on
from demur.guard.plan import Plan
from demur.guard.recovery import END, Abstain, Annotate, Block, Final
from demur.guard.trace import AnswerRejected, EvaluatorFailed, Trace, TraceOutcome
from demur.schema import Usage
from demur.shapes import can_edit, edit_answer, only_judged


@dataclass(frozen=True)
class Ending:
    """What a guarded call comes to."""

    trace: Trace
    output: Any = None
    refusal: str | None = None
    """The text, if the output is a refusal: a guard around this one is not to judge it."""
    error: AnswerRejected | EvaluatorFailed | None = None
    """What is raised in the place of an output."""


def conclude(
    plan: Plan, tried: Sequence[Tried], ended: Ended, usage: Usage, seconds: float
) -> Ending:
    """What a guarded call comes to after these attempts."""
    last = tried[-1]
    final = ended.final or plan.policy[END]
    assert isinstance(final, Final)  # make_policy sees to it
    trace = Trace(
        outcome=_outcome(tried, ended, final),
        reason=ended.reason,
        error=ended.error,
        limit=ended.limit,
        attempts=tuple(each.attempt for each in tried),
        usage=usage,
        time=datetime.now(timezone.utc),
        seconds=seconds,
    )
    own = only_judged(last.output, plan.answer)
    if last.attempt.verdict in ("passed", "nothing_to_check"):
        return Ending(trace, own)
    if last.attempt.verdict == "abstained":
        return Ending(trace, own, refusal=last.attempt.answer)
    if trace.outcome == "evaluator_failed":
        if plan.on_error == "open":
            return Ending(trace, own)
        if plan.on_error == "raise":
            error = EvaluatorFailed(f"No answer was let through: {ended.reason}", trace)
            return Ending(trace, error=error)
    held = best_of(tried, plan.on_abstain) if isinstance(final, Annotate) else last
    if isinstance(final, Block) or not can_edit(held.output, plan.answer):
        return Ending(trace, error=AnswerRejected(_rejection(trace, final), trace))
    mark = {"outcome": trace.outcome, "reason": trace.reason}
    if isinstance(final, Abstain):
        output = edit_answer(held.output, plan.answer, lambda _: final.text, mark)
        return Ending(trace, output, refusal=final.text)
    note = final.text(feedback_on(held.attempt))
    noted = f"\n\n{note}" if note else ""
    return Ending(trace, edit_answer(held.output, plan.answer, lambda t: f"{t}{noted}", mark))


def _outcome(tried: Sequence[Tried], ended: Ended, final: Final) -> TraceOutcome:
    verdict = tried[-1].attempt.verdict
    if verdict == "abstained" or verdict == "nothing_to_check":
        return verdict
    if verdict == "passed":
        return "passed" if len(tried) == 1 else "recovered"
    if verdict == "undetermined" and ended.limit is None:
        return "evaluator_failed"
    return final.outcome


def _rejection(trace: Trace, final: Final) -> str:
    """Why nothing was let through, in words."""
    held = (
        ""
        if isinstance(final, Block)
        else " The chain's output cannot hold another text in the answer's place: name the key of "
        "the answer (answer='...'), or let the guard raise (on_fail=Block())."
    )
    return f"The answer was rejected: {trace.reason}.{held}"
