"""Test the ranking of models and samples by FEWL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from benches import made, row_of, values
from colours import colour, knowing, reply, truthfulqa
from demur_research.datasets.rows import Answer, LabelledRow
from demur_research.tables.fewl.models import chosen_text
from support.fakes import ScriptedModel

pytest.importorskip("chromadb")
pytestmark = pytest.mark.usefixtures("apart")

OPTIONS = {"similarity": "rouge", "wrong": "3"}
CHOICES = {
    "A": "Ravens say mirror, mirror",
    "B": "mirror, mirror",
    "C": "It is made of glass",
    "D": "None of the above",
    "E": "I don't know",
}


@pytest.mark.parametrize(
    ("outcome", "said", "text"),
    [
        ("correct", None, CHOICES["A"]),
        ("incorrect", "C. It is made of glass.", CHOICES["C"]),
        ("unknown", "E. I don't know", CHOICES["E"]),
        ("incorrect", "Ravens say: mirror, mirror!", CHOICES["A"]),
        ("incorrect", "It is made of wood. ", "It is made of wood."),
        ("incorrect", "B. mirror, mirror C. It is made of glass", None),
        ("incorrect", "### ", ""),
        ("incorrect", None, ""),
    ],
)
def test_a_choice_is_scored_by_its_text(outcome: str, said: str | None, text: str | None) -> None:
    found = chosen_text(CHOICES, "A", outcome, said)
    assert found == (said if text is None else text)


def choices(count: int) -> list[LabelledRow]:
    """Return multiple-choice rows: one model is always right, one half of the time, one never."""
    found = []
    for at in range(count):
        right, wrong = f"The thing is {colour(at)}.", f"The thing is {colour(at + 1)}."
        recorded: dict[str, Any] = {
            "knowing": {"outcome": "correct", "text": None},
            "guessing": {"outcome": "correct", "text": None}
            if at % 2
            else {"outcome": "incorrect", "text": f"B. {wrong}"},
            "failing": {"outcome": "incorrect", "text": "" if at == 3 else wrong},
        }
        metadata = {"set": "truthfulqa", "correct": "A", "recorded": recorded}
        answers = (Answer(right, False, "A"), Answer(wrong, True, "B"))
        question = f"which colour has thing {at}"
        found.append(LabelledRow(f"m{at}", question, answers, metadata=metadata))
    other = LabelledRow("x", "which colour has thing 9", answers, metadata={"set": "hq"})
    return [*found, other]


def test_models_are_ranked_as_their_answers_are_true(path: Path) -> None:
    result = made("fewl-v1-table-4", path, knowing(), {"haltt4llm": choices(7)}, options=OPTIONS)
    assert [row.name for row in result.rows[:3]] == ["knowing", "guessing", "failing"]
    # Question 3 is left out, because a model gave no answer.
    assert [values(result, row.name)[0] for row in result.rows[:3]] == [1, 2 / 6, 0]
    assert result.rows[0].items == 6
    assert "1 of 7 are left out" in result.notes[0]
    means = [values(result, name)[2] for name in ("knowing", "guessing", "failing")]
    assert means == sorted(means, key=lambda mean: -(mean or 0))
    tau = row_of(result, "ranking by FEWL without penalty (multi-weighted)").figures[3]
    assert tau is not None
    assert tau.value == 1
    paper = [one and one.paper for one in row_of(result, "Text-davinci-003").figures[:2]]
    assert paper == ["0.1954", "-0.0027"]
    assert sum(row.floor for row in result.rows) == 3


class Wrong(ScriptedModel):
    """Answer with a wrong colour, and once with nothing."""

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"knows": "nothing"}


def _wrongly(stage: str, messages: Sequence[BaseMessage]) -> str:
    at = int(str(messages[-1].content).rsplit(" ", 1)[1])
    return "" if at == 2 else f"It is {colour(at + 1)}."


def _rightly(stage: str, messages: Sequence[BaseMessage]) -> str:
    if stage == "answering":
        return f"It is {colour(int(str(messages[-1].content).rsplit(' ', 1)[1]))}."
    return reply(stage, messages)


def test_the_truer_of_two_models_answers_is_found(path: Path) -> None:
    options = {**OPTIONS, "second": "wrong"}
    sets = {"truthfulqa": truthfulqa(6)}
    wrong = {"wrong": Wrong(script=_wrongly)}
    model = ScriptedModel(script=_rightly)
    result = made("fewl-v1-table-5", path, model, sets, wrong, options=options)
    row = row_of(result, "scripted v.s. wrong: five references by expertise")
    assert row.figures[0] is not None
    assert (row.figures[0].value, row.items, row.undetermined) == (100, 5, 1)
    assert "1 answers of wrong are missing, the first since the model answered nothing" in (
        result.notes
    )
    assert values(result, "scripted v.s. wrong: the longest answer")[1] is None
    assert made("fewl-v1-table-5", path, None, sets, options=options) == result
