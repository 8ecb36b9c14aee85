"""PHD's passages, in both forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data_sets import reading
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


@pytest.mark.parametrize("form", ["published", "lines"])
def test_rows_have_the_passage_with_its_label_and_its_entity(tmp_path: Path, form: str) -> None:
    path = published(tmp_path)[0] if form == "published" else as_lines(tmp_path)[0]
    found = reading("phd", path)
    assert [(row.metadata["entity"], row.metadata["domain"]) for row in found] == [
        (entity, domain) for entity, domain, _ in PASSAGES
    ]
    assert [(row.answers[0].text, row.answers[0].hallucinated) for row in found] == [
        (passage(entity), label == "non-factual") for entity, _, label in PASSAGES
    ]
    if form == "published":
        places = ["wiki_10w 1", "wiki_10w 2", "wiki_1000w 1", "wiki_1y 1", "wiki_1y 2"]
        assert [row.key for row in found] == places


def test_what_is_said_of_wrong_parts_is_kept_and_what_may_mislead_is_counted(
    tmp_path: Path,
) -> None:
    row = {"entity": " Iron ", "AI": "Iron melts at 6000.", "label": "non-factual"}
    parts = [6000, "melts; at", "at", None]
    rows = [{**row, "entity": f" Iron {at} ", "wrong_part": part} for at, part in enumerate(parts)]
    rows[2]["label"] = "factual"
    found = reading("phd", dump(tmp_path / "PHD_benchmark.json", {"wiki_1y": rows}))
    assert [row.metadata["wrong_part"] for row in found] == ["6000", "melts; at", "at", None]
    assert found.rows[0].metadata["entity"] == "Iron 0"
    counts = {"wrong part in a factual passage": 1, "wrong part not in the passage": 1}
    assert found.kept == counts


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
