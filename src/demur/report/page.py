"""The report: a log read once, and written as one page that needs nothing else."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup

from demur import _owner_only as private
from demur._text import replace_surrogates
from demur.observe.log import Damaged, Log, answered, summarise
from demur.report.embedding import as_code, digest, packed
from demur.report.overview import overview
from demur.report.rows import Rows, chunks
from demur.report.templating import page_style, template
from demur.report.thresholds import evaluator_section
from demur.schema import Threshold
from demur.views import record_html

MOST = 10_000
"""Runs that a report shows, unless it is told another number."""
_TOGETHER, _SIGNS = 50, 1_000_000
"""So many runs, and about so many signs of their details, are packed together at most."""
_COLUMNS = (
    ("score", "Score"),
    ("verdict", "Verdict"),
    ("label", "Label"),
    ("question", "Question"),
    ("answer", "First answer"),
    ("model", "Model"),
    ("time", "Time"),
    ("attempts", "Answers"),
    ("outcome", "Guard"),
)


@dataclass(frozen=True)
class Written:
    """What was written."""

    rows: int
    """Runs that the report shows, each with its answers."""
    runs: int
    """Runs in the log: of more than there was room for, the newest are shown."""
    damaged: tuple[Damaged, ...]
    """Runs that cannot be read, and were left out."""
    unknown: int
    """Labels of runs that are not shown."""
    bytes: int
    """The size of the page."""


def write_report(
    log: Log,
    out: Path,
    *,
    title: str | None = None,
    labels: Mapping[str, bool] | None = None,
    last: int | None = None,
    prices: tuple[float, float] | None = None,
    threshold: Threshold | None = None,
) -> Written:
    """Write what a log holds as one page for a browser: whole or not at all.

    The database sums up counts, verdicts, failures and cost: of all runs, or of the newest `last`.
    Thresholds, charts and the list of answers are of the newest `MOST`, or `last`.

    The page needs no network, and runs no script but its own. A file that is there is replaced,
    where `out` is a link the one that it leads to; like a log, it can be read by its owner only.

    Args:
        log: The log.
        out: The file.
        title: The page's; the log's name if None.
        labels: By the runs' ids, whether the first answer is hallucinated, see
            `demur.observe.log.answers.answered`.
        last: The newest so many runs only, at least 1; `MOST` if None.
        prices: Of a million tokens that models read, and of a million that they write, in any
            currency; not negative.
        threshold: One that was chosen for one of the evaluators, to be marked.

    Raises:
        ValueError: An argument is out of its range; `out` is the log itself, or no ordinary file.
        OSError: The file cannot be written.
        LogError: The log is damaged.
        MissingExtraError: Jinja or vl-convert is not installed.
    """
    if last is not None and last < 1:
        raise ValueError(f"last: expected at least 1, got {last}")
    if any(not 0 <= price < math.inf for price in prices or ()):
        raise ValueError(f"prices: expected numbers of at least 0, got {prices}")
    if (
        log.path is not None
        and log.path.exists()
        and out.exists()
        and os.path.samefile(log.path, out)
    ):
        raise ValueError(f"{out} is the log itself: name another file")
    if out.exists() and not out.is_file():  # such as /dev/stdout, whose place would be taken
        raise ValueError(f"{out} is no ordinary file: name one")
    place = Path(os.path.realpath(out))
    runs, most = len(log), MOST if last is None else last
    page_template = template("page.html")
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".demur-") as folder:
        page, details = Path(folder) / "page", Path(folder) / "details"
        read = _read(log, details, labels or {}, most)
        totals = summarise(log, last=last)
        values = overview(
            log.name if log.path is None else log.path.name,
            totals,
            read.rows,
            title=title,
            runs=runs,
            shown=min(totals.runs, most),
            damaged=read.damaged,
            unknown=read.unknown,
            prices=prices,
            threshold=threshold,
        )
        context = {**_static(), **values, **_of_evaluators(read.rows, threshold)}
        with details.open("rb") as parts:
            parts_of_page = page_template.generate(**context, details=map(_markup, parts))
            written = _put(page, parts_of_page)
        os.replace(page, place)
    return Written(len(read.rows.ids), runs, tuple(read.damaged), read.unknown, written)


@dataclass(frozen=True)
class _Read:
    """What was read of the log, besides the details."""

    rows: Rows
    damaged: list[Damaged]
    unknown: int


def _read(log: Log, path: Path, labels: Mapping[str, bool], most: int) -> _Read:
    """Read the newest runs, and write their details to a file, some of them on a line."""
    rows = Rows()
    damaged = [*log.damaged]
    first = 0

    def details() -> Iterator[str]:
        for answer in answered(log, labels=labels, last=most):
            if isinstance(answer, Damaged):
                damaged.append(answer)
            else:
                rows.add(answer)
                yield record_html(answer.record)

    with path.open("wb") as out:
        for some in chunks(details(), _TOGETHER, _SIGNS):
            head = f'<script type="text/plain" data-first="{first}">'
            out.write(head.encode() + packed(some) + b"</script>\n")
            first += len(some)
    return _Read(rows, damaged, len(labels.keys() - set(rows.ids)))


def _of_evaluators(rows: Rows, threshold: Threshold | None) -> dict[str, Any]:
    """What the template shows of each evaluator and of each run, by its names."""
    evaluators = [
        evaluator_section(
            evaluator,
            rows,
            threshold if threshold and threshold.evaluator == evaluator.name else None,
        )
        for evaluator in rows.evaluators.values()
    ]
    return {"evaluators": evaluators, "data": rows.as_json()}


def _markup(line: bytes) -> Markup:
    return Markup(line.decode())


def _put(page: Path, parts: Iterable[str]) -> int:
    """Write the page; how many bytes it has."""
    with open(page, "xb", opener=private.opened) as out:
        for part in parts:
            out.write(replace_surrogates(part).encode())
        out.flush()
        os.fsync(out.fileno())
        return out.tell()


def _static() -> dict[str, Any]:
    """The page's style and script, and the policy that lets no other script run."""
    files = resources.files("demur.report") / "templates"
    code = (files / "page.js").read_text(encoding="utf-8")
    return {
        "style": page_style(),
        "code": as_code(code),
        "policy": digest(code),
        "columns": _COLUMNS,
    }
