"""Test FEWL's figures: mismatched answers, agreement counts, and the time of a search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from langchain_core.messages import BaseMessage

from benches import made, row_of, values
from colours import Apart, colour, halueval, reply, truthfulqa
from demur_research.tables import TABLES
from demur_research.tables.fewl.figures import box, distribution
from support.fakes import ScriptedModel, isolated

pytest.importorskip("chromadb")
pytestmark = pytest.mark.usefixtures("apart")

SETS = {"truthfulqa": truthfulqa(8)}


def _judging(stage: str, messages: Sequence[BaseMessage]) -> str:
    right = colour(int(isolated("question", messages).rsplit(" ", 1)[1]))
    answer = isolated("answer", messages)
    if "grey" in answer:
        return "perhaps"
    return "yes" if right in answer else "no"


def test_answers_of_neighbours_are_judged_for_the_question(path: Path) -> None:
    """Judge neighbours' answers: two of eight questions share a colour, so one of seven fits."""
    model = ScriptedModel(script=_judging)
    result = made("fewl-v1-figure-2", path, model, SETS)
    own = row_of(result, "the question's own best answer")
    assert (values(result, own.name), own.items, own.undetermined) == ([100], 6, 2)
    assert values(result, "the question's own first incorrect answer") == [0]
    every = row_of(result, "the answers to all neighbours")
    # There are 56 mismatches, and 14 of them mention grey. Of the others, two for each of three
    # colours are right.
    assert (every.items, every.undetermined) == (42, 14)
    assert values(result, every.name) == [pytest.approx(100 * 6 / 42)]
    assert own.spent is not None
    assert own.spent.calls == 1
    # The own answers with grey are two best ones and two wrong ones.
    told = "18 answers are undetermined, the first since the reply is neither: 'perhaps'"
    assert told in result.notes
    assert made("fewl-v2-figure-2", path, None, SETS) == result


def test_questions_are_counted_by_how_many_answers_are_right() -> None:
    found = distribution([[True, True], [False, False], [False, False], [True, None], []])
    assert [(right, one.value) for right, one in found] == [
        (0, pytest.approx(200 / 3)),
        (1, 0),
        (2, pytest.approx(100 / 3)),
    ]
    assert distribution([[None]]) == []


def test_agreement_is_counted_by_side(path: Path) -> None:
    """Let the reference agree with its own colour, and with corrections of other colours."""

    def agreeing(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage != "agreement":
            return reply(stage, messages)
        if isolated("question", messages).endswith("3"):
            return "I cannot say."
        lines = isolated("statements", messages).splitlines()
        return "\n".join(
            f"{line.partition('.')[0]}. {'yes' if 'no part' in line or 'red' in line else 'no'}"
            for line in lines
        )

    sets = {"truthfulqa": truthfulqa(4)}
    result = made(
        "fewl-v1-figure-4", path, ScriptedModel(script=agreeing), sets, options={"wrong": "3"}
    )
    wrong = row_of(result, "scripted: wrong answers that it agrees with")
    # "It is red." is a wrong answer to two of the three questions.
    assert values(result, wrong.name) == [0, 0.5, 1, 1, 1, pytest.approx(2 / 3)]
    assert (wrong.items, wrong.undetermined) == (3, 1)
    assert "scripted: 1 undetermined, the first since the reply cannot be read" in result.notes
    right = values(result, "scripted: corrected answers that it agrees with")
    assert right == [3, 3, 3, 3, 3, 3]
    assert wrong.spent is not None
    assert wrong.spent.calls == 3


def test_the_box_of_some_numbers_by_hand() -> None:
    figures = box(np.array([4.0, 0.0, 2.0, 1.0, 3.0]), seed=0)
    assert [figure.value for figure in figures] == [0, 1, 2, 3, 4, 2]
    median, mean = figures[2], figures[-1]
    assert median.low is not None
    assert mean.low is not None
    assert median.low <= 2 <= (median.high or 0)
    assert 0 <= mean.low < 2


def test_the_search_is_timed_on_every_question(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demur_research.tables.fewl.figures.MiniLM", Apart)
    path.touch()
    sets = {"truthfulqa": truthfulqa(8), "halueval-qa": halueval(4)}
    result = made("fewl-v2-table-9", path, None, sets)
    assert [(row.name, row.items) for row in result.rows] == [("TruthfulQA", 8), ("HaluEval", 4)]
    for row in result.rows:
        each, every = (figure.value if figure else None for figure in row.figures)
        assert each is not None
        assert every == pytest.approx(each * (row.items or 0))
    assert [one and one.paper for one in result.rows[0].figures] == ["0.00225", "1.65"]
    assert not TABLES["fewl-v2-table-9"].asks
