"""Test that no judged text can contain a control token of the real local model."""

from __future__ import annotations

import pytest

from demur.local import ChatLocal
from demur.prompting import as_shown
from demur_research.texts.injections import INJECTIONS

pytestmark = pytest.mark.real


@pytest.mark.smoke
def test_no_text_holds_a_control_token_of_the_model(model: ChatLocal) -> None:
    end = model.get_token_ids("<|im_end|>")
    assert len(end) == 1  # The server reads it as a control token anywhere.
    for injection in INJECTIONS:
        assert end[0] not in model.get_token_ids(as_shown(injection.text)), injection
    for token in ("<|im_start|>", "<|endoftext|>", "<|fim_prefix|>", "<tool_call>", "</s>"):
        assert len(model.get_token_ids(token)) == 1
        assert len(model.get_token_ids(as_shown(token))) > 1
