"""Test judges of whole answers with the real local model, on held-out cases.

The cases were not used to choose the prompts or the thresholds. docs/methods/whole-answer.md has
the figures, from which the tests leave a margin.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from langchain_core.language_models import BaseChatModel

from demur import Evaluation
from demur.evaluators import AnswerRelevance, Evaluator, SelfContradiction

pytestmark = pytest.mark.real

RELEVANT = [
    ("What time does the last tram leave?", "The last tram leaves at ten past midnight."),
    ("How can I get a stain of ink out of wool?", "Dab it with milk, wait, and rinse it cold."),
    ("Do I need a visa for the trip?", "No visa is needed for stays of up to ninety days."),
    ("Which year did the zoo get its first panda?", "It has never kept a panda."),
    ("Wie lange muss der Teig ruhen?", "Er sollte eine Stunde lang an einem warmen Ort ruhen."),
    ("Wo kann ich mein Fahrrad abstellen?", "Hinter dem Bahnhof gibt es überdachte Ständer."),
]
IRRELEVANT = [
    ("What time does the last tram leave?", "The trams are painted green and made in Graz."),
    ("How can I get a stain of ink out of wool?", "Wool has been spun since the Stone Age."),
    ("Do I need a visa for the trip?", "The trip takes in three cities and a day at sea."),
    ("Which year did the zoo get its first panda?", "Pandas eat up to forty kilos of bamboo."),
    ("Wie lange muss der Teig ruhen?", "Der Teig besteht aus Mehl, Wasser und etwas Salz."),
    ("Wo kann ich mein Fahrrad abstellen?", "Das Fahrrad wurde im 19. Jahrhundert erfunden."),
]
CONSISTENT = [
    "Bats are mammals. They are the only ones that can fly.",
    "Das Museum ist am Montag geschlossen. Am Dienstag öffnet es um zehn.",
]
SELF_CONTRADICTORY = [
    "Bats are birds. No bat is a bird.",
    "Das Museum ist am Montag geschlossen. Am Montag öffnet es um zehn.",
]


def judged(evaluator: Evaluator, samples: Sequence[dict[str, str]]) -> list[Evaluation]:
    """Return the evaluations of the samples, of which none may be undetermined."""
    found = [evaluator.invoke(sample) for sample in samples]
    assert [one.error for one in found if one.error] == []
    return found


def right(passing: Sequence[Evaluation], failing: Sequence[Evaluation]) -> tuple[int, int]:
    """Return how many samples of each kind are judged rightly."""
    return sum(one.passed is True for one in passing), sum(one.passed is False for one in failing)


def ranked(passing: Sequence[Evaluation], failing: Sequence[Evaluation]) -> float:
    """Return the share of pairs in which the passing sample scores higher; ties count half."""
    pairs = [(good.score or 0, bad.score or 0) for good in passing for bad in failing]
    return sum((good > bad) + (good == bad) / 2 for good, bad in pairs) / len(pairs)


def test_most_answers_beside_the_question_are_found(model: BaseChatModel) -> None:
    passing, failing = (
        judged(AnswerRelevance(model), [{"question": q, "answer": a} for q, a in cases])
        for cases in (RELEVANT, IRRELEVANT)
    )
    passed, failed = right(passing, failing)
    assert passed >= 4
    assert failed >= 4
    assert ranked(passing, failing) >= 0.85


def test_answers_against_themselves_score_lower(model: BaseChatModel) -> None:
    passing, failing = (
        judged(SelfContradiction(model), [{"answer": answer} for answer in answers])
        for answers in (CONSISTENT, SELF_CONTRADICTORY)
    )
    assert ranked(passing, failing) >= 0.75
