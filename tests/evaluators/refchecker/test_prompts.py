"""Test the prompts as a whole: what each model is shown, and what every request pays for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from demur._text import count_tokens
from demur.evaluators import RefCheckerPrompts
from demur.evaluators.refchecker import Prompt
from demur.evaluators.refchecker.extraction import ClaimForm, extract
from demur.evaluators.refchecker.prompts import JOINT, STATEMENTS, TRIPLETS
from demur.runtime import Calls, ChatCall
from support.fakes import scripted

OWN = replace(TRIPLETS, system="List the facts.")


def _asked(form: ClaimForm, prompts: RefCheckerPrompts, bounded: bool) -> list[str]:
    """Return the texts of the first request for claims."""
    steps = extract(scripted(""), "Oslo is old.", "What is Oslo?", form, prompts, bounded)
    effect = next(steps)
    assert isinstance(effect, Calls)
    (call,) = effect.calls
    assert isinstance(call, ChatCall)
    return [str(message.content) for message in call.messages]


@pytest.mark.parametrize(("form", "mark"), [("triplets", '"predicate"'), ("statements", "- ")])
def test_a_small_model_sees_a_refusal_and_the_form_last(form: Any, mark: str) -> None:
    small = _asked(form, RefCheckerPrompts(), bounded=True)
    other = _asked(form, RefCheckerPrompts(), bounded=False)
    assert "No claims" in small
    assert "No claims" not in other
    assert len(small) == len(other) + 2
    assert small[0] == other[0]
    assert mark in small[-1].splitlines()[-1]


@pytest.mark.parametrize("bounded", [True, False])
def test_a_prompt_of_the_users_own_is_shown_to_every_model(bounded: bool) -> None:
    asked = _asked("triplets", RefCheckerPrompts(triplets=OWN), bounded)
    assert asked[0] == "List the facts."
    assert len(asked) == 1 + 2 * len(OWN.examples) + 1


@pytest.mark.parametrize(("prompt", "most"), [(TRIPLETS, 340), (STATEMENTS, 310), (JOINT, 190)])
def test_what_every_request_pays_for_stays_small(prompt: Prompt, most: int) -> None:
    nothing = dict.fromkeys(prompt.fields, "x")
    shown = prompt.messages(**nothing)
    assert sum(count_tokens(str(message.content)) for message in shown) <= most
