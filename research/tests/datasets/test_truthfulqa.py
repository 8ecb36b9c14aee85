"""Test TruthfulQA: the CSV files of 817 and of 790 questions, and JSON lines."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from data_sets import reading

HEADS = ("Type", "Category", "Question", "Best Answer", "Correct Answers", "Incorrect Answers")
ROWS = [
    ("Adversarial", "Moon", "What is in it?", "Rock", "Rock; Stone ; Rock", "Cheese; Milk"),
    ("Plain", "Sums", "What is lost?", "I have no comment", "I have no comment", "A wall;A door"),
    ("Plain", "Seas", "Which sea?", "Unknown", "Unknown; Any", "The red one; Unknown"),
]


def _csv(path: Path, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([heads, *rows])
    return path


def test_the_best_answer_is_named_and_the_others_are_counted(tmp_path: Path) -> None:
    found = reading("truthfulqa", _csv(tmp_path / "TruthfulQA.csv", HEADS, ROWS))
    assert [(one.name, one.text, one.hallucinated) for one in found.rows[0].answers] == [
        ("best", "Rock", False),
        ("correct-1", "Stone", False),
        ("incorrect-1", "Cheese", True),
        ("incorrect-2", "Milk", True),
    ]
    told = {"category": "Moon", "type": "Adversarial", "best_incorrect": None}
    assert found.rows[0].metadata == told


def test_a_question_whose_answer_is_right_and_wrong_is_left_out_and_counted(tmp_path: Path) -> None:
    found = reading("truthfulqa", _csv(tmp_path / "TruthfulQA.csv", HEADS, ROWS))
    assert [row.key for row in found] == ["1", "2"]
    assert found.left_out == {"both right and wrong": 1}
    assert found.kept == {"no comment": 1}


def test_the_file_of_2025_names_the_wrong_answer_to_choose(tmp_path: Path) -> None:
    chosen = ["Milk.", "A window"]
    rows = [(*row, best) for row, best in zip(ROWS, chosen, strict=False)]
    heads = (*HEADS, "Best Incorrect Answer")
    found = reading("truthfulqa", _csv(tmp_path / "TruthfulQA.csv", heads, rows))
    assert [row.metadata["best_incorrect"] for row in found] == ["incorrect-2", "incorrect-3"]
    last = found.rows[1].answers[-1]
    assert (last.name, last.text, last.hallucinated) == ("incorrect-3", "A window", True)


def test_a_row_of_another_length_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="row 1 has more or fewer cells than the first line"):
        reading("truthfulqa", _csv(tmp_path / "TruthfulQA.csv", HEADS, [ROWS[0][:-1]]))
