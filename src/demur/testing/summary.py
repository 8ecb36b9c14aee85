"""Sum up the findings of a run of pytest, and write them as a page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from demur._text import one_line
from demur.observe import Record
from demur.observe.log import open_log, records, summarise
from demur.views import terminal

_MOST_NAMED = 10
"""The most undetermined answers that a summary names."""


def summary(path: Path) -> Iterator[str]:
    """Yield the lines that sum up a log: verdicts, mean scores, costs, and what is undetermined."""
    with open_log(path) as log:
        totals = summarise(log)
        counts = {verdict.replace("_", " "): count for verdict, count in totals.verdicts.items()}
        told = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items() if count)
        yield f"{_answers(totals.runs)} judged: {told}"
        for group in totals.groups:
            mean = "no scores" if group.mean is None else f"mean score {group.mean:.2f}"
            yield f"{one_line(group.evaluator)}: {mean}"
        yield f"answering: {terminal.usage_line(totals.answering)}"
        yield f"judging: {terminal.usage_line(totals.judging)}"
        named = 0
        for record in records(log):
            if isinstance(record, Record) and record.verdict == "undetermined":
                named += 1
                why = [
                    one.cause or one.error or "" for one in record.evaluations if one.undetermined
                ]
                if named <= _MOST_NAMED:
                    yield one_line(f"undetermined: {record.name}: {'; '.join(why)}")
        if named > _MOST_NAMED:
            yield f"and {named - _MOST_NAMED:,} more"


def write_page(path: Path, page: Path) -> str:
    """Write the report of a run, and return a line that says so."""
    from demur.report import write_report

    with open_log(path) as log:
        written = write_report(log, page, title="demur: answers of this test run")
    return f"report: {_answers(written.rows)} written to {page}"


def _answers(count: int) -> str:
    return "1 answer" if count == 1 else f"{count:,} answers"
