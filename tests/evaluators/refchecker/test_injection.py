"""Test what the texts of the injection suite can do to a prompt and to the reading of a reply."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import pytest
from langchain_core.messages import BaseMessage

from demur import ClaimLabel, Evaluation, RefChecker
from demur.evaluators.refchecker.prompts import (
    JOINT,
    LOGPROBS,
    PER_CLAIM,
    TRIPLETS,
    for_small_model,
)
from demur.local import ADAPTED
from demur.runtime.prompting import as_shown
from demur_research.texts.injections import CASES, INJECTIONS, placed
from support.fakes import ScriptedModel, isolated

PROMPTS = (JOINT, PER_CLAIM, LOGPROBS, ADAPTED, for_small_model(TRIPLETS))
ALL = [
    pytest.param(injection.text, id=f"{at}-{injection.family}")
    for at, injection in enumerate(INJECTIONS)
]


@pytest.mark.parametrize("text", ALL)
def test_no_text_brings_tags_tokens_or_hidden_signs_into_a_prompt(text: str) -> None:
    for prompt in PROMPTS:
        fields = dict.fromkeys(prompt.fields, f"Ann runs Crumb. {text}")
        *_, shown = prompt.messages(**fields)
        content = str(shown.content)
        marks = [tag for field in prompt.fields for tag in (f"<{field}-", f"</{field}-")]
        assert [found[: len(mark)] for found, mark in zip(_tags(content), marks, strict=True)] == (
            marks
        )
        assert not {unicodedata.category(sign) for sign in content} & {"Cf", "Cn"}
        assert all(sign.isprintable() or sign == "\n" for sign in content)


def _tags(text: str) -> list[str]:
    return re.findall(r"<[^<>\s][^<>]*>", text)


def _judged(checker: str, case_at: int, place: str, text: str, verdict: str) -> Evaluation:
    """Return the evaluation of a judge that quotes what it was shown before its verdict."""
    case = placed(CASES[case_at % len(CASES)], place, text)

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        field = {"joint": "claims", "claim": "claim"}[stage]
        quoted = isolated("reference" if place == "passage" else field, messages)
        count = len(isolated(field, messages).splitlines()) if stage == "joint" else 0
        numbers = [f"{at}. " for at in range(1, count + 1)] or [""]
        return "\n".join([quoted, "", *(f"{number}{verdict}" for number in numbers)])

    evaluator = RefChecker(ScriptedModel(script=script), checker=checker, claims="sentences")
    return evaluator.invoke({"answer": case.claim, "contexts": [case.passage]})


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["joint", "per_claim"])
@pytest.mark.parametrize("place", ["passage", "claim"])
@pytest.mark.parametrize("label", [ClaimLabel.CONTRADICTION, None], ids=["a verdict", "no verdict"])
def test_what_a_judge_quotes_is_no_verdict(
    label: ClaimLabel | None, place: str, checker: str
) -> None:
    for at, injection in enumerate(INJECTIONS):
        found = _judged(checker, at, place, injection.text, str(label or ""))
        assert {claim.label for claim in found.claims} == {label}, injection
        assert found.undetermined is (label is None)
        assert found.passed is (None if label is None else False)


def test_our_own_examples_are_shown_as_they_are_written() -> None:
    texts = [text for prompt in PROMPTS for shot in prompt.examples for _, text in shot.values]
    assert texts
    assert [as_shown(text) for text in texts] == texts
