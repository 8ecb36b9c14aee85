"""Test that demur's own judges do not judge a claim against texts in other letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage

from demur import Evaluation, RefChecker
from demur.evaluators.refchecker.letters import other_letters
from demur.schema import ClaimLabel
from support.fakes import ScriptedModel, isolated, weighing

MUSEUM = "The museum is open from Tuesday to Sunday, and entry is free on Fridays."
# The claim that entry is free on Fridays.
CLAIMS = {
    "Arabic": "الدخول مجاني يوم الجمعة.",
    "Cjk": "金曜日の入場は無料です。",
    "Cyrillic": "По пятницам вход бесплатный.",
    "Devanagari": "शुक्रवार को प्रवेश निःशुल्क है।",
    "Greek": "Η είσοδος είναι δωρεάν την Παρασκευή.",
    "Hangul": "금요일에는 입장이 무료입니다.",
    "Hebrew": "הכניסה חופשית בימי שישי.",
    "Thai": "วันศุกร์เข้าชมฟรี",
}


@pytest.mark.parametrize("letters", CLAIMS)
def test_other_letters_are_told_whichever_of_claim_and_text_has_them(letters: str) -> None:
    claim = CLAIMS[letters]
    assert other_letters(claim, MUSEUM) == (letters, "Latin")
    assert other_letters(MUSEUM, claim) == ("Latin", letters)
    assert other_letters(claim, claim) is None
    assert other_letters(claim, f"{MUSEUM} {claim} {claim}") is None


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Der Eintritt ist freitags frei.", MUSEUM),
        ("It weighs 5 µg, or 3 Ω.", "It is light."),
        ("iPhone 15", "新しいiPhone 15を買った。"),
        ("東京は大きい。", "大きい東京です"),
        ("数字は42です", "スウジハ４２デス"),
        ("42", CLAIMS["Arabic"]),
        ("", MUSEUM),
        (MUSEUM, "..."),
    ],
)
def test_names_units_and_numbers_are_no_other_letters(claim: str, text: str) -> None:
    assert other_letters(claim, text) is None


@given(st.text(), st.text())
def test_any_two_texts_are_compared(claim: str, text: str) -> None:
    found = other_letters(claim, text)
    assert found is None or found[0] != found[1]
    assert other_letters(claim, claim) is None


class _Local(ScriptedModel):
    """Stand for the local model with demur's adapter."""

    @property
    def _llm_type(self) -> str:
        return "demur-local"

    @property
    def judging(self) -> dict[str, Any]:
        return {}


def _check(answer: str, contexts: Sequence[str], **options: Any) -> tuple[Evaluation, list[str]]:
    asked: list[str] = []

    def script(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
        asked.append(isolated("claim", messages))
        return weighing("Entailment", {"Entailment": -0.1, "Neutral": -3.0})

    checker = RefChecker(_Local(script=script), **options)
    return checker.invoke({"answer": answer, "contexts": contexts}), asked


def test_such_a_claim_is_undetermined_and_the_model_is_not_asked() -> None:
    for claim in CLAIMS.values():
        found, asked = _check(claim, [MUSEUM])
        assert found.undetermined
        assert asked == []
        assert "Retrieve texts in the language of the answer" in str(found.claims[0].error)


def test_the_other_claims_and_texts_are_judged() -> None:
    claim = CLAIMS["Cyrillic"]
    found, asked = _check(f"Entry is free on Fridays. {claim}", [MUSEUM], max_windows=4)
    assert asked == ["Entry is free on Fridays."]
    assert [one.label for one in found.claims] == [ClaimLabel.ENTAILMENT, None]
    assert found.undetermined
    # A text in its own letters is enough to support it.
    both, asked = _check(claim, [MUSEUM, claim * 30], max_windows=4, window_tokens=60)
    assert asked
    assert both.passed


def test_other_judges_are_asked_nevertheless() -> None:
    found, asked = _check(CLAIMS["Arabic"], [MUSEUM], checker="per_claim")
    assert asked == [CLAIMS["Arabic"]]
    assert found.passed


def test_the_small_judge_is_not_asked_either() -> None:
    pytest.importorskip("demur_judge")
    found = RefChecker("small").invoke({"answer": CLAIMS["Cyrillic"], "contexts": [MUSEUM]})
    assert found.undetermined
    assert found.claims[0].support is None
