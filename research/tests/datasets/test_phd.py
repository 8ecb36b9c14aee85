"""PHD's passages, in both forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demur_research.datasets.phd import read_passages, read_phd_records
from publishers import PASSAGES, as_lines, dump, passage, published
from support.shared import shared


def test_both_forms_hold_the_same_passages(tmp_path: Path) -> None:
    forms = [published(tmp_path)[0], as_lines(tmp_path)[0]]
    for path in forms:
        found = {(one.entity, one.domain, one.factual, one.text) for one in read_passages(path)}
        assert found == {
            (entity, domain, label == "factual", passage(entity))
            for entity, domain, label in PASSAGES
        }


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({"wiki_2w": []}, "expected an object with the lists wiki_10w, wiki_1000w, wiki_1y"),
        ({}, "expected an object with the lists"),
        ("text", "expected an object with the lists"),
        ({"wiki_10w": {}}, "wiki_10w: expected a list of objects"),
        ({"wiki_10w": [{"entity": "A", "AI": "B", "label": "true"}]}, "wiki_10w: row 1, label: .*"),
        ({"wiki_1y": [{"entity": "A", "label": "factual"}]}, "wiki_1y: row 1, AI: Field required"),
        ({"wiki_10w": []}, "it holds no passage"),
        ([], "it holds no passage"),
    ],
    ids=["key", "empty", "text", "object", "label", "passage", "none", "no lines"],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, held: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_passages(dump(tmp_path / "data.json", held))


def test_the_publishers_own_files_are_read() -> None:
    passages = read_passages(shared("official", "phd", "PHD_benchmark.json"))
    records = read_phd_records(shared("official", "phd"), passages)
    assert records.by_key.keys() == {one.key for one in passages}
    assert records.left_over == ()
