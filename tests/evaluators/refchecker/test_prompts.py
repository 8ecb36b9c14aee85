"""Test the prompts as a whole: what each model is shown, and what every request pays for."""

from __future__ import annotations

import pytest

from demur._text import count_tokens
from demur.evaluators.refchecker import Prompt
from demur.evaluators.refchecker.prompts import JOINT, STATEMENTS, TRIPLETS


@pytest.mark.parametrize(("prompt", "most"), [(TRIPLETS, 340), (STATEMENTS, 310), (JOINT, 190)])
def test_what_every_request_pays_for_stays_small(prompt: Prompt, most: int) -> None:
    nothing = dict.fromkeys(prompt.fields, "x")
    shown = prompt.messages(**nothing)
    assert sum(count_tokens(str(message.content)) for message in shown) <= most
