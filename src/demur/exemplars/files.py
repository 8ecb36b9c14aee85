"""A store of exemplars as a file: a line of whose scores count, then a line per question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from demur._jsonl import read_lines, write_lines
from demur.exemplars.entries import KIND, Candidate, Entry, as_line, from_line

Line = tuple[str, dict[str, Candidate]]
"""A question, and its candidates by their keys."""


def write_entries(path: Path, header: Mapping[str, str], entries: Iterable[Entry]) -> None:
    """Write a file, whole or not at all. The same content gives the same bytes.

    Raises:
        OSError: It cannot be written; what was there before is then still there.
    """
    write_lines(path, chain([{"kind": KIND, **header}], map(as_line, entries)))


def read_entries(path: Path) -> tuple[dict[str, str], Iterator[Line]]:
    """Read what `write_entries` wrote: whose scores count, and the questions as they are read.

    Raises:
        ValueError: It holds something else, or is damaged; the message names the line.
        OSError: It cannot be read.
    """
    lines = read_lines(path)
    header = next(lines, (0, None))[1]
    if not isinstance(header, dict) or header.pop("kind", None) != KIND:
        raise ValueError(f"{path} holds no exported exemplars ({KIND} in its first line)")
    if unfit := {key: text for key, text in header.items() if not isinstance(text, str)}:
        raise ValueError(f"{path}, line 1: expected texts that say whose scores count, got {unfit}")
    return header, _questions(path, lines)


def _questions(path: Path, lines: Iterator[tuple[int, Any]]) -> Iterator[Line]:
    for number, line in lines:
        try:
            yield from_line(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
