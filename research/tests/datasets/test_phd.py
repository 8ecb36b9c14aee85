"""Test PHD's passages in both of their forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_sets import reading
from publishers import PASSAGES, as_lines, dump, passage, published


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
