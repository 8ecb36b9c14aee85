"""Test that the page on judges has the figures of the table in the code."""

from __future__ import annotations

import re

import pytest

from demur.similarity import NAMED
from support.pages import DOCS

PAGE = (DOCS / "judges.md").read_text()


def rows(name: str) -> list[list[str]]:
    """Return the cells of the page's rows about a judge."""
    return [
        line.strip("| ").split(" | ") for line in re.findall(rf"^\| `{name}` \|.*$", PAGE, re.M)
    ]


@pytest.mark.parametrize("name", NAMED)
def test_each_named_judge_has_its_row(name: str) -> None:
    known = NAMED[name]
    asked = "its name" if known.judge.weights else "an endpoint"
    accuracy = "" if known.accuracy is None else str(known.accuracy)
    cells = [cell.strip() for cell in rows(name)[0]]
    wanted = [f"`{name}`", asked, known.size, known.licence, accuracy, known.measured_by]
    assert [*cells, *[""] * 6][:6] == wanted
    if known.served_as:
        assert rows(name)[1] == [f"`{name}`", known.served_as]


def test_there_is_no_row_of_another_judge() -> None:
    table = PAGE.split("## Which judge")[1].split("\n## ")[0]
    assert {*re.findall(r"^\| `([\w.-]+)` \|", table, re.MULTILINE)} == {"small", "local", *NAMED}
