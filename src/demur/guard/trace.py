"""The trace of a guarded call, and the events that tell of it.

The events' data are plain values, so that every tracer can write them down, and hold no text that
was not let through, nor what a judge or a provider said of it. The trace has all of that; only
handlers that ask for it are told.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar, runtime_checkable
from uuid import UUID

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from demur._documents import Contexts
from demur._notebook import ShownInNotebooks
from demur.edits import Citation
from demur.errors import DemurError
from demur.guard.feedback import Feedback
from demur.runtime import Limit, describe
from demur.schema import Claim, Evaluation, Evidence, Failure, Usage

_log = logging.getLogger(__name__)

Output = TypeVar("Output")

_FIRST, _LAST = (datetime(year, 1, 2, tzinfo=timezone.utc) for year in (1970, 9999))
Time = Annotated[AwareDatetime, Field(ge=_FIRST, lt=_LAST)]
"""A moment that has a date in every time zone, and four digits in its year."""

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
    """One answer, and what the evaluators found of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    origin: Origin
    """Where the answer came from: "chain", the chain on its own input; "feedback", the chain on the
    input that a `tell` made; "repair", a recovery's model; "edit", the attempt before, from which
    failing sentences were taken out, or in which citations were corrected."""
    recovery: str | None = None
    """Which recovery it came of: "retrieve", "regenerate", "repair", "strip", "cite"; None for the
    first answer."""
    feedback: Feedback | None = None
    """What the attempt was told of the one before; None when it was told nothing."""
    question: str | None
    """The question, if it was found."""
    answer: str
    """The answer."""
    removed: tuple[str, ...] = ()
    """What `Strip` took out of the answer, and of those that it was made of: sentences in order, or
    the paths of values."""
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
    """"passed": the first answer went through. "recovered": a later one did. "trimmed": what was
    left of one went through when sentences were taken out.
    "nothing_to_check": one went through, the first or a later one, that states nothing that could
    be checked. "abstained": a refusal took its place. "blocked": `AnswerRejected` was raised.
    "best_effort": the best answer went through with a note. "evaluator_failed": an evaluator could
    not decide, and `on_error` said what became of the answer."""
    reason: str
    """What ended it, in a sentence for anyone to see: it quotes nobody."""
    error: str | None = None
    """If a model failed to repair an answer, what that said: it may quote a provider."""
    limit: Limited | None = None
    """The limit of the budget that ended it, if one did."""
    attempts: tuple[Attempt, ...] = Field(min_length=1)
    """In order, at least one."""
    citations: tuple[Citation, ...] = ()
    """What the answer that left rests on, if it passed and the guard has `on_pass=Cite()`. Its
    places are those in that answer, marks included."""
    usage: Usage
    """What answering and judging cost together."""
    time: Time
    """When the call ended."""
    seconds: float = Field(ge=0, allow_inf_nan=False)
    """Time that went by."""

    @property
    def claims(self) -> list[dict[str, Any]]:
        """What an answer that passed says, as values that JSON has; empty if none did.

        For each claim `text`, `label`, `start` and `end` in the answer, and `path` if it is
        structured.
        """
        return [*map(_claim, self._claims)]

    @property
    def evidence(self) -> list[dict[str, Any]]:
        """The passages that such an answer rests on, as values that JSON has.

        For each passage `claim`, `label` and `text`; and where it stands: `context`, the number of
        the document from 0, `start` and `end` in its text, its `id`, and the `source` of its
        metadata. These are None where it stands in none of the attempt's documents, as with an
        evaluator that searches by itself.
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


# --- Events --------------------------------------------------------------------------------------

EVALUATION = "demur.evaluation"
"""An evaluator judged: attempt, name, finding, score, label, passed, cause."""
DECISION = "demur.decision"
"""What is done about an attempt: attempt, verdict, action, failures."""
OUTCOME = "demur.outcome"
"""How the call ended: outcome, reason, limit, attempts, the refusal of one that abstained, and the
trace's `claims` and `evidence`."""
REPLACE = "demur.replace"
"""Of the text that was streamed, only the first `keep` characters still hold."""
USAGE = "demur.usage"
"""What a chain says that it spent on model calls that LangChain does not see, such as another
framework's: the fields of `Usage`. What is told several times adds up."""

