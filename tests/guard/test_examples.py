"""Test the guards of docs/guard.md, made as the page makes them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableLambda

import demur
from demur import AnswerRejected, Claim, ClaimLabel, Evaluation, Guard, Sample
from demur.evaluators import Evaluator
from demur.guard import REFUSAL, UNCHECKED
from demur.runtime import Steps, ask_all
from support.fakes import ScriptedModel
from support.pages import DOCS, fences

_PAGE = fences(DOCS / "guard.md", "python")
_RECIPES = [
    fence.text for fence in _PAGE if fence.section == "Choose what happens to an answer that fails"
]
SETTING = [_PAGE[0].text, *_RECIPES[:-1]]
"""The code before the page's recipes, which defines the chain, prompt, retriever and `tell`."""
RECIPES = _RECIPES[-1]
NOTED = RECIPES.count("Annotate()")


class Checker(Evaluator):
    """Reject an answer with "bad" in it, with a claim that has the given label."""

    label: ClaimLabel

    @property
    def claim_level(self) -> bool:
        return True

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask_all(())
        bad = Claim(text="it is bad", label=self.label)
        passed = sample.answer == "good"
        return Evaluation(name="checker", passed=passed, claims=() if passed else (bad,))


class Down(Evaluator):
    """Leave every answer undetermined."""

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask_all(())
        return Evaluation(name="checker", error="the model is down")


def _speak(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Answer well if the prompt contains the failed claim, as feedback or as a document."""
    return "good" if "it is bad" in str(messages[-1].content) else "bad"


def guards(checker: Evaluator, monkeypatch: pytest.MonkeyPatch) -> list[Guard[Any, Any]]:
    """Return the guards of the recipes, in order, with the test's model and evaluator."""
    monkeypatch.setattr(demur, "resolve_model", lambda name: ScriptedModel(script=_speak))
    monkeypatch.setattr(demur, "RefChecker", lambda model: checker)
    names: dict[str, Any] = {}
    for text in SETTING:
        exec(text, names)  # noqa: S102  # our own page
    # A search returns its query as a document.
    names["retriever"] = names["archive"] = RunnableLambda(lambda query: [Document(str(query))])
    made: list[Any] = []
    for statement in ast.parse(RECIPES).body:
        if isinstance(statement, ast.Expr):
            made.append(eval(ast.unparse(statement), names))  # noqa: S307  # our own page
        else:
            exec(ast.unparse(statement), names)  # noqa: S102  # our own page
    assert all(isinstance(guard, Guard) for guard in made)
    return made


def _answer(guard: Guard[Any, Any]) -> str:
    try:
        return str(guard.invoke("why?").text)
    except AnswerRejected:
        return "rejected"


@pytest.mark.parametrize("label", [ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION])
def test_no_recipe_lets_out_what_was_rejected(
    label: ClaimLabel, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = guards(Checker(label=label), monkeypatch)
    answers = [_answer(guard) for guard in made]
    # A note with the failures follows the best attempt.
    answers = [
        answer.partition("\n\nNote: ")[0] if "it is bad" in answer else answer for answer in answers
    ]
    assert {*answers} <= {"good", REFUSAL, "rejected", *(["bad"] if NOTED else [])}
    assert len(made) > 6
    # `Strip` leaves nothing of these answers, so not every recipe gives a good one.
    assert answers.count("good") >= (len(made) - 1) // 2


def test_no_recipe_lets_out_what_a_failing_judge_could_not_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [_answer(guard) for guard in guards(Down(), monkeypatch)]
    noted = [answer for answer in answers if "\n\nNote: this answer could not be" in answer]
    assert {*answers} - {*noted} == {UNCHECKED, "rejected"}
    assert len(noted) == NOTED


def test_the_recipes_recover_as_their_comments_say(monkeypatch: pytest.MonkeyPatch) -> None:
    by_label = {
        label: [
            [attempt.recovery for attempt in guard.with_trace().invoke("why?").trace.attempts[1:2]]
            for guard in guards(Checker(label=label), monkeypatch)[:6]
        ]
        for label in (ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION)
    }
    first = [["regenerate"], ["repair"], ["regenerate"]]
    search = [["retrieve"]]
    assert by_label == {
        ClaimLabel.NEUTRAL: [*first, *search, *search, *search],
        ClaimLabel.CONTRADICTION: [*first, ["repair"], ["repair"], *search],
    }
