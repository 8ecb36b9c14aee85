"""Judge as demur's adapter does at an endpoint: by the log-probabilities of three tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from langchain_core.messages import convert_to_messages

from demur import ClaimLabel
from support import facts
from support.fakes import isolated
from support.openai_server import Answer, Script

TOKENS = {
    ClaimLabel.ENTAILMENT: "Ent",
    ClaimLabel.CONTRADICTION: "Contr",
    ClaimLabel.NEUTRAL: "Neutral",
}
KNOWN = {
    "Children under six pay nothing.": ClaimLabel.ENTAILMENT,
    "The pool has a sauna.": ClaimLabel.NEUTRAL,
}
"""The claims by which an endpoint shows that its adapter is demur's, and their labels."""


def claim_of(request: dict[str, Any]) -> str:
    """Return the claim that a request asks about."""
    return isolated("claim", convert_to_messages(request["messages"]))


def judging(label_of: Callable[[str], ClaimLabel] = facts.label_of) -> Script:
    """Return the script of a server that labels claims as told, and the known claims rightly."""

    def script(request: dict[str, Any], number: int) -> Answer:
        claim = claim_of(request)
        return labelled(KNOWN.get(claim) or label_of(claim))

    return script


def labelled(label: ClaimLabel) -> Answer:
    """Return a reply that is sure of a label."""
    logprobs = {token: -0.1 if one is label else -5.0 for one, token in TOKENS.items()}
    likeliest = dict(sorted(logprobs.items(), key=lambda one: -one[1]))
    return Answer(TOKENS[label], first_token=likeliest, finish_reason="length")


def without_adapter(request: dict[str, Any], number: int) -> Answer:
    """Reply as the chat model does without an adapter: it contradicts everything."""
    return labelled(ClaimLabel.CONTRADICTION)


def in_llama_cpps_form(answer: Answer, name: str = "demur-judge") -> Answer:
    """Return a reply as llama.cpp writes it, with probabilities in place of their logarithms."""
    assert answer.first_token is not None
    likely = [
        {"id": 0, "token": token, "bytes": [], "prob": math.exp(value)}
        for token, value in answer.first_token.items()
    ]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text},
        "logprobs": {"content": [{**likely[0], "top_probs": likely}]},
        "finish_reason": "length",
    }
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": name}
    return replace(answer, body=json.dumps({**body, "choices": [choice], "usage": usage}).encode())
