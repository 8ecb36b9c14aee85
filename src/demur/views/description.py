"""What is shown of a claim, an evaluation, an attempt and a run: HTML and terminal render the same.

Texts are as they were kept: whoever renders them makes them harmless.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langchain_core.documents import Document

from demur._text import one_line
from demur.guard import Attempt, Trace
from demur.observe import Record
from demur.schema import Claim, ClaimLabel, Evaluation, Evidence, Usage
from demur.views.words import (
    Look,
    claim_look,
    outcome_look,
    verdict_look,
    what_the_guard_did,
)

REDACTED = (
    "Texts were changed before they were kept, so that claims cannot be shown in their places."
)

_SECRET = "[secret]"
"""What redaction leaves of a credential: offsets behind it are others then."""


@dataclass(frozen=True)
class Quote:
    """A piece of evidence."""

    reference: str
    """What the text that it stands in is called; empty where there is but one."""
    text: str
    label: ClaimLabel | None
    """What it says of the claim, where that is not the claim's label."""


@dataclass(frozen=True)
class ShownClaim:
    """A claim, its label and what decided it."""

    text: str
    look: Look
    label: str
    """The label's word, with its probability where there is one."""
    error: str | None
    """Why there is no label."""
    missing: str | None
    """Which quantities of the claim are not in the references."""
    quotes: tuple[Quote, ...]


def describe_claim(claim: Claim, names: Sequence[str] = ()) -> ShownClaim:
    """Describe a claim.

    Args:
        claim: The claim.
        names: What to call each reference: `reference 1` and so on where there is none, and nothing
            where it is empty.
    """
    look = claim_look(claim)
    share = None if claim.label is None else (claim.probabilities or {}).get(claim.label)
    missing = claim.missing_quantities
    return ShownClaim(
        text=claim.text,
        look=look,
        label=look.word if share is None else f"{look.word} {share:.0%}",
        error=claim.error,
        missing=f"not in the references: {'; '.join(missing)}" if missing else None,
        quotes=tuple(
            Quote(
                reference=_name(evidence, names),
                text=evidence.text,
                label=None if evidence.label == claim.label else evidence.label,
            )
            for evidence in claim.evidence
        ),
    )


def _name(evidence: Evidence, names: Sequence[str]) -> str:
    at = evidence.context
    if at is None:
        return "reference"
    return names[at] if at < len(names) else f"reference {at + 1}"


def reference_names(contexts: Sequence[Document]) -> list[str]:
    """What to call the references: by their number, and their source where it is known."""
    sources = [_source(document) for document in contexts]
    return [
        f"reference {at} · {source}" if source else f"reference {at}"
        for at, source in enumerate(sources, 1)
    ]


def _source(document: Document) -> str | None:
    for key in ("title", "source"):
        value = document.metadata.get(key)
        if isinstance(value, str) and value.strip():
            return one_line(value)
    return None


@dataclass(frozen=True)
class ShownEvaluation:
    """What one evaluator found, without the claims."""

    look: Look
    label: str | None
    """The answer's label; None where the look says all of it."""
    score: str | None
    error: str | None
    explanation: str | None
    cost: str


def describe_evaluation(evaluation: Evaluation) -> ShownEvaluation:
    """Describe an evaluation."""
    return ShownEvaluation(
        look=verdict_look(evaluation.finding),
        label=None if evaluation.nothing_to_check else evaluation.label,
        score=None if evaluation.score is None else f"score {evaluation.score:.2f}",
        error=evaluation.error,
        # Where nothing was decided, both say why.
        explanation=None if evaluation.explanation == evaluation.error else evaluation.explanation,
        cost=usage_line(evaluation.usage),
    )


@dataclass(frozen=True)
class ShownAttempt:
    """One answer of a run: how it came about, and whether it was let through."""

    attempt: Attempt
    title: str
    """Which of the run's answers it is."""
    look: Look
    came: str | None
    """What the guard did before it, in a sentence; None of a first answer."""
    cost: str
    removed: tuple[str, ...]
    """What the guard took out for it, in order."""


