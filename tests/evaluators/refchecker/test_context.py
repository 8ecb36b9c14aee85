"""Test what is shown with a claim that refers to others, and claims made without an extractor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from demur import Evaluation, RefChecker, Sample
from support.fakes import ScriptedModel, isolated, labelled

ANSWER = "Ilse Korn was a clockmaker. She lived in Graz. She made its clock. Graz is old enough."
SENTENCES = [
    "Ilse Korn was a clockmaker.",
    "She lived in Graz.",
    "She made its clock.",
    "Graz is old enough.",
]


def check(checker: str, answer: str = ANSWER, **given: Any) -> tuple[Evaluation, ScriptedModel]:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "joint":
            return labelled(messages, lambda claim: "Entailment")
        return "Entailment"

    model = ScriptedModel(script=script)
    sample = Sample(answer=answer, contexts=["A text."], **given)
    return RefChecker(model, checker=checker, claims="sentences").invoke(sample), model


def test_sentences_are_the_claims_in_one_call_and_in_their_order() -> None:
    found, model = check("joint")
    assert [claim.text for claim in found.claims] == SENTENCES
    assert [ANSWER[c.span.start : c.span.end] for c in found.claims] == SENTENCES
    assert model.stages == ["joint"]
    listed = isolated("claims", model.requests[0]).splitlines()
    assert listed == [f"{at}. {one}" for at, one in enumerate(SENTENCES, 1)]
    assert found.details["granularity"] == "sentences"
    assert not found.details.keys() & {"fallback_claims", "coverage"}


def test_a_sentence_that_is_asked_about_alone_brings_what_it_refers_to() -> None:
    found, model = check("per_claim")
    asked = [isolated("claim", messages) for messages in model.requests]
    assert sorted(asked) == sorted(
        [
            "Ilse Korn was a clockmaker.",
            "Ilse Korn was a clockmaker. She lived in Graz.",
            "Ilse Korn was a clockmaker. She lived in Graz. She made its clock.",
            "Graz is old enough.",
        ]
    )
    assert [claim.text for claim in found.claims] == SENTENCES


@pytest.mark.parametrize("checker", ["joint", "per_claim"])
def test_what_precedes_a_part_of_an_answer_is_shown_too(checker: str) -> None:
    _, model = check(checker, "She made its clock.", preceding="Hello. Ilse Korn lived in Graz.")
    tag = "claims" if checker == "joint" else "claim"
    shown = isolated(tag, model.requests[0]).removeprefix("1. ")
    assert shown == "Ilse Korn lived in Graz. She made its clock."


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ("Oslo ist die Hauptstadt.", "Sie hat einen Hafen."),
        ("东京是首都。", "它有两条河流和一座塔。"),
        ("القاهرة عاصمة مصر.", "هي مدينة قديمة جدا."),
        ("서울은 한국의 수도입니다.", "그곳에는 큰 강이 있습니다."),
    ],
)
def test_other_languages_refer_too(before: str, sentence: str) -> None:
    _, model = check("per_claim", f"{before} {sentence}")
    assert f"{before} {sentence}" in [isolated("claim", one) for one in model.requests]


def test_a_short_sentence_is_the_answer_to_the_question() -> None:
    found, model = check("joint", "No. It is in Graz today.", question="Is the clock in Oslo?")
    assert isolated("claims", model.requests[0]).splitlines() == [
        "1. Is the clock in Oslo? No.",
        "2. No. It is in Graz today.",
    ]
    assert found.passed is True


@pytest.mark.parametrize(
    ("answer", "stated"),
    [
        ("I don't know who built the tower, but the bridge opened in 1911.", "the bridge opened"),
        ("Hello, the bridge opened in 1911.", "the bridge opened"),
        ("Ich weiß nicht, wer ihn baute, aber der Turm ist 38 Meter hoch.", "der Turm ist"),
        ("我不知道是谁设计的，但是青石桥建于1911年。", "青石桥建于"),
        ("誰が設計したかは分かりませんが、若葉橋は1911年に完成しました。", "若葉橋は"),
        ("The bridge opened in 1911, but I don't know when it closed.", "The bridge opened"),
    ],
)
def test_a_clause_that_states_nothing_is_no_part_of_the_claim(answer: str, stated: str) -> None:
    (claim,) = check("joint", answer)[0].claims
    assert claim.text.startswith(stated)
    assert claim.text == answer[claim.span.start : claim.span.end]


def test_what_refers_to_nothing_before_it_is_shown_behind_the_question() -> None:
    question = "When was the bridge of Lund opened?"
    _, model = check("per_claim", "It was opened in 1911.", question=question)
    assert isolated("claim", model.requests[0]) == f"{question} It was opened in 1911."
