"""Check what is true of every data set's rows, and make one row of a made-up file."""

from __future__ import annotations

import json
from pathlib import Path

from demur_research.datasets import DATA_SETS, read
from demur_research.datasets.rows import LabelledRow, Reading


def reading(name: str, path: Path) -> Reading:
    """Return the rows of a data set, after checking what is true of every data set."""
    known, found = DATA_SETS[name], read(name, path)
    assert found.left_out.keys() <= known.filters.keys()
    assert found.kept.keys() <= known.traps.keys()
    keys = [row.key for row in found]
    assert len({*keys}) == len(keys)
    for row in found:
        _check(row)
    return found


def _check(row: LabelledRow) -> None:
    named = [answer.name for answer in row.answers]
    assert named == [None] or None not in named
    assert len({*named}) == len(named) > 0
    for answer in row.answers:
        starts = [part.start for part in answer.parts]
        assert starts == sorted(starts)
        assert all(0 <= one.start < one.end <= len(answer.text) for one in answer.parts)
    line = row.as_line()
    assert json.loads(json.dumps(line, allow_nan=False)) == line
