"""The biographies that Reverse Validation was tried on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demur_research.datasets.wikibio import read_biographies, read_wikibio_records
from publishers import biographies, dump
from support.shared import shared

ROW = {"id": "a", "entity": "Ann ", "passage": "Ann.", "in_rv_subset": True}


def test_the_subset_is_read_with_how_much_of_it_is_wrong(tmp_path: Path) -> None:
    data, folder = biographies(tmp_path)
    found = read_biographies(data)
    assert [one.ratio for one in found] == [0.5, 1.0, 0.25, 1.0]
    records = read_wikibio_records(folder, found)
    assert list(records.by_key) == ["wikibio-0", "wikibio-1", "wikibio-2"]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({**ROW, "labels": ["accurate"]}, "row 1 has only accurate sentences, so it cannot be in"),
        ({**ROW, "entity": None, "labels": ["major_inaccurate"]}, "row 1 has no entity"),
        ({**ROW, "labels": []}, "row 1, labels"),
        ({**ROW, "labels": ["wrong"]}, "row 1, labels.0"),
        ({**ROW, "labels": ["accurate"], "in_rv_subset": False}, "no passage with in_rv_subset"),
    ],
    ids=["accurate", "entity", "empty", "label", "subset"],
)
def test_a_row_of_another_form_is_refused(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_biographies(dump(tmp_path / "wikibio.jsonl", [row]))


def test_of_the_published_lists_those_are_joined_that_the_data_has() -> None:
    passages = read_biographies(shared("wikibio_gpt3", "wikibio.jsonl"))
    records = read_wikibio_records(shared("official", "phd"), passages)
    assert (len(passages), len(records.by_key), len(records.left_over)) == (118, 98, 14)
