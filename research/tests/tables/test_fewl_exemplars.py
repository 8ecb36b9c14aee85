"""Test whether exemplars help: the pool, the arms, the recording and the table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from benches import made, row_of, values
from colours import chale, colour, reply
from demur_research.tables.fewl.exemplars import Chosen, disputed, finds
from demur_research.tables.fewl.scoring import Question
from support.fakes import ScriptedModel, isolated

pytest.importorskip("chromadb")
pytestmark = pytest.mark.usefixtures("apart")

SETS = {"chale": chale(6)}
OPTIONS = {"similarity": "rouge", "wrong": "3", "config": "multi"}


def _number(text: str) -> int:
    return int(text.rsplit(" ", 1)[1])


def _script(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Reply as references, answerer and judge.

    The references' first answer is wrong for even questions, so the baseline errs there. The
    answerer repeats its first example. The judge knows the right answer.
    """
    if stage == "comparison":
        right = colour(_number(isolated("question", messages)))
        sides = [right in isolated(name, messages) for name in ("a", "b")]
        return "C" if sides[0] == sides[1] else "A" if sides[0] else "B"
    if stage == "answering":
        told = [message for message in messages if isinstance(message, AIMessage)]
        return str(told[0].content) if told else f"nothing on {messages[-1].content}"
    at = _number(isolated("question", messages))
    if stage == "reference":
        right, wrong = f"{colour(at)} . It is painted .", f"{colour(at + 1)} . It is painted ."
        texts = [wrong if at % 2 == 0 else right, right, right, right, right]
        return "\n".join(f"{n}. {text}" for n, text in enumerate(texts, start=1))
    return reply(stage, messages)


def _chosen(at: int, fewl: int, baseline: int) -> Chosen:
    question = Question(f"what is thing {at}", ("a", "b", "c"))
    return Chosen(question, "", {"FEWL": fewl, "baseline": baseline}, {})


def test_the_pool_is_what_the_two_scorers_choose_otherwise() -> None:
    questions = [_chosen(0, 0, 1), _chosen(1, 0, 0), _chosen(2, 1, 2)]
    assert disputed(questions) == [questions[0], questions[2]]


@pytest.mark.parametrize(
    ("short", "answer", "found"),
    [
        ("Mary Anning", "It was mary anning, of Lyme.", True),
        ("Mary Anning", "It was Anning, Mary.", False),
        ("art", "A party.", False),
        ("March 30, 2018", "On March 30 2018.", True),
    ],
)
def test_an_answer_holds_the_short_one_word_by_word(short: str, answer: str, found: bool) -> None:
    assert finds(short, answer) is found


def test_each_arm_has_its_scorers_choices_for_examples_and_never_the_question(path: Path) -> None:
    model = ScriptedModel(script=_script)
    result = made("fewl-v1-table-6", path, model, SETS, options=OPTIONS)
    shown = {
        (
            str(turns[-1].content),
            tuple(
                (str(asked.content), str(told.content))
                for asked, told in pairwise(turns)
                if isinstance(asked, HumanMessage) and isinstance(told, AIMessage)
            ),
        )
        for stage, turns in zip(model.stages, model.requests, strict=True)
        if stage == "answering"
    }
    # Even questions are disputed, so they form the pool. The examples of each arm come from it.
    for question, examples in shown:
        assert all(asked != question and _number(asked) % 2 == 0 for asked, _ in examples)
    arms = {
        tuple(colour(_number(asked)) in told for asked, told in examples)
        for _, examples in shown
        if examples
    }
    assert all(len({*arm}) == 1 for arm in arms)
    assert {arm[0] for arm in arms} == {True, False}
    assert "6 questions scored" in result.notes[0]
    assert "3 are disputed" in result.notes[0]
    assert "chosen by FEWL 3 times and by baseline 0 times" in result.notes[0]
    labelled = row_of(result, "the data's right answer : its wrong one")
    assert values(result, labelled.name)[:4] == [100, 0, 0, 100]
    paper = [one.paper if one else "" for one in row_of(result, "FEWL : baseline").figures[:3]]
    assert paper == ["GPT-4 56.20", "GPT-4 19.01", "GPT-4 24.79"]
    assert values(result, "answers with no examples")[-1] == 0
    assert [row.floor for row in result.rows] == [False] * 4 + [True] * 4 + [False] * 3

    asked = len(model.requests)
    assert made("fewl-v2-table-5", path, None, SETS, options=OPTIONS) == result
    # Requests that do not depend on the configuration are not made again.
    options = {**OPTIONS, "config": "fewl-uniform"}
    made("fewl-v1-table-6", path, model, SETS, options=options)
    assert "reference" not in model.stages[asked:]
    again = [*zip(model.stages, model.requests, strict=True)][asked:]
    assert all(len(turns) > 2 for stage, turns in again if stage == "answering")


def test_what_does_not_answer_is_undetermined(path: Path) -> None:
    def silent(stage: str, messages: Sequence[BaseMessage]) -> str:
        return "" if stage == "answering" else _script(stage, messages)

    result = made("fewl-v1-table-6", path, ScriptedModel(script=silent), SETS, options=OPTIONS)
    compared = row_of(result, "FEWL : none")
    assert (compared.items, compared.undetermined) == (0, 6)
    assert compared.figures[0] is not None
    assert compared.figures[0].value is None
    assert "undetermined, the first since the model answered nothing" in " ".join(result.notes)
