"""What a guard did, attempt by attempt, and what was kept of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from demur.guard import Attempt, Feedback, Trace
from demur.observe import Record
from demur.schema import Usage
from demur.views.answers import answer_view
from demur.views.claims import reference_names
from demur.views.elements import Element, element, joined, separated
from demur.views.evaluations import pill
from demur.views.folds import fold
from demur.views.words import attempt_look, outcome_look, usage_line, what_the_guard_did

_SECRET = "[secret]"
"""What redaction leaves of a credential: offsets behind it are others then."""


def trace_html(trace: Trace, output: str | None = None) -> Element:
    """A guarded call: how it ended and why, its attempts in order, what it cost.

    Args:
        trace: What the guard did.
        output: What it returned, where that is known; shown if it is not the last answer.
    """
    other = output is not None and output != trace.attempts[-1].answer
    return element(
        "article",
        _ending(trace.outcome, trace.reason, trace.limit, trace.error),
        _quiet(_time(trace.time), _cost(trace.usage, trace.seconds)),
        *_attempts(trace.attempts, trace.time.isoformat()),
        _titled("Returned", output or "") if other else None,
        class_="demur",
    )


def record_html(record: Record) -> Element:
    """A run: what it was, and its attempts as in `trace_html`.

    Of a record whose texts were changed before they were kept, claims are not highlighted in the
    answer: offsets are those in the originals.
    """
    guarded = record.outcome is not None or record.reason is not None or len(record.attempts) > 1
    note = (
        "Texts were changed before they were kept, so that claims cannot be shown in their places."
        if record.redacted
        else None
    )
    return element(
        "article",
        _ending(record.outcome, record.reason, record.limit, record.error) if guarded else None,
        _quiet(_time(record.time), record.name, record.model, _tags(record.tags)),
        _quiet(_cost(record.usage, record.seconds)),
        element("p", note, class_="demur-why") if note else None,
        *_attempts(record.attempts, record.id, record.redacted),
        fold("About this run", _facts(record)),
        class_="demur",
    )


def _ending(
    outcome: str | None, reason: str | None, limit: str | None, error: str | None
) -> Element:
    bound = None if limit is None else f"(limit: {limit.replace('_', ' ')})"
    return element(
        "p",
        element("strong", "The guard’s call", class_="demur-name"),
        pill(outcome_look(outcome)),
        element("span", separated((reason, bound, error), " "), dir="auto"),
        class_="demur-head",
    )


def _attempts(
    attempts: Sequence[Attempt], salt: str, redacted: bool | None = None
) -> Iterator[Element]:
    """`redacted`: of a record; None where no text was changed."""
    before: Attempt | None = None
    for number, attempt in enumerate(attempts, 1):
        trusted = None
        if redacted is not None:
            at = attempt.answer.find(_SECRET)
            trusted = 0 if redacted else at if at >= 0 else None
        yield element(
            "section",
            _came(attempt, number) if before is not None else None,
            element(
                "p",
                element("strong", f"Answer {number} of {len(attempts)}", class_="demur-name"),
                pill(attempt_look(attempt)),
                element("span", usage_line(attempt.usage), class_="demur-quiet"),
                class_="demur-head",
            )
            if len(attempts) > 1
            else None,
            *answer_view(attempt, f"{salt} {number}", trusted=trusted, before=before),
            class_="demur-attempt",
        )
        before = attempt


def _came(attempt: Attempt, number: int) -> Element:
    """What the guard did before a later answer."""
    return element(
        "div",
        element("p", what_the_guard_did(attempt)),
        None if attempt.feedback is None else fold("What was told", *_told(attempt.feedback)),
        class_="demur-between",
    )


def _told(feedback: Feedback) -> Iterator[Element]:
    yield element("div", feedback.text, class_="demur-text", dir="auto")
    if feedback.documents:
        yield element("p", "Found for it: ", ", ".join(reference_names(feedback.documents)))
    for error in feedback.errors:
        yield element("p", "A search failed: ", error, class_="demur-why", dir="auto")


def _titled(title: str, text: str) -> Element:
    return element(
        "div",
        element("p", title, class_="demur-title"),
        element("div", text, class_="demur-text", dir="auto"),
    )


def _cost(usage: Usage, seconds: float) -> str:
    return f"{usage_line(usage)} of answering and judging; took {seconds:,.1f} s"


def _time(time: datetime) -> Element:
    # Not by %Z, which fails where the zone's name is no plain text.
    shown = f"{time:%Y-%m-%d %H:%M:%S} {time.tzname()}"
    return element("time", shown, datetime=time.isoformat())


def _tags(tags: Sequence[str]) -> Element | None:
    return joined(*(element("span", tag, class_="demur-tag") for tag in tags)) if tags else None


def _quiet(*parts: str | None) -> Element:
    return element("p", separated(parts, " · "), class_="demur-quiet")


def _facts(record: Record) -> Element:
    facts: list[tuple[str, str | None]] = [
        ("run", record.id),
        ("part of", record.root if record.root != record.id else None),
        ("response", record.response),
        ("trace", record.trace_id),
        ("span", record.span_id),
        *((key, str(value)) for key, value in record.metadata.items()),
    ]
    rows = (
        joined(element("dt", key), element("dd", value, dir="auto"))
        for key, value in facts
        if value is not None
    )
    return element("dl", *rows, class_="demur-facts")
