"""Test that statements which the extractor leaves out are checked too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from demur import Evaluation, RefChecker, Sample
from demur.evaluators import as_sample
from support.fakes import ScriptedModel, labelled

E, N = "Entailment", "Neutral"


def judged(answer: Any, nominated: Sequence[str] = (), question: str | None = None) -> Evaluation:
    """Evaluate with a judge that supports only the claims which the extractor gave."""

    def script(stage: str, messages: Any) -> str:
        if stage == "extraction":
            return "\n".join(map(_triplet, nominated)) or "No claims"
        return labelled(messages, lambda claim: E if claim in nominated else N)

    sample = {"question": question, "answer": answer, "contexts": ["A text."]}
    return RefChecker(ScriptedModel(script=script)).invoke(sample)


def _triplet(claim: str) -> str:
    subject, predicate, said = claim.split(" ", 2)
    return f'("{subject}", "{predicate}", "{said}")'


@pytest.mark.parametrize(
    ("answer", "nominated", "own"),
    [
        # The second sentence is left out.
        ("Oslo is old. It has a famous port.", ["Oslo is old"], ["It has a famous port."]),
        # The second half of a sentence is left out.
        (
            "Oslo is the capital of Norway and has a famous port.",
            ["Oslo is the capital of Norway"],
            ["Oslo is the capital of Norway and has a famous port."],
        ),
        # A denial is left out.
        (
            "copy.copy does not copy nested objects.",
            ["copy.copy copies nested objects"],
            ["copy.copy does not copy nested objects."],
        ),
        # A number is left out.
        (
            "The long old bridge of Lund rests on three arches.",
            ["The long old bridge of Lund rests on arches"],
            ["The long old bridge of Lund rests on three arches."],
        ),
        # Code is left out.
        (
            "Sort it in place:\n```\nx.sort()\n```",
            ["Sort it in place"],
            ["Sort it in place: x.sort()"],
        ),
    ],
)
def test_what_no_claim_covers_is_a_claim_itself(
    answer: str, nominated: list[str], own: list[str]
) -> None:
    found = judged(answer, nominated)
    assert found.details["fallback_claims"] == own
    assert found.passed is False
    assert found.details["coverage"] < 1


@pytest.mark.parametrize(
    ("answer", "nominated"),
    [
        ("Oslo is old. It has a port.", ["Oslo is old", "Oslo has a port"]),
        ("The very old clock of Graz was made by Ilse Korn.", ["Ilse Korn made the clock of Graz"]),
        ("Oslo is not in Sweden.", ["Oslo does not lie in Sweden"]),
        ("Oslo is old. I do not know more. Hello!", ["Oslo is old"]),
        ("Oslo is old. Oslo is old.", ["Oslo is old"]),
        ("서울은 한국의 수도입니다.", ["서울 한국 수도입니다"]),
    ],
)
def test_a_paraphrase_covers_its_sentence(answer: str, nominated: list[str]) -> None:
    found = judged(answer, nominated)
    assert found.details["fallback_claims"] == []
    assert found.passed is True


def test_a_claim_about_what_states_nothing_is_dropped() -> None:
    answer = "I do not know the architect of the bridge. Oslo is old."
    found = judged(answer, ["I do not know the architect of the bridge", "Oslo is old"])
    assert [claim.text for claim in found.claims] == ["Oslo is old"]
    assert found.details["dropped_claims"] == ["I do not know the architect of the bridge"]


@pytest.mark.parametrize("answer", ["No.", "11 years", "1911.", "42", "Yes.", "在1911年"])
def test_an_answer_of_few_words_is_checked_with_its_question(answer: str) -> None:
    question = "How old was she?"
    (claim,) = judged(answer, question=question).claims
    assert claim.text == f"{question} {answer}"
    assert answer[claim.span.start : claim.span.end] == answer
    without = judged(answer)
    assert without.undetermined
    assert "give the sample a question" in without.error


def test_few_words_are_understood_by_what_precedes_them() -> None:
    sample = Sample(answer="In 1911.", preceding="Ilse Korn made the clock.", contexts=["A text."])
    model = ScriptedModel(script=lambda stage, _: "1. Neutral" if stage == "joint" else "No claims")
    (claim,) = RefChecker(model).invoke(sample).claims
    assert claim.text == "Ilse Korn made the clock. In 1911."


def test_the_values_of_an_object_are_claims_with_their_places() -> None:
    class City(BaseModel):
        capital: str
        rivers: list[str]
        mayor: str | None = None

    given = City(capital="Oslo", rivers=["Alna", "Lo"])
    found = judged(given, question="What is the capital of Norway?")
    answer = as_sample({"answer": given}).answer
    stands = [answer[claim.span.start : claim.span.end] for claim in found.claims]
    assert stands == ["Oslo", "Alna", "Lo"]
    assert [claim.text.partition("? ")[2] for claim in found.claims] == [
        "capital: Oslo",
        "rivers: Alna",
        "rivers: Lo",
    ]
