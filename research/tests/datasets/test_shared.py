"""Test that the data sets at hand have as many rows as their READMEs say."""

from __future__ import annotations

import pytest

from data_sets import reading
from support.shared import shared

# The number of rows, including those that are left out, and the counts among them.
ROWS = {
    ("chale", ""): (1347, {"markup": 612}),
    ("chale", "official"): (1347, {"markup": 612}),
    ("truthfulqa", ""): (497, {"both right and wrong": 1, "no comment": 31}),
    ("truthfulqa", "official"): (481, {"both right and wrong": 1, "no comment": 22}),
    ("halueval-qa", ""): (625, {"right inside the wrong": 99}),
    ("halueval-qa", "official"): (625, {"right inside the wrong": 99}),
    ("halueval-general", ""): (2707, {"span not in the answer": 70}),
    ("phd", ""): (187, {"wrong part in a factual passage": 2}),
    ("phd", "official"): (187, {"wrong part in a factual passage": 2}),
    ("wikibio-gpt3", ""): (144, {"sentence without a place": 0}),
    ("refchecker", ""): (1316, {"abstained": 139}),
    ("refchecker", "official"): (1316, {"abstained": 139}),
    ("haltt4llm", ""): (1632, {"question twice": 2}),
}


@pytest.mark.parametrize(("name", "folder"), ROWS, ids=[" ".join(one).strip() for one in ROWS])
def test_the_shared_rows_are_read(name: str, folder: str) -> None:
    found = reading(name, shared(folder))
    rows, counts = ROWS[name, folder]
    assert len(found) + sum(found.left_out.values()) == rows
    counted = {**found.left_out, **found.kept}
    assert {name: counted[name] for name in counts} == counts
    assert found.missing == ()
