"""Test the entries by which `demur compare` finds the data sets."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from publishers import as_lines

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def _rows() -> Any:
    held = PYPROJECT.read_text(encoding="utf-8")
    found = re.search(
        r'^\[project\.entry-points\."demur\.data_sets"\]\nresearch = "(.+)"$', held, re.M
    )
    assert found
    return EntryPoint("research", found[1], "demur.data_sets").load()


def test_the_entry_point_gives_lines_with_labels(tmp_path: Path) -> None:
    lines = list(_rows()("phd", as_lines(tmp_path)[0]))
    assert lines[1] == {
        "id": "phd-1",
        "question": None,
        "answer": "Blue Whale (animal) is known.\nMuch is said of it.",
        "hallucinated": True,
        "metadata": {"entity": "Blue Whale (animal)", "domain": "low", "wrong_part": None},
    }


def test_an_unknown_name_is_told_with_those_that_are_known() -> None:
    with pytest.raises(LookupError, match=r"unknown data set 'pdh': expected one of chale, .*phd"):
        _rows()("pdh", None)


def test_what_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="PHD is not in"):
        _rows()("phd", tmp_path)
