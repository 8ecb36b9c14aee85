"""Sum up the findings of a run of pytest, and write them as a page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from demur._text import one_line
from demur.observe import Record
from demur.observe.log import open_log, records, summarise
from demur.testing.failure import causes
from demur.views import counted, plural, usage_line

_MOST_NAMED = 10
"""The most undetermined answers that a summary names."""


def summary(path: Path, page: Path | None) -> Iterator[str]:
    """Yield the lines that sum up a log: verdicts, mean scores, costs, and what is undetermined.

    Args:
        path: The log.
        page: The page to write; None for no page.

    Raises:
        DemurError, OSError, ValueError: The page cannot be written. This is raised last.
    """
    with open_log(path) as log:
        totals = summarise(log)
        yield f"{plural(totals.runs, 'answer')} judged: {counted(totals.verdicts)}"
        for group in totals.groups:
            mean = "no scores" if group.mean is None else f"mean score {group.mean:.2f}"
            yield f"{one_line(group.evaluator)}: {mean}"
        yield f"answering: {usage_line(totals.answering)}"
        yield f"judging: {usage_line(totals.judging)}"
        found = (record for record in records(log) if isinstance(record, Record))
        undecided = [record for record in found if record.verdict == "undetermined"]
        for record in undecided[:_MOST_NAMED]:
            yield one_line(f"undetermined: {record.name}: {causes(record.evaluations)}")
        if len(undecided) > _MOST_NAMED:
            yield f"and {len(undecided) - _MOST_NAMED:,} more"
        if page is not None:
            from demur.views.report import write_report

            written = write_report(log, page, title="demur: answers of this test run")
            yield f"report: {plural(written.rows, 'answer')} written to {page}"