@dataclass(frozen=True)
class Ending:
    """How a guard's call ended."""

    look: Look
    why: tuple[str, ...]
    """The reason, the limit that was reached, the error of a repair: those that there are."""


@dataclass(frozen=True)
class ShownRun:
    """A run, or a guard's call."""

    attempts: tuple[ShownAttempt, ...]
    ending: Ending | None
    """None where no guard had a say."""
    cost: str
    about: tuple[str, ...] = ()
    """Its name and its model, where they are known."""
    facts: tuple[tuple[str, str], ...] = ()
    """What else is known of it, each under its name."""


def describe_trace(trace: Trace) -> ShownRun:
    """Describe a guard's call."""
    return ShownRun(
        tuple(_attempts(trace.attempts)), _ending(trace), _cost(trace.usage, trace.seconds)
    )


def describe_record(record: Record) -> ShownRun:
    """Describe a run."""
    guarded = record.outcome is not None or record.reason is not None or len(record.attempts) > 1
    facts: list[tuple[str, str | None]] = [
        ("run", record.id),
        ("part of", record.root if record.root != record.id else None),
        ("response", record.response),
        ("trace", record.trace_id),
        ("span", record.span_id),
        *((key, str(value)) for key, value in record.metadata.items()),
    ]
    return ShownRun(
        attempts=tuple(_attempts(record.attempts)),
        ending=_ending(record) if guarded else None,
        cost=_cost(record.usage, record.seconds),
        about=tuple(text for text in (record.name, record.model) if text),
        facts=tuple((name, value) for name, value in facts if value is not None),
    )


def _attempts(attempts: Sequence[Attempt]) -> Iterator[ShownAttempt]:
    before: tuple[str, ...] = ()
    for number, attempt in enumerate(attempts, 1):
        removed = attempt.removed
        yield ShownAttempt(
            attempt=attempt,
            title=f"Answer {number} of {len(attempts)}",
            look=verdict_look(attempt.verdict),
            came=what_the_guard_did(attempt) if number > 1 else None,
            cost=usage_line(attempt.usage),
            # An answer that was made of one before has what was taken out of that one too.
            removed=removed[len(before) :] if removed[: len(before)] == before else removed,
        )
        before = removed


def _ending(call: Trace | Record) -> Ending:
    limit = None if call.limit is None else f"(limit: {call.limit.replace('_', ' ')})"
    why = (call.reason, limit, call.error)
    return Ending(outcome_look(call.outcome), tuple(text for text in why if text is not None))


def trusted(attempt: Attempt, redacted: bool | None) -> int | None:
    """How much of an answer's begin is as it was judged; None for all of it.

    Args:
        attempt: The answer.
        redacted: Of the record that it is in; None where no text was changed.
    """
    if redacted is None:
        return None
    at = attempt.answer.find(_SECRET)
    return 0 if redacted else at if at >= 0 else None


def cited_of(record: Record) -> Attempt | None:
    """The answer that left a guard, to be shown with its sources.

    None where no guard was, and where the places of claims are those in another text.
    """
    last = record.attempts[-1]
    guarded = record.outcome is not None and trusted(last, record.redacted) is None
    return last if guarded and last.verdict == "passed" else None


def usage_line(usage: Usage) -> str:
    """What it cost: calls, tokens, seconds."""
    cached = f" ({usage.cached:,} more answered from a cache)" if usage.cached else ""
    calls = "1 call" if usage.calls == 1 else f"{usage.calls:,} calls"
    return (
        f"{calls}{cached}, {usage.input_tokens:,} + {usage.output_tokens:,} tokens, "
        f"{usage.seconds:,.1f} s"
    )


def _cost(usage: Usage, seconds: float) -> str:
    return f"{usage_line(usage)} of answering and judging; took {seconds:,.1f} s"
