"""Test judges of whole answers with the real local model, on held-out cases.

The cases were not used to choose the prompts or the thresholds. docs/methods/whole-answer.md has
the figures, from which the tests leave a margin. All cases are judged where `DEMUR_RUN_ALL` is set
(`make test-all`), otherwise a third of those for relevance: for self-contradiction, which the local
model decides badly, a third says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from langchain_core.language_models import BaseChatModel

from demur import Evaluation
from demur.evaluators import AnswerRelevance, Evaluator, SelfContradiction

pytestmark = pytest.mark.real

RELEVANT = [
    ("What time does the last tram leave?", "The last tram leaves at ten past midnight."),
    ("Who founded the bakery on Mill Street?", "Two sisters, Ada and Jo Lind."),
    ("How can I get a stain of ink out of wool?", "Dab it with milk, wait, and rinse it cold."),
    ("What is the highest mountain in Austria?", "That would be the Zugspitze."),
    ("Do I need a visa for the trip?", "No visa is needed for stays of up to ninety days."),
    ("Why did the dam fail?", "Water had washed out the clay beneath it over many years."),
    ("Which year did the zoo get its first panda?", "It has never kept a panda."),
    ("How many strings does a cello have?", "Four."),
    ("Wie lange muss der Teig ruhen?", "Er sollte eine Stunde lang an einem warmen Ort ruhen."),
    ("Wer hat die Oper Fidelio geschrieben?", "Sie ist von Franz Schubert."),
    ("Wo kann ich mein Fahrrad abstellen?", "Hinter dem Bahnhof gibt es überdachte Ständer."),
    ("Wie viele Zähne hat ein Erwachsener?", "Zweiunddreißig."),
]
IRRELEVANT = [
    ("What time does the last tram leave?", "The trams are painted green and made in Graz."),
    ("Who founded the bakery on Mill Street?", "The bakery is loved for its rye bread."),
    ("How can I get a stain of ink out of wool?", "Wool has been spun since the Stone Age."),
    ("What is the highest mountain in Austria?", "Austria borders on eight other countries."),
    ("Do I need a visa for the trip?", "The trip takes in three cities and a day at sea."),
    ("Why did the dam fail?", "Chop the onions and fry them until they are golden."),
    ("Which year did the zoo get its first panda?", "Pandas eat up to forty kilos of bamboo."),
    ("How many strings does a cello have?", "Seven under the if of blue went always table."),
    ("Wie lange muss der Teig ruhen?", "Der Teig besteht aus Mehl, Wasser und etwas Salz."),
    ("Wer hat die Oper Fidelio geschrieben?", "Fidelio wird auf vielen Bühnen gespielt."),
    ("Wo kann ich mein Fahrrad abstellen?", "Das Fahrrad wurde im 19. Jahrhundert erfunden."),
    ("Wie viele Zähne hat ein Erwachsener?", "Der Zug nach Linz fährt von Gleis drei ab."),
]
CONSISTENT = [
    "The castle was begun in 1310 and finished in 1342. Building it took 32 years.",
    "No, the pool is not heated. In winter the water is about twelve degrees.",
    "Bats are mammals. They are the only ones that can fly.",
    "You may take the books home, but the maps have to stay in the reading room.",
    "Yes, you can pay by card, because the shop has had a terminal since March.",
    "The café is small. It has six tables, two of them by the window.",
    "Ferries run every hour in summer. In winter there are only two a day.",
    "He was born in Oslo, grew up in Bergen, and died in Paris in 1970.",
    "Das Museum ist am Montag geschlossen. Am Dienstag öffnet es um zehn.",
    "Ja, der Weg ist für Rollstühle geeignet, denn er ist eben und breit.",
    "Die Brücke ist 200 Meter lang. Sie wurde 1960 gebaut und 2001 erneuert.",
    "Im Dorf leben 300 Menschen. Die meisten von ihnen arbeiten in der Stadt.",
]
SELF_CONTRADICTORY = [
    "The castle was begun in 1310 and finished in 1342. Building it took four years.",
    "No, the pool is not heated. The water is kept warm by two gas boilers all year.",
    "Bats are birds. No bat is a bird.",
    "You may take all books home. None of the books may leave the building.",
    "Yes, you can pay by card, because the shop takes nothing but cash.",
    "The café has six tables. Its nine tables all stand by the window.",
    "Ferries run all year. From November to March there is no ferry.",
    "He died in Paris in 1970. In 1985 he moved from Paris to Rome.",
    "Das Museum ist am Montag geschlossen. Am Montag öffnet es um zehn.",
    "Ja, der Weg ist für Rollstühle geeignet, denn mit Rädern kommt man dort nicht durch.",
    "Die Brücke ist 200 Meter lang. Mit ihren 80 Metern ist sie die kürzeste im Land.",
    "Im Dorf leben 300 Menschen. Dort wohnt seit Jahren niemand mehr.",
]

ALL = bool(os.environ.get("DEMUR_RUN_ALL"))


def judged(evaluator: Evaluator, samples: Sequence[dict[str, str]]) -> list[Evaluation]:
    """Return the evaluations of the samples or of a third; none may be undetermined."""
    found = [evaluator.invoke(sample) for sample in samples[:: 1 if ALL else 3]]
    assert [one.error for one in found if one.error] == []
    return found


def right(passing: Sequence[Evaluation], failing: Sequence[Evaluation]) -> tuple[float, float]:
    """Return the share of each kind of samples that is judged rightly."""
    return (
        sum(one.passed is True for one in passing) / len(passing),
        sum(one.passed is False for one in failing) / len(failing),
    )


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
    assert passed >= 9 / 12
    assert failed >= 9 / 12
    assert ranked(passing, failing) >= 0.85


@pytest.mark.skipif(not ALL, reason="24 judgements: set DEMUR_RUN_ALL, as make test-all does")
def test_an_answer_against_itself_scores_lower_on_the_whole(model: BaseChatModel) -> None:
    passing, failing = (
        judged(SelfContradiction(model), [{"answer": answer} for answer in answers])
        for answers in (CONSISTENT, SELF_CONTRADICTORY)
    )
    passed, failed = right(passing, failing)
    assert passed >= 7 / 12
    assert failed >= 4 / 12
    assert ranked(passing, failing) >= 0.6
