"""Format a table's rows for a terminal, for Markdown, and for other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from demur_research.bench import Figure, Result, Row

_COST = ("calls", "tokens", "seconds")


def heads(result: Result) -> list[str]:
    """Return the headings of the columns that have content."""
    found = ["row"]
    for at, column in enumerate(result.columns):
        found += [column.head, "the paper"] if _has_paper(result, at) else [column.head]
    if any(row.items is not None for row in result.rows):
        found.append("items")
    if any(row.undetermined for row in result.rows):
        found.append("undetermined")
    if any(row.spent is not None for row in result.rows):
        found += [f"{what} an item" for what in _COST]
    return found


def cells(result: Result) -> list[list[str]]:
    """Return the cells of every row, under `heads`."""
    known = heads(result)
    return [[*_cells(result, row, known)] for row in result.rows]


def _cells(result: Result, row: Row, known: Sequence[str]) -> Iterator[str]:
    yield f"{row.name} (floor)" if row.floor else row.name
    for at, figure in enumerate(row.figures):
        yield _shown(figure, result.columns[at].digits)
        if _has_paper(result, at):
            yield (figure.paper if figure else "") or "-"
    if "items" in known:
        yield "-" if row.items is None else f"{row.items:,}"
    if "undetermined" in known:
        yield str(row.undetermined)
    if "calls an item" in known:
        spent = row.spent
        if spent is None:
            yield from ("-", "-", "-")
            return
        yield f"{spent.calls:.1f}"
        yield "-" if spent.tokens is None else f"{spent.tokens:,.0f}"
        yield f"{spent.seconds:.1f}"


def _has_paper(result: Result, at: int) -> bool:
    return any(figure.paper for row in result.rows if (figure := row.figures[at]))


def _shown(figure: Figure | None, digits: int) -> str:
    if figure is None or figure.value is None:
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.{digits}f}"
    return f"{figure.value:.{digits}f} [{figure.low:.{digits}f}, {figure.high:.{digits}f}]"


def as_markdown(result: Result) -> str:
    """Return the table in Markdown, followed by its notes."""
    lines = [_line(heads(result)), "|---" * len(heads(result)) + "|", *map(_line, cells(result))]
    if result.notes:
        lines += ["", *(f"- {note}" for note in result.notes)]
    return "\n".join(lines)


def _line(texts: Sequence[str]) -> str:
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in texts)} |"


def as_csv(result: Result) -> str:
    """Return the table as comma-separated values.

    Each figure has three columns and the paper's figure has one.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ["row", "floor", "items", "undetermined", *_COST]
    for column in result.columns:
        head += [f"{column.head}{what}" for what in ("", ", low", ", high", ", the paper")]
    writer.writerow(head)
    for row in result.rows:
        spent = row.spent and (row.spent.calls, row.spent.tokens, row.spent.seconds)
        line: list[Any] = [row.name, row.floor, row.items, row.undetermined, *(spent or [None] * 3)]
        for figure in row.figures:
            line += (
                [None] * 4
                if figure is None
                else [figure.value, figure.low, figure.high, figure.paper]
            )
        writer.writerow(line)
    return out.getvalue()


def as_json(name: str, result: Result) -> str:
    """Return the table as one line of JSON."""
    rows = [
        {
            "row": row.name,
            "floor": row.floor,
            "items": row.items,
            "undetermined": row.undetermined,
            "spent": row.spent and {what: getattr(row.spent, what) for what in _COST},
            "figures": [
                figure
                and {
                    "value": figure.value,
                    "interval": None if figure.low is None else [figure.low, figure.high],
                    "paper": figure.paper or None,
                }
                for figure in row.figures
            ],
        }
        for row in result.rows
    ]
    told = {
        "table": name,
        "columns": [column.head for column in result.columns],
        "rows": rows,
        "notes": result.notes,
    }
    return json.dumps(told, allow_nan=False, ensure_ascii=False)
