"""What the real local model reads as a control token, no judged text can hold."""

from __future__ import annotations

import pytest

from demur.local import ChatLocal
from demur.prompting import as_shown
from demur_research.texts.injections import INJECTIONS

pytestmark = pytest.mark.real


def test_no_text_holds_a_control_token_of_the_model(model: ChatLocal) -> None:
    end = model.get_token_ids("<|im_end|>")
    assert len(end) == 1  # the server reads it as a control token, wherever it stands
    for injection in INJECTIONS:
        assert end[0] not in model.get_token_ids(as_shown(injection.text)), injection
    for token in ("<|im_start|>", "<|endoftext|>", "<|fim_prefix|>", "<tool_call>", "</s>"):
        assert len(model.get_token_ids(token)) == 1
        assert len(model.get_token_ids(as_shown(token))) > 1
