"""Decide how a guarded call ends: what it returns or raises, and its trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from demur.guard.arguments import GuardArguments
from demur.guard.citing import cited_attempt
from demur.guard.edits import Cited
from demur.guard.policies import END
from demur.guard.recoveries import Annotate, Block, Final
from demur.guard.trace import (
    AnswerRejected,
    Attempt,
    EvaluatorFailed,
    Limited,
    Trace,
    TraceOutcome,
)
from demur.guard.verdicts import accepts, feedback_on
from demur.schema import OnAbstain, Usage
from demur.shapes import Answer


@dataclass(frozen=True)
class Tried:
    """Hold an attempt, with the parts that the trace leaves out."""

    attempt: Attempt
    answer: Answer
    style: str | None = None
    same_as: int | None = None
    """The number of the earlier attempt with the same answer, or None."""


@dataclass(frozen=True)
class Ended:
    """Say why there is no further attempt."""

    reason: str
    final: Final | None = None
    """The recovery that the policy has for the failure; None: the policy's recovery for the end."""
    limit: Limited | None = None
    error: str | None = None
    """The error message of a failed repair. `reason` has only the kind of error, since anyone may
    see it."""
    usage: Usage = field(default_factory=Usage)
    """What was spent on a further attempt that led to no answer."""


@dataclass(frozen=True)
class Ending:
    """Hold what a guarded call returns or raises, and its trace."""

    trace: Trace
    output: Any = None
    refusal: str | None = None
    """The refusal, if the output is one. A guard around this one must not judge it."""
    error: AnswerRejected | EvaluatorFailed | None = None
    """The error to raise instead of returning an output."""


def ending_of(
    guard: GuardArguments[Any, Any],
    tried: Sequence[Tried],
    ended: Ended,
    usage: Usage,
    seconds: float,
) -> Ending:
    """Return how a guarded call ends after these attempts."""
    last = tried[-1]
    final = ended.final or guard.on_fail[END]
    assert isinstance(final, Final)  # `make_policy` has checked it
    cited: Cited | None = None
    if guard.on_pass is not None and last.attempt.verdict == "passed":
        form = guard.on_pass.form if last.answer.is_text else None
        cited = cited_attempt(last.attempt, form, guard.on_pass.known)
    trace = Trace(
        outcome=_outcome(tried, ended, final),
        reason=ended.reason,
        error=ended.error,
        limit=ended.limit,
        attempts=tuple(each.attempt for each in tried),
        citations=() if cited is None else cited.citations,
        usage=usage,
        time=datetime.now(timezone.utc),
        seconds=seconds,
    )
    if last.attempt.verdict == "abstained":
        return Ending(trace, last.answer.as_passed(), refusal=last.attempt.answer)
    mark: dict[str, Any] = {"outcome": trace.outcome, "reason": trace.reason}
    if last.attempt.verdict in ("passed", "nothing_to_check"):
        mark["evidence"] = trace.evidence
        if cited is not None:
            mark["citations"] = [citation.model_dump() for citation in cited.citations]
            content = cited.content if last.answer.is_text else None
            return Ending(trace, last.answer.cited(content, mark))
        return Ending(trace, last.answer.as_passed(mark if len(tried) > 1 else None))
    if trace.outcome == "evaluator_failed":
        if guard.on_error == "open":
            return Ending(trace, last.answer.as_passed())
        if guard.on_error == "raise":
            error = EvaluatorFailed(f"No answer was let through: {ended.reason}", trace)
            return Ending(trace, error=error)
    held = _best_of(tried, guard.on_abstain) if isinstance(final, Annotate) else last
    if isinstance(final, Block) or not held.answer.takes_text:
        return Ending(trace, error=AnswerRejected(_rejection(trace, final), trace))
    if isinstance(final, Annotate):
        note = final.text(feedback_on(held.attempt))
        return Ending(trace, held.answer.noted(f"\n\n{note}" if note else "", mark))
    undetermined = last.attempt.verdict == "undetermined"
    refusal = final.refusal(feedback_on(last.attempt, len(tried)), undetermined)
    return Ending(trace, held.answer.reworded(refusal, mark), refusal=refusal)


def _outcome(tried: Sequence[Tried], ended: Ended, final: Final) -> TraceOutcome:
    verdict = tried[-1].attempt.verdict
    if verdict == "abstained" or verdict == "nothing_to_check":
        return verdict
    if verdict == "passed":
        if tried[-1].attempt.removed:
            return "trimmed"
        return "passed" if len(tried) == 1 else "recovered"
    if verdict == "undetermined" and ended.limit in (None, "seconds"):
        return "evaluator_failed"  # a judge that was too slow counts as one
    return final.outcome


def _rejection(trace: Trace, final: Final) -> str:
    """Return the message that says why nothing was let through."""
    held = (
        ""
        if isinstance(final, Block)
        else " The chain's output cannot hold another text in the answer's place: name the key of "
        "the answer (answer='...'), or let the guard raise (on_fail=Block())."
    )
    return f"The answer was rejected: {trace.reason}.{held}"


def _best_of(tried: Sequence[Tried], on_abstain: OnAbstain) -> Tried:
    """Return the best attempt: the most evaluations that accept it, then the highest mean score."""

    def merit(candidate: Tried) -> tuple[int, float]:
        evaluations = candidate.attempt.evaluations
        scores = [e.score for e in evaluations if e.score is not None]
        mean = sum(scores) / len(scores) if scores else float("-inf")
        return sum(accepts(e, on_abstain) for e in evaluations), mean

    return max(tried, key=merit)
