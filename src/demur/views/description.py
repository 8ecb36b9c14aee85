"""Describe claims, evaluations, attempts and runs, for HTML and the terminal alike.

Texts are passed on as they were stored. The code that renders them must make them harmless.
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
    plural,
    verdict_look,
    what_the_guard_did,
)

REDACTED = (
    "Texts were changed before they were kept, so that claims cannot be shown in their places."
)

_SECRET = "[secret]"
"""The text that replaces a credential; offsets behind it no longer fit."""


@dataclass(frozen=True)
class Quote:
    """Hold a piece of evidence to show."""

    reference: str
    """The name of the reference; empty if there is only one reference."""
    text: str
    label: ClaimLabel | None
    """The label of the evidence, if it differs from the claim's label."""


@dataclass(frozen=True)
class ShownClaim:
    """Hold a claim to show, with its label and the evidence for the label."""

    text: str
    look: Look
    label: str
    """The label's word, with the label's probability if it is known."""
    error: str | None
    """The reason why there is no label."""
    reason: str | None
    """What calls of an agent, calculations or the search for strings say of the claim."""
    quotes: tuple[Quote, ...]


def describe_claim(claim: Claim, names: Sequence[str] = ()) -> ShownClaim:
    """Describe a claim.

    Args:
        claim: The claim.
        names: The name of each reference. A reference without a name here is called `reference 1`
            and so on; a reference whose name is empty is not named at all.
    """
    look = claim_look(claim)
    share = None
    # A judge that itself contradicts a claim is not overruled by a missing string.
    own = claim.label is ClaimLabel.CONTRADICTION and not claim.calculations
    if claim.label is not None and (own or not claim.overruled):
        share = (claim.probabilities or {}).get(claim.label)
    return ShownClaim(
        text=claim.text,
        look=look,
        label=look.word if share is None else f"{look.word} {share:.0%}",
        error=claim.error,
        reason=claim.reason,
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
    return names[at] if at is not None and at < len(names) else evidence.where


def reference_names(contexts: Sequence[Document]) -> list[str]:
    """Return a name for each reference: its number, with its source if it is known."""
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
    """Hold an evaluation to show, without its claims."""

    look: Look
    label: str | None
    """The answer's label; None if the look says the same."""
    score: str | None
    error: str | None
    explanation: str | None
    cost: str


def describe_evaluation(evaluation: Evaluation) -> ShownEvaluation:
    """Describe an evaluation."""
    return ShownEvaluation(
        look=verdict_look(evaluation.finding),
        label=None if evaluation.nothing_to_check else evaluation.label,
        score=None
        if evaluation.score is None
        else f"score {evaluation.score:.2f}{_threshold(evaluation.details.get('threshold'))}",
        error=evaluation.error,
        # In an undetermined evaluation, both give the same reason.
        explanation=None if evaluation.explanation == evaluation.error else evaluation.explanation,
        cost=usage_line(evaluation.usage),
    )


def _threshold(told: object) -> str:
    """Return in words what an evaluation's details say of its `Threshold`; empty if nothing."""
    match told:
        case {"value": float(least), "samples": int(size), "kappa": [float(k), float(a), float(b)]}:
            people = f"kappa with people {k:.2f} [{a:.2f}, {b:.2f}], {size:,} answers"
            return f", threshold {least:.3g} ({people})"
    return ""


@dataclass(frozen=True)
class ShownAttempt:
    """Hold an attempt to show: how the answer was made, and its verdict."""

    attempt: Attempt
    title: str
    """A title such as "Answer 1 of 2"."""
    look: Look
    came: str | None
    """A sentence on what the guard did before this answer; None for the first answer."""
    cost: str
    removed: tuple[str, ...]
    """The texts that the guard took out to make this answer, in order."""


@dataclass(frozen=True)
class Ending:
    """Describe how a guard's call ended."""

    look: Look
    why: tuple[str, ...]
    """The reason, the limit that was reached and the error of a repair, as far as they exist."""


@dataclass(frozen=True)
class ShownRun:
    """Hold a run, or a guard's call, to show."""

    attempts: tuple[ShownAttempt, ...]
    ending: Ending | None
    """How the guard's call ended; None if there was no guard."""
    cost: str
    about: tuple[str, ...] = ()
    """The name and the model of the run, if they are known."""
    facts: tuple[tuple[str, str], ...] = ()
    """Other facts about the run, as pairs of a name and a value."""


def describe_trace(trace: Trace) -> ShownRun:
    """Describe a guard's call by its trace."""
    return ShownRun(
        tuple(_attempts(trace.attempts)), _ending(trace), _cost(trace.usage, trace.seconds)
    )


def describe_record(record: Record) -> ShownRun:
    """Describe a run by its record."""
    guarded = record.outcome is not None or record.reason is not None or len(record.attempts) > 1
    facts: list[tuple[str, str | None]] = [
        ("run", record.id),
        ("part of", record.root if record.root != record.id else None),
        ("response", record.response),
        ("trace", record.trace_id),
        ("span", record.span_id),
        *(("trace", f"{link.system} {link.address or link.trace_id}") for link in record.traces),
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
            # An answer that was made of an earlier answer lists that answer's removed texts first.
            removed=removed[len(before) :] if removed[: len(before)] == before else removed,
        )
        before = removed


def _ending(call: Trace | Record) -> Ending:
    limit = None if call.limit is None else f"(limit: {call.limit.replace('_', ' ')})"
    why = (call.reason, limit, call.error)
    return Ending(outcome_look(call.outcome), tuple(text for text in why if text is not None))


def trusted(attempt: Attempt, redacted: bool | None) -> int | None:
    """Return the length of an answer's unchanged beginning, where offsets still fit; None for all.

    Args:
        attempt: The attempt with the answer.
        redacted: `Record.redacted` of the attempt's record; None if the attempt is not from a
            record, so that no text was changed.
    """
    if redacted is None:
        return None
    at = attempt.answer.find(_SECRET)
    return 0 if redacted else at if at >= 0 else None


def cited_of(record: Record) -> Attempt | None:
    """Return the attempt that left a guard with a passed answer, to show it with its sources.

    Return None if there was no guard, if the answer did not pass, or if the answer was redacted so
    that offsets do not fit.
    """
    last = record.attempts[-1]
    guarded = record.outcome is not None and trusted(last, record.redacted) is None
    return last if guarded and last.verdict == "passed" else None


USAGE_HEADS = ("calls", "tokens in", "tokens out", "seconds")
"""The heads of the columns that `usage_cells` fills."""


def usage_cells(usage: Usage) -> list[str]:
    """Return the cells of a usage in a table: calls, tokens and seconds."""
    tokens = (f"{usage.input_tokens:,}", f"{usage.output_tokens:,}")
    return [f"{usage.calls:,}", *tokens, f"{usage.seconds:,.1f}"]


def usage_line(usage: Usage) -> str:
    """Return a line with the calls, tokens and seconds of a usage."""
    cached = f" ({usage.cached:,} more answered from a cache)" if usage.cached else ""
    calls = plural(usage.calls, "call")
    return (
        f"{calls}{cached}, {usage.input_tokens:,} + {usage.output_tokens:,} tokens, "
        f"{usage.seconds:,.1f} s"
    )


def _cost(usage: Usage, seconds: float) -> str:
    return f"{usage_line(usage)} of answering and judging; took {seconds:,.1f} s"
