"""Test FEWL on TruthfulQA and on HaluEval."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benches import made, row_of, values
from colours import halueval, knowing, truthfulqa
from demur_research.datasets.rows import Answer
from demur_research.tables.fewl.truthfulqa import question_of

pytest.importorskip("chromadb")
pytestmark = pytest.mark.usefixtures("apart")

OPTIONS = {"similarity": "rouge", "wrong": "3"}


def test_the_best_answer_is_no_rival_of_itself() -> None:
    row = truthfulqa(1)[0]
    best = row.answers[0].text
    again = replace(row, answers=(*row.answers, Answer(f" {best.upper()}", False, "correct-2")))
    assert question_of(again).answers == (
        "red, as it is painted.",
        "green, as it is painted.",
        "The colour of it is red.",
        "It is blue.",
    )
    assert question_of(again).incorrect == ("green, as it is painted.", "It is blue.")


def test_best_answers_that_score_highest_are_counted(path: Path) -> None:
    rows = truthfulqa(4)
    rows[0] = replace(
        rows[0], answers=(Answer("I have no comment.", False, "best"), *rows[0].answers[1:])
    )
    result = made("fewl-v1-table-3", path, knowing(), {"truthfulqa": rows}, options=OPTIONS)
    single = row_of(result, "single + no penalty (single)")
    # The reference gives the best answers, except for the one that says nothing.
    assert values(result, single.name) == [3, 75, 0, 75, 0]
    assert [one and one.paper for one in single.figures] == [
        *("GPT-3.5 172±3.49, GPT-4 178±2.68", "", "", "", ""),
    ]
    count = single.figures[0]
    assert count is not None
    assert (count.low, count.high) == (1, 4)
    assert 'The best answer is "I have no comment" for 1 of 4 questions.' in result.notes
    # Of a best answer and its longer form, the best is never the longest.
    assert values(result, "the longest answer")[0] == 0


def test_the_shortest_answer_wins_on_halueval_and_that_is_said(path: Path) -> None:
    result = made("fewl-v2-table-14", path, knowing(), {"halueval-qa": halueval()}, options=OPTIONS)
    assert values(result, "the shortest answer") == [100, 0]
    assert row_of(result, "the shortest answer").floor
    assert "97.3 %" in result.notes[0]
    assert values(result, "FEWL (Ours) (fewl)")[0] == 100