Event = tuple[str, Mapping[str, Any]]
"""Name and data."""


@runtime_checkable
class TraceHandler(Protocol):
    """A callback handler that is told how guarded calls went."""

    def on_guard_end(self, trace: Trace, *, run_id: UUID) -> None:
        """A guard's run came to its end; it returns or raises next. This must not wait."""
        ...


@dataclass(frozen=True)
class Announcement:
    """Callbacks are told events, in their order, and then the trace."""

    events: tuple[Event, ...]
    trace: Trace | None = None

    def tell(self, config: RunnableConfig) -> None:
        """Tell them in this thread."""
        if _heard(config):
            for name, data in self.events:
                dispatch_custom_event(name, data, config=config)
            self._tell_trace(config)

    async def atell(self, config: RunnableConfig) -> None:
        """Tell them in the running loop."""
        if _heard(config):
            for name, data in self.events:
                await adispatch_custom_event(name, data, config=config)
            self._tell_trace(config)

    def _tell_trace(self, config: RunnableConfig) -> None:
        manager = config.get("callbacks")
        if self.trace is None or not isinstance(manager, BaseCallbackManager):
            return
        for handler in manager.handlers:
            if not isinstance(handler, TraceHandler) or manager.parent_run_id is None:
                continue
            try:
                handler.on_guard_end(self.trace, run_id=manager.parent_run_id)
            except Exception as error:  # as LangChain does with its own events
                if handler.raise_error:
                    raise
                _log.warning("%s.on_guard_end failed: %s", type(handler).__name__, describe(error))


def _heard(config: RunnableConfig) -> bool:
    manager = config.get("callbacks")
    return isinstance(manager, BaseCallbackManager) and bool(manager.handlers)


def evaluation_event(attempt: int, evaluation: Evaluation) -> Event:
    """What an evaluator found of an attempt."""
    names = ("name", "finding", "score", "label", "passed", "cause")
    return EVALUATION, {"attempt": attempt, **{name: getattr(evaluation, name) for name in names}}


def evaluation_of_event(data: Mapping[str, Any]) -> Evaluation:
    """The evaluation of which such an event told, as far as it did."""
    fields = {name: data[name] for name in ("name", "score", "label", "passed", "cause")}
    # Its words are in the trace alone, and there is none of a guard that was cut short.
    error = data["cause"] or "it could not decide" if data["finding"] == "undetermined" else None
    return Evaluation(**fields, error=error, explanation=error or "")


def decision_event(
    attempt: int, verdict: Verdict, action: str, failures: Sequence[Failure]
) -> Event:
    """What is done about an attempt."""
    about = {"attempt": attempt, "verdict": verdict, "action": action}
    return DECISION, {**about, "failures": [*map(str, failures)]}


def outcome_event(trace: Trace, refusal: str | None) -> Event:
    """How a call ended; `refusal` is what stands in the answer's place, if something does."""
    ending = {name: getattr(trace, name) for name in ("outcome", "reason", "limit")}
    told = {
        "refusal": refusal,
        "claims": trace.claims,
        "evidence": trace.evidence,
        "citations": [citation.model_dump() for citation in trace.citations],
    }
    return OUTCOME, {**ending, "attempts": len(trace.attempts), **told}


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
    at, span = evidence.context, evidence.span
    document = contexts[at] if at is not None and at < len(contexts) else None
    if document is None or document.page_content[span.start : span.end] != evidence.text:
        return dict.fromkeys(("context", "start", "end", "id", "source"))
    source = document.metadata.get("source")
    return {
        "context": at,
        "start": span.start,
        "end": span.end,
        "id": document.id,
        "source": source if isinstance(source, str) else None,
    }
