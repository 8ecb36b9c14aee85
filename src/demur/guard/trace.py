"""The record of a guarded call: every attempt, what was found of it, what it cost, how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from demur._documents import Contexts
from demur._notebook import ShownInNotebooks
from demur.errors import DemurError
from demur.guard.feedback import Feedback
from demur.runtime import Limit
from demur.schema import Evaluation, Usage

Output = TypeVar("Output")

_FIRST, _LAST = (datetime(year, 1, 2, tzinfo=timezone.utc) for year in (1970, 9999))
Time = Annotated[AwareDatetime, Field(ge=_FIRST, lt=_LAST)]
"""A moment that has a date in every time zone, and four digits in its year."""

Verdict = Literal["passed", "failed", "undetermined", "nothing_to_check", "abstained", "scored"]
Origin = Literal["chain", "feedback", "repair"]
TraceOutcome = Literal[
    "passed",
    "recovered",
    "nothing_to_check",
    "abstained",
    "blocked",
    "best_effort",
    "evaluator_failed",
]
Limited = Literal["attempts"] | Limit


class Attempt(ShownInNotebooks, BaseModel):
    """One answer, and what the evaluators found of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    origin: Origin
    """Where the answer came from: "chain", the chain on its own input; "feedback", the chain on the
    input that `with_feedback` made; "repair", the guard's model."""
    recovery: str | None = None
    """Which recovery it came of: "retrieve", "regenerate", "repair"; None for the first answer."""
    feedback: Feedback | None = None
    """What the attempt was told of the one before; None when it was told nothing."""
    question: str | None
    """The question, if it was found."""
    answer: str
    """The answer."""
    contexts: Contexts
    """The documents that it was held against."""
    evaluations: tuple[Evaluation, ...]
    """One for each evaluator, in their order; of an answer that was streamed by sentences, for each
    sentence in turn."""
    verdict: Verdict
    """"failed" if any evaluation failed, or if an evaluator found nothing to check and `on_abstain`
    is "fail"; else "undetermined" if any is; else "passed" if any passed; else "nothing_to_check".
    "abstained" for the refusal of another guard inside the chain, which is not judged; "scored"
    where an evaluator has no threshold, as only handlers take one."""
    usage: Usage
    """What answering cost; what judging cost is in the evaluations."""

    @property
    def cost(self) -> Usage:
        """What answering and judging cost together."""
        return sum((evaluation.usage for evaluation in self.evaluations), self.usage)


class Trace(ShownInNotebooks, BaseModel):
    """What one guarded call did."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: TraceOutcome
    """"passed": the first answer went through. "recovered": a later one did.
    "nothing_to_check": one went through, the first or a later one, that states nothing that could
    be checked. "abstained": a refusal took its place. "blocked": `AnswerRejected` was raised.
    "best_effort": the best answer went through with a note. "evaluator_failed": an evaluator could
    not decide, and `on_error` said what became of the answer."""
    reason: str
    """What ended it, in a sentence for anyone to see: it quotes nobody."""
    error: str | None = None
    """If the guard's model failed to repair an answer, what that said: it may quote a provider."""
    limit: Limited | None = None
    """The limit of the budget that ended it, if one did."""
    attempts: tuple[Attempt, ...] = Field(min_length=1)
    """In order, at least one."""
    usage: Usage
    """What answering and judging cost together."""
    time: Time
    """When the call ended."""
    seconds: float = Field(ge=0, allow_inf_nan=False)
    """Time that went by."""


@dataclass(frozen=True)
class Guarded(ShownInNotebooks, Generic[Output]):
    """What `guard.with_trace()` returns."""

    output: Output
    """What the guard alone would have returned."""
    trace: Trace
    """How it came about."""


class _WithTrace(DemurError):  # noqa: N818  # a base
    def __init__(self, message: str, trace: Trace) -> None:
        """`trace` has every attempt and what was found of it."""
        super().__init__(message)
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the trace."""
        return type(self), (self.args[0], self.trace)


class AnswerRejected(_WithTrace):  # a refusal, not a fault
    """No answer was let through, and nothing could or should take its place."""


class EvaluatorFailed(_WithTrace):  # named as the outcome
    """An evaluator could not decide about an answer, and the guard was told to raise then."""
