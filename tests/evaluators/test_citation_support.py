"""Test whether the sources that an answer cites support the statements that cite them."""

from __future__ import annotations

from typing import Any

import pytest

from demur import CitationSupport, Evaluation, Failure, RefChecker
from support.fakes import ScriptedModel, isolated
from support.held import LOUVRE, HeldByNumbers


def _found(answer: str, **sample: Any) -> Evaluation:
    judge = CitationSupport(HeldByNumbers())
    return judge.invoke({"answer": answer, "contexts": LOUVRE, **sample})


@pytest.mark.parametrize(
    ("answer", "labels"),
    [
        ("It opened in 1793 [1].", ["Entailment"]),
        ("It opened in 1793 [2].", ["Contradiction"]),
        ("It opened in 1793 [9].", ["Neutral"]),
        ("It opened in 1793 [1][9].", ["Neutral"]),
        ("It opened in 1793. [1] It has 35000 works. [2]", ["Entailment", "Entailment"]),
        ("It opened in 1793. [2] It has 35000 works. [1]", ["Contradiction", "Contradiction"]),
        ("It opened in 1793 [1, 2]. It has 35000 works.", ["Entailment"]),
        ("[1] It opened in 1793.", ["Entailment"]),
        ("It opened in 1793.\n\nSource: Louvre guide", ["Entailment"]),
        ("It opened in 1793.\n\nSource: works.txt", ["Contradiction"]),
        ("It opened in 1793 [1]. It has 35000 works.\n\nSources: 2", ["Entailment", "Entailment"]),
        ("- since 1793 [1]\n- 35000 works [1]", ["Entailment", "Contradiction"]),
    ],
)
def test_each_sentence_is_held_against_what_it_cites(answer: str, labels: list[str]) -> None:
    found = _found(answer)
    assert [claim.label for claim in found.claims] == labels
    right = labels.count("Entailment")
    good = right == len(labels)
    assert (found.score, found.passed) == (right / len(labels), good)
    assert found.failures == (() if good else (Failure.CITATION,))


@pytest.mark.parametrize(
    "sentence",
    [
        "It opened in 1793 (افتتح المتحف) [1].",
        "המוזיאון opened in 1793 [1].",
        "พิพิธภัณฑ์ opened in 1793 [1].",
        "它 opened in 1793【1】。",
        "पुल opened in 1793 [1]।",
    ],
)
def test_a_citation_is_found_in_mixed_text_of_any_direction(sentence: str) -> None:
    found = _found(f"السعر 20 درهما؟ {sentence} המחיר 20.")
    (claim,) = found.claims
    assert claim.label == "Entailment"
    assert "1793" in claim.text
    assert "[1]" not in claim.text


def test_evidence_counts_the_contexts_of_the_whole() -> None:
    found = _found("It has 35000 works [2].")
    (claim,) = found.claims
    (evidence,) = claim.evidence
    assert evidence.context == 1
    assert LOUVRE[1].page_content[evidence.span.start : evidence.span.end] == evidence.text


@pytest.mark.parametrize("answer", ["It opened in 1793.", "Hello! [1]", "See items[0]."])
def test_an_answer_that_cites_nothing_has_nothing_to_check(answer: str) -> None:
    assert _found(answer).nothing_to_check


def test_what_cannot_be_judged_is_undetermined_unless_another_fails() -> None:
    assert _found("The hall is unsure [1].").undetermined
    assert _found("The hall is unsure [1]. It opened in 1793 [1].").undetermined
    failed = _found("The hall is unsure [1]. It opened in 1793 [2].")
    assert (failed.passed, failed.score) == (False, None)
    assert _found(" ").undetermined


def test_in_a_stream_a_citation_belongs_to_the_sentence_before() -> None:
    found = _found("[2] It has 35000 works [2].", preceding="It opened in 1793.")
    assert [(claim.text, claim.label) for claim in found.claims] == [
        ("It opened in 1793.", "Contradiction"),
        ("It has 35000 works.", "Entailment"),
    ]


def test_the_sentences_are_judged_side_by_side_with_one_call_each() -> None:
    shown: list[str] = []

    def script(stage: str, messages: Any) -> str:
        shown.append(isolated("reference", messages))
        return "1. Entailment"

    checker = RefChecker(ScriptedModel(script=script), checker="joint", claims="sentences")
    answer = "It opened in 1793 [1]. It has 35000 works [2]. Many come here to see art."
    found = CitationSupport(checker).invoke({"answer": answer, "contexts": LOUVRE})
    assert (found.score, found.usage.calls) == (1.0, 2)
    assert sorted(shown) == sorted(document.page_content for document in LOUVRE)


def test_what_cannot_check_is_refused() -> None:
    with pytest.raises(TypeError, match="checker is a str, expected an evaluator of demur's"):
        CitationSupport("local")  # type: ignore[arg-type]  # what a user may try
    model = ScriptedModel(script=lambda stage, messages: "")
    with pytest.raises(ValueError, match="give it a threshold"):
        CitationSupport(RefChecker(model, threshold=None))
