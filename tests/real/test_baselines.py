"""Test that the baselines can read the real local model, which knows too little for more."""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

from demur.evaluators import LMvsLM, SelfCheck, ZeroShot

pytestmark = pytest.mark.real

PASSAGE = "Paris is the capital of Germany. It lies on the river Seine."


def test_zero_shot_gives_a_verdict(model: BaseChatModel) -> None:
    found = ZeroShot(model).invoke({"answer": PASSAGE})
    assert found.label in ("factual", "non-factual")
    assert found.usage.output_tokens > 0


def test_an_examiner_questions_an_examinee(model: BaseChatModel) -> None:
    found = LMvsLM(model, max_rounds=1).invoke({"answer": PASSAGE})
    assert found.label in ("factual", "non-factual")
    first, second = found.details["dialogue"][:2]
    assert (first["by"], second["by"]) == ("examiner", "examinee")
    assert "?" in first["said"]


@pytest.mark.smoke
def test_what_the_samples_do_not_say_is_less_consistent(model: BaseChatModel) -> None:
    samples = ["Paris is the capital of France. The river Seine flows through it."]
    checker = SelfCheck(model, method="prompt")
    good = checker.invoke(
        {"answer": "Paris is the capital of France.", "metadata": {"samples": samples}}
    )
    bad = checker.invoke(
        {"answer": "Paris is a small village in Peru.", "metadata": {"samples": samples}}
    )
    assert (good.score, bad.score) == (1, 0)


def test_samples_are_drawn_and_differ(model: BaseChatModel) -> None:
    found = SelfCheck(model, method="ngram", n_samples=2).invoke(
        {"question": "Invent a name for a ship, and say why.", "answer": "The Fox."}
    )
    assert found.error is None
    assert len(set(found.details["samples"])) > 1
