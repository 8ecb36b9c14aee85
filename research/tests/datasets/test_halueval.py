"""Test HaluEval's pairs and its judged answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data_sets import reading
from publishers import dump

PAIR = {
    "knowledge": "It is red.It is big.",
    "question": "Which colour?",
    "right_answer": "red",
    "hallucinated_answer": "It is blue.",
}
JUDGED = {
    "ID": "7",
    "user_query": "Say two things.",
    "chatgpt_response": "Iron floats. Iron rusts. Iron floats.",
    "hallucination": "yes",
    "hallucination_spans": ["Iron rusts.", "Iron floats."],
}


def _json_lines(path: Path, *lines: dict[str, Any]) -> Path:
    """Write JSON lines to a file whose name does not say so, as the publisher has them."""
    return dump(path.with_suffix(".jsonl"), lines).rename(path)


def test_pairs_are_read_with_their_knowledge_and_traps_are_counted(tmp_path: Path) -> None:
    inside = {**PAIR, "hallucinated_answer": "Not red but blue.", "knowledge": "Red. Big."}
    found = reading("halueval-qa", _json_lines(tmp_path / "qa_data.json", PAIR, inside))
    assert [row.key for row in found] == ["1", "2"]
    assert found.rows[0].contexts == ("It is red.It is big.",)
    assert [(one.name, one.text, one.hallucinated) for one in found.rows[0].answers] == [
        ("right", "red", False),
        ("hallucinated", "It is blue.", True),
    ]
    assert found.kept == {"right inside the wrong": 1, "sentences joined": 1}


def test_judged_answers_are_read_with_the_places_of_their_spans(tmp_path: Path) -> None:
    right = {**JUDGED, "ID": "8", "hallucination": "no", "hallucination_spans": []}
    remark = {**JUDGED, "ID": "9", "hallucination_spans": ["it says nothing", "Iron rusts."]}
    bare = {**JUDGED, "ID": "10", "hallucination_spans": ["incomplete"]}
    path = _json_lines(tmp_path / "general_data.json", JUDGED, right, remark, bare)
    found = reading("halueval-general", path)
    answers = [row.answers[0] for row in found]
    assert [one.hallucinated for one in answers] == [True, False, True, True]
    assert [[one.text[part.start : part.end] for part in one.parts] for one in answers] == [
        ["Iron floats.", "Iron rusts."],
        [],
        ["Iron rusts."],
        [],
    ]
    assert found.kept == {"span not in the answer": 2, "hallucinated without a span": 1}


def test_rows_of_one_id_are_told_apart_by_their_places(tmp_path: Path) -> None:
    lines = [{**JUDGED, "ID": name} for name in ("1", "ID", "3", "ID")]
    found = reading("halueval-general", _json_lines(tmp_path / "general_data.json", *lines))
    assert [row.key for row in found] == ["1", "ID 2", "3", "ID 4"]
