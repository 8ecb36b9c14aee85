"""Test the tables about short answers: bare ones, with a scripted judge, and markers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, made, row_of, supporting, values
from demur import Sample
from demur.evaluators.refchecker.coverage import complete
from demur_research.texts.bare import FORMS, GROUPS, bare_answers, markers
from support.fakes import isolated

RIGHT = {one.context: one.answer for one in bare_answers() if one.right}


def test_there_are_eighty_of_each_group_and_half_are_set_apart() -> None:
    every = bare_answers()
    for held_out in (False, True):
        counts = Counter(one.group for one in every if one.held_out is held_out)
        assert counts == dict.fromkeys(GROUPS, 40)
    assert {one.form for one in every} == {*FORMS}
    assert all(one.right is (one.group == "right") for one in every)
    assert all(len(one.answer.split()) <= 4 for one in every)


def _knowing(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    context, claim = isolated("reference", messages), isolated("claim", messages)
    return supporting(0.9 if claim.endswith(RIGHT.get(context, "nothing")) else 0.1)


def test_a_judge_that_knows_the_right_ones_tells_them(tmp_path: Path) -> None:
    model = LocalJudge(script=_knowing)
    found = made("bare", tmp_path / "r", model, options={"judges": "local"})
    for part in ("in sight", "set apart"):
        assert values(found, f"local, {part}") == [0, 0, 100]
        assert row_of(found, f"local, {part}").items == 120


def test_nearly_all_are_read_with_their_question() -> None:
    claims = [
        (one, complete((), Sample(question=one.question, answer=one.answer), False).claims)
        for one in bare_answers()
    ]
    alone = [one.id for one, found in claims if [c.text for c in found] == [one.answer]]
    assert all(found for _, found in claims)
    # "100 \u00b0C" has a letter that is a verb in French, and so is taken for a sentence.
    assert len(alone) <= 14


def test_few_answers_are_taken_for_markers_and_few_markers_for_answers(tmp_path: Path) -> None:
    found = made("markers", tmp_path / "r")
    answers, taken = values(found, "all")
    assert row_of(found, "all").items == len(markers()) == 160
    assert answers is not None
    assert taken is not None
    assert max(answers, taken) <= 10
