"""Show the trace of a guarded call, attempt by attempt, and the record of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from demur.guard import Attempt, Feedback, Trace
from demur.observe import Record
from demur.views.answers import answer_view, block
from demur.views.citing import reader_view, removed_view, sources_fold
from demur.views.description import (
    REDACTED,
    Ending,
    ShownAttempt,
    cited_of,
    describe_record,
    describe_trace,
    reference_names,
    trusted,
)
from demur.views.elements import Element, element, joined, separated
from demur.views.folds import fold
from demur.views.pills import pill


def trace_html(trace: Trace, output: str | None = None) -> Element:
    """Show a guarded call: how it ended and why, its attempts in order, and its cost.

    If the guard cites sources, the view shows the answer as readers see it before the attempts.

    Args:
        trace: The trace of the call.
        output: The text that the guard returned, if it is known. It is shown if it differs from the
            last answer.
    """
    shown = describe_trace(trace)
    reader = reader_view(trace)
    differs = output is not None and output != trace.attempts[-1].answer and reader is None
    return element(
        "article",
        _ending(shown.ending),
        _quiet(_time(trace.time), shown.cost),
        reader,
        *_attempts(shown.attempts, trace.time.isoformat()),
        block("Returned", [output or ""]) if differs else None,
        class_="demur",
    )


def record_html(record: Record) -> Element:
    """Show a run: its facts, and its attempts as `trace_html` shows them.

    If a guard's answer passed, a fold shows it with its sources too. If the texts of the record
    were redacted, claims are not highlighted in the answer, since offsets refer to the original
    texts.
    """
    shown = describe_record(record)
    cited = cited_of(record)
    return element(
        "article",
        _ending(shown.ending),
        _quiet(_time(record.time), *shown.about, _tags(record.tags)),
        _quiet(shown.cost),
        element("p", REDACTED, class_="demur-why") if record.redacted else None,
        *_attempts(shown.attempts, record.id, record.redacted),
        None if cited is None else sources_fold(cited, record.id),
        fold("About this run", _facts(shown.facts)),
        class_="demur",
    )


def _ending(ending: Ending | None) -> Element | None:
    if ending is None:
        return None
    return element(
        "p",
        element("strong", "The guard’s call", class_="demur-name"),
        pill(ending.look),
        element("span", separated(ending.why, " "), dir="auto"),
        class_="demur-head",
    )


def _attempts(
    attempts: Sequence[ShownAttempt], salt: str, redacted: bool | None = None
) -> Iterator[Element]:
    """Yield the views of attempts; `redacted` is `Record.redacted`, or None for a trace."""
    before: Attempt | None = None
    for number, shown in enumerate(attempts, 1):
        attempt = shown.attempt
        end = trusted(attempt, redacted)
        yield element(
            "section",
            removed_view(shown.removed) if shown.came is None else _came(shown, attempt.feedback),
            element(
                "p",
                element("strong", shown.title, class_="demur-name"),
                pill(shown.look),
                element("span", shown.cost, class_="demur-quiet"),
                class_="demur-head",
            )
            if len(attempts) > 1
            else None,
            *answer_view(attempt, f"{salt} {number}", trusted=end, before=before),
            class_="demur-attempt",
        )
        before = attempt


def _came(shown: ShownAttempt, feedback: Feedback | None) -> Element:
    """Show what the guard did before a later answer."""
    return element(
        "div",
        element("p", shown.came),
        removed_view(shown.removed),
        None if feedback is None else fold("What was told", *_feedback(feedback)),
        class_="demur-between",
    )


def _feedback(feedback: Feedback) -> Iterator[Element]:
    yield element("div", feedback.text, class_="demur-text", dir="auto")
    if feedback.documents:
        yield element("p", "Found for it: ", ", ".join(reference_names(feedback.documents)))
    for error in feedback.errors:
        yield element("p", "A search failed: ", error, class_="demur-why", dir="auto")


def _time(time: datetime) -> Element:
    # `%Z` fails if the name of the time zone has characters that cannot be encoded.
    shown = f"{time:%Y-%m-%d %H:%M:%S} {time.tzname()}"
    return element("time", shown, datetime=time.isoformat())


def _tags(tags: Sequence[str]) -> Element | None:
    return joined(*(element("span", tag, class_="demur-tag") for tag in tags)) if tags else None


def _quiet(*parts: str | None) -> Element:
    return element("p", separated(parts, " · "), class_="demur-quiet")


def _facts(facts: Sequence[tuple[str, str]]) -> Element:
    rows = (joined(element("dt", name), element("dd", value, dir="auto")) for name, value in facts)
    return element("dl", *rows, class_="demur-facts")
