"""Test the tables about short answers: bare ones, with a scripted judge, and markers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, made, row_of, supporting, values
from demur_research.texts.bare import FORMS, GROUPS, bare_answers, markers
from support.fakes import isolated

RIGHT = {(one.question, one.answer) for one in bare_answers() if one.right}


def test_there_are_eighty_of_each_group_and_half_are_set_apart() -> None:
    every = bare_answers()
    for held_out in (False, True):
        counts = Counter(one.group for one in every if one.held_out is held_out)
        assert counts == dict.fromkeys(GROUPS, 40)
    assert {one.form for one in every} == {*FORMS}
    assert all(one.right is (one.group == "right") for one in every)
    assert all(len(one.answer.split()) <= 4 for one in every)


def _knowing(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    claim = isolated("claim", messages)
    return supporting(0.9 if any(f"{q} {a}" == claim for q, a in RIGHT) else 0.1)


def test_a_judge_that_reads_each_answer_with_its_question_tells_them(tmp_path: Path) -> None:
    model = LocalJudge(script=_knowing)
    found = made("bare", tmp_path / "r", model, options={"judges": "local"})
    for part in ("in sight", "set apart"):
        elsewhere, near, right = values(found, f"local, {part}")
        assert (elsewhere, near) == (0, 0)
        assert right is not None
        assert (
            right >= 90
        )  # a few are read without it: "100 °C" has a word that is a verb in French
        assert row_of(found, f"local, {part}").items == 120


def test_few_answers_are_taken_for_markers_and_few_markers_for_answers(tmp_path: Path) -> None:
    found = made("markers", tmp_path / "r")
    answers, taken = values(found, "all")
    assert row_of(found, "all").items == len(markers()) == 160
    assert answers is not None
    assert taken is not None
    assert max(answers, taken) <= 10
