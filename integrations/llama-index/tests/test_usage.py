"""Test tokens, stop reasons and log-probabilities as providers pass them to LlamaIndex."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    LogProb,
    MessageRole,
)

from llama_index.evaluation.demur._usage import metadata_of, tokens_of


def _response(**fields: Any) -> ChatResponse:
    return ChatResponse(message=ChatMessage("said", role=MessageRole.ASSISTANT), **fields)


_OPENAI = {"prompt_tokens": 7, "completion_tokens": 2}
_TOLD = {
    "openai, a mapping": {"raw": {"usage": _OPENAI}},
    "openai, an object": {"raw": SimpleNamespace(usage=SimpleNamespace(**_OPENAI))},
    "openai, beside it": {"additional_kwargs": {**_OPENAI, "total_tokens": 9}},
    "openai, usage is null": {"raw": {"usage": None}, "additional_kwargs": _OPENAI},
    "openai, zeros in raw": {
        "raw": {"usage": {"prompt_tokens": 0, "completion_tokens": 0}},
        "additional_kwargs": _OPENAI,
    },
    "anthropic": {"raw": {"usage": SimpleNamespace(input_tokens=7, output_tokens=2)}},
    "bedrock": {"raw": {"usage": {"inputTokens": 7, "outputTokens": 2}}},
    "gemini": {"raw": {"usage_metadata": {"prompt_token_count": 7, "candidates_token_count": 2}}},
    "ollama": {"raw": {"prompt_eval_count": 7, "eval_count": 2, "done": True}},
    "anthropic, from its cache": {
        "raw": {
            "usage": SimpleNamespace(
                input_tokens=0,
                cache_creation_input_tokens=3,
                cache_read_input_tokens=4,
                output_tokens=2,
            )
        }
    },
    "gemini, thinking": {
        "raw": {
            "usage_metadata": {
                "prompt_token_count": 7,
                "candidates_token_count": 1,
                "thoughts_token_count": 1,
            }
        }
    },
    "openai, from its cache": {
        # These tokens are among the prompt's tokens.
        "raw": {"usage": {**_OPENAI, "cache_read_input_tokens": 4}},
    },
}


@pytest.mark.parametrize("told", _TOLD.values(), ids=_TOLD)
def test_tokens_are_found_under_each_name(told: dict[str, Any]) -> None:
    assert tokens_of(_response(**told)) == {
        "input_tokens": 7,
        "output_tokens": 2,
        "total_tokens": 9,
    }


@pytest.mark.parametrize(
    "raw",
    [None, {}, {"usage": {}}, {"usage": "many"}, {"usage": {"prompt_tokens": True}}, "text", 7],
    ids=repr,
)
def test_no_tokens_are_made_up(raw: Any) -> None:
    assert tokens_of(_response(raw=raw)) is None
    assert metadata_of(_response(raw=raw)) == {}


class _Reason(str, Enum):
    MAX_TOKENS = "MAX_TOKENS"


_ENDS = {
    "openai": ({"choices": [{"finish_reason": "length"}]}, "length"),
    "openai, an object": (
        SimpleNamespace(choices=[SimpleNamespace(finish_reason="stop", logprobs=None)]),
        "stop",
    ),
    "anthropic": ({"stop_reason": "max_tokens"}, "max_tokens"),
    "bedrock": ({"stopReason": "max_tokens"}, "max_tokens"),
    "gemini": ({"candidates": [{"finish_reason": _Reason.MAX_TOKENS}]}, "MAX_TOKENS"),
    "ollama": ({"done_reason": "length"}, "length"),
}


@pytest.mark.parametrize(("raw", "reason"), _ENDS.values(), ids=_ENDS)
def test_reasons_are_found(raw: Any, reason: str) -> None:
    assert metadata_of(_response(raw=raw)) == {"finish_reason": reason}


_TOP = [{"token": "No", "logprob": -0.2}, {"token": "Yes", "logprob": -1.5}]


def test_logprobs_are_those_of_llamaindex() -> None:
    told = [[LogProb(**one) for one in _TOP], []]
    (token,) = metadata_of(_response(logprobs=told))["logprobs"]["content"]
    assert token == {"token": "No", "logprob": -0.2, "top_logprobs": _TOP}
