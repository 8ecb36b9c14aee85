"""Read and write the table of counts, and compare it with new counts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from .seen import Counts

_FIGURES = tuple(field.name for field in fields(Counts))
_BAND = 0.1
"""The share by which allocated memory may differ from the record. All other figures are exact."""
_PYTHON = f"CPython {sys.version_info[0]}.{sys.version_info[1]}"
_HEAD = f"""\
# What a run of each workload of tools/counts/workloads.py asks for. `python -m tools.counts`
# compares, and `python -m tools.counts --write` writes what it finds. prompt, reply: tokens.
# allocated: kB, within {_BAND:.0%}, and compared on the Python that wrote them: {{python}}."""
_WRITTEN_ON = re.compile(r"wrote them: (.+)\.$", re.MULTILINE)


@dataclass(frozen=True)
class Table:
    """Hold the counts on record."""

    rows: Mapping[str, Counts]
    python: str = _PYTHON
    """The Python on which `allocated` was measured."""

    @property
    def of_this_python(self) -> bool:
        """Return whether allocated memory can be compared with this Python's."""
        return self.python == _PYTHON


def read(file: Path) -> Table:
    """Read a table.

    Raises:
        ValueError: The file holds something else; the message quotes the line.
    """
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    rows = {}
    for line in text.splitlines():
        name, *numbers = re.split(r"\s{2,}", line.strip())
        if not name or line.startswith("#") or numbers == [*_FIGURES]:
            continue
        if len(numbers) != len(_FIGURES) or not all(map(str.isdigit, numbers)):
            raise ValueError(
                f"{file}: expected a name and {len(_FIGURES)} numbers ({', '.join(_FIGURES)}), two "
                f"spaces between them, got {line!r}"
            )
        rows[name] = Counts(*map(int, numbers))
    written_on = _WRITTEN_ON.search(text)
    return Table(rows, written_on[1] if written_on else _PYTHON)


def written(rows: Mapping[str, Counts]) -> str:
    """Return the text of a table."""
    return "\n".join([_HEAD.format(python=_PYTHON), *_aligned(rows), ""])


def kept_within_band(found: Counts, recorded: Counts | None) -> Counts:
    """Return the new counts, but keep the recorded `allocated` if the two are within the band."""
    if recorded is None or _outside(recorded.allocated, found.allocated):
        return found
    return replace(found, allocated=recorded.allocated)


def differences(recorded: Table, found: Mapping[str, Counts]) -> list[str]:
    """Return lines that show each figure that differs from the record; none if all are equal."""
    lines = []
    for name, counts in found.items():
        if name not in recorded.rows:
            lines.append(f"{name:<32} is not on record")
            continue
        before = asdict(recorded.rows[name])
        for figure, number in asdict(counts).items():
            if figure == "allocated":
                differs = recorded.of_this_python and _outside(before[figure], number)
            else:
                differs = before[figure] != number
            if differs:
                change = number - before[figure]
                lines.append(
                    f"{name:<32} {figure:<10} {before[figure]:>8} {number:>8} {change:>+8}"
                )
    heading = f"{'workload':<32} {'figure':<10} {'expected':>8} {'found':>8} {'change':>8}"
    return [heading, *lines] if lines else []


def _outside(recorded: int, found: int) -> bool:
    return abs(found - recorded) > _BAND * recorded


def _aligned(rows: Mapping[str, Counts]) -> Iterator[str]:
    width = max(map(len, rows), default=0)
    yield f"{'workload':<{width}}" + "".join(f"  {name:>9}" for name in _FIGURES)
    for name, counts in rows.items():
        yield f"{name:<{width}}" + "".join(f"  {number:>9}" for number in asdict(counts).values())
