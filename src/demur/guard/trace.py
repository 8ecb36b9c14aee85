"""Define the trace of a guarded call: its attempts with their evaluations, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any, Generic, Literal, TypeVar

from langchain_core.documents import Document
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from demur.errors import DemurError
from demur.guard.edits import Citation, document_of
from demur.guard.feedback import Feedback
from demur.runtime import Limit
from demur.schema import Claim, Contexts, Evaluation, Evidence, ShownInNotebooks, Usage

Output = TypeVar("Output")

_FIRST, _LAST = (datetime(year, 1, 2, tzinfo=timezone.utc) for year in (1970, 9999))
Time = Annotated[AwareDatetime, Field(ge=_FIRST, lt=_LAST)]
"""A moment with a time zone that has a date in every time zone, and a year of four digits."""

Verdict = Literal["passed", "failed", "undetermined", "nothing_to_check", "abstained", "scored"]
Origin = Literal["chain", "feedback", "repair", "edit"]
TraceOutcome = Literal[
    "passed",
    "recovered",
    "trimmed",
    "nothing_to_check",
    "abstained",
    "blocked",
    "best_effort",
    "evaluator_failed",
]
Limited = Literal["attempts"] | Limit


class Attempt(ShownInNotebooks, BaseModel):
    """Describe one answer, with its evaluations and its verdict."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    origin: Origin
    """Where the answer came from. "chain": the chain, on its own input. "feedback": the chain, on
    the input that a `tell` made. "repair": the model of a recovery. "edit": the attempt before,
    with failing sentences taken out or citations corrected."""
    recovery: str | None = None
    """The recovery that led to the answer: "retrieve", "regenerate", "repair", "strip" or "cite";
    None for the first answer."""
    feedback: Feedback | None = None
    """The feedback on the attempt before that this attempt was given; None if it was given none."""
    question: str | None
    """The question, or None if it was not found."""
    answer: str
    """The answer's text."""
    removed: tuple[str, ...] = ()
    """What `Strip` took out of this answer and of the attempts that it was edited from: sentences
    in order, or the paths of values."""
    contexts: Contexts
    """The documents that the answer was checked against."""
    evaluations: tuple[Evaluation, ...]
    """One evaluation for each evaluator, in the evaluators' order. An answer that was streamed by
    sentences has one for each evaluator and sentence, sentence by sentence."""
    verdict: Verdict
    """The result of all evaluations together. "failed" if an evaluation failed, or if an evaluator
    found nothing to check and `on_abstain` is "fail"; else "undetermined" if an evaluation is; else
    "passed" if an evaluation passed; else "nothing_to_check". "abstained" for the refusal of
    another guard inside the chain, which is not judged. "scored" if an evaluator has no threshold,
    which only handlers allow."""
    usage: Usage
    """What answering cost. The evaluations hold what judging cost."""

    @property
    def cost(self) -> Usage:
        """Return what answering and judging cost together."""
        return sum((evaluation.usage for evaluation in self.evaluations), self.usage)


class Trace(ShownInNotebooks, BaseModel):
    """Describe what one guarded call did."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: TraceOutcome
    """How the call ended. "passed": the first answer passed. "recovered": a later answer passed.
    "trimmed": an answer passed after sentences were taken out. "nothing_to_check": an answer went
    through, the first or a later one, that states nothing that can be checked. "abstained": a
    refusal took the answer's place. "blocked": `AnswerRejected` was raised. "best_effort": the best
    answer went through with a note. "evaluator_failed": an evaluator could not decide, and
    `on_error` said what to do with the answer."""
    reason: str
    """Why the call ended, in a sentence that quotes nobody and may be shown to anyone."""
    error: str | None = None
    """The error message of a model that failed to repair an answer, which may quote a provider;
    else None."""
    limit: Limited | None = None
    """The limit of the budget that ended the call, if one did."""
    attempts: tuple[Attempt, ...] = Field(min_length=1)
    """The attempts in order, at least one."""
    citations: tuple[Citation, ...] = ()
    """The sources of the answer that left, if it passed and the guard has `on_pass=Cite()`. Their
    places are places in that answer, marks included."""
    usage: Usage
    """What answering and judging cost together."""
    time: Time
    """The moment when the call ended."""
    seconds: float = Field(ge=0, allow_inf_nan=False)
    """The duration of the call in seconds."""

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Return the claims of the answer that passed, as JSON values; empty if no answer passed.

        Each claim has `text`, `label`, `start` and `end` in the answer, and `path`, which is None
        in prose.
        """
        return [*map(_claim, self._claims)]

    @property
    def evidence(self) -> list[dict[str, Any]]:
        """Return the passages that support the answer that passed, as JSON values.

        Each passage has `claim`, `label` and `text`, and says where it stands: `context` is the
        number of the document, from 0; `start` and `end` are places in its text; `id` is the
        document's id, and `source` comes from its metadata. All of these are None if the passage
        stands in none of the attempt's documents, as for an evaluator that searches by itself.
        """
        return [
            {"claim": claim.text, "label": str(evidence.label), "text": evidence.text}
            | _place(evidence, self.attempts[-1].contexts)
            for claim in self._claims
            for evidence in claim.evidence
        ]

    @property
    def _claims(self) -> list[Claim]:
        last = self.attempts[-1]
        evaluations = last.evaluations if last.verdict == "passed" else ()
        return [claim for evaluation in evaluations for claim in evaluation.claims]


@dataclass(frozen=True)
class Guarded(ShownInNotebooks, Generic[Output]):
    """Hold an output and its trace, as `guard.with_trace()` returns them."""

    output: Output
    """The output that the guard alone would have returned."""
    trace: Trace
    """The trace of the call."""


class _WithTrace(DemurError):  # noqa: N818  # a base
    def __init__(self, message: str, trace: Trace) -> None:
        """Make an error with the trace, which holds every attempt and its evaluations."""
        super().__init__(message)
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle needs to restore the error with its trace."""
        return type(self), (self.args[0], self.trace)


class AnswerRejected(_WithTrace):  # a refusal, not a fault
    """Report that no answer was let through and no other text took its place."""


class EvaluatorFailed(_WithTrace):  # named as the outcome
    """Report that an evaluator could not decide, in a guard with `on_error="raise"`."""


def _claim(claim: Claim) -> dict[str, Any]:
    span = claim.span
    return {
        "text": claim.text,
        "label": claim.label and str(claim.label),
        "start": span and span.start,
        "end": span and span.end,
        "path": claim.path,
    }


def _place(evidence: Evidence, contexts: Sequence[Document]) -> dict[str, Any]:
    document = document_of(evidence, contexts)
    if document is None:
        return dict.fromkeys(("context", "start", "end", "id", "source"))
    source = document.metadata.get("source")
    return {
        "context": evidence.context,
        "start": evidence.span.start,
        "end": evidence.span.end,
        "id": document.id,
        "source": source if isinstance(source, str) else None,
    }
