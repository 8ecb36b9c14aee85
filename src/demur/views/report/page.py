"""Read a log once, and write it as one page that needs nothing else."""

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

from demur._system import owner_only
from demur._text import replace_surrogates
from demur.observe.log import Damaged, Log, answered, summarise
from demur.schema import Threshold
from demur.views import record_html
from demur.views.report.embedding import as_code, digest, packed
from demur.views.report.overview import overview
from demur.views.report.rows import Rows, chunks
from demur.views.report.templating import page_style, template
from demur.views.report.thresholds import evaluator_section

MOST = 10_000
"""The most runs that a report shows, unless `last` gives another number."""
_TOGETHER, _SIGNS = 50, 1_000_000
"""The most runs, and about the most characters of their details, that are packed together."""
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
    """Describe the report that was written."""

    rows: int
    """The number of runs that the report shows, each with its answers."""
    runs: int
    """The number of runs in the log. If there are too many, the newest are shown."""
    damaged: tuple[Damaged, ...]
    """The runs that cannot be read, and were left out."""
    unknown: int
    """The number of labels for runs that are not shown."""
    bytes: int
    """The size of the page in bytes."""


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
    """Write a log as one page for a browser, completely or not at all.

    Counts, verdicts, failures and costs are those of all runs, or of the newest `last`. The
    database sums them up. Thresholds, charts and the list of answers are those of the newest `MOST`
    runs, or of the newest `last`.

    The page needs no network, and runs no script but its own. An existing file is replaced. If
    `out` is a link, the file that it leads to is replaced. Like a log, the page can be read by its
    owner only.

    Args:
        log: The log to read.
        out: The file to write.
        title: The title of the page; None for one with the log's name.
        labels: Whether the first answer of a run is hallucinated, by the run's id. See
            `demur.observe.log.answers.answered`.
        last: How many of the newest runs to report, at least 1. None: count all runs, and show the
            newest `MOST`.
        prices: The price of a million tokens that models read, and of a million that they write, in
            any currency; at least 0.
        threshold: A threshold that was chosen for one of the evaluators, to be marked.

    Raises:
        ValueError: An argument is out of its range, or `out` is the log itself or not an ordinary
            file.
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
    if out.exists() and not out.is_file():  # such as /dev/stdout, which would be replaced
        raise ValueError(f"{out} is no ordinary file: name another file")
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
    """Hold what was read of the log, beside the details."""

    rows: Rows
    damaged: list[Damaged]
    unknown: int


def _read(log: Log, path: Path, labels: Mapping[str, bool], most: int) -> _Read:
    """Read the newest runs, and write their details to a file, those of several runs on a line."""
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
    """Return what the template shows of evaluators and runs, by the names that it uses."""
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
    """Write the page, and return its size in bytes."""
    with open(page, "xb", opener=owner_only) as out:
        for part in parts:
            out.write(replace_surrogates(part).encode())
        out.flush()
        os.fsync(out.fileno())
        return out.tell()


def _static() -> dict[str, Any]:
    """Return the page's style and script, and the policy that lets no other script run."""
    files = resources.files("demur.views.report") / "templates"
    code = (files / "page.js").read_text(encoding="utf-8")
    return {
        "style": page_style(),
        "code": as_code(code),
        "policy": digest(code),
        "columns": _COLUMNS,
    }
