"""Answer yes or no as a public judge at an endpoint does, whatever template it is asked with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from demur import ClaimLabel
from demur.similarity import NAMED, YesNoJudge
from support import facts
from support.openai_server import Answer, Script

ASKED = YesNoJudge(
    "Document: {document}\nClaim: {claim}", supported="Yes", unsupported="No", window=300
)
"""A judge with a template of a test's own."""


def claim_of(request: dict[str, Any]) -> str:
    """Return the claim that a request about `ASKED` holds."""
    return str(request["messages"][-1]["content"]).rpartition("\nClaim: ")[2]


def answering(label_of: Callable[[str], ClaimLabel] = facts.label_of, sure: float = -0.1) -> Script:
    """Return the script of a server that says yes to right claims, with log-probabilities."""

    def script(request: dict[str, Any], number: int) -> Answer:
        yes = label_of(claim_of(request)) is ClaimLabel.ENTAILMENT
        words = ("Yes", "No") if yes else ("No", "Yes")
        logprobs = dict(zip(words, (sure, -3.0), strict=True))
        given = logprobs if request.get("logprobs") else None
        return Answer(words[0], first_token=given, finish_reason="length")

    return script


def reply_of(name: str, supported: bool) -> str:
    """Return the reply of a named judge at an endpoint, in the form that its card gives."""
    judge = NAMED[name].judge
    word = str(judge.supported if supported else judge.unsupported)
    if name == "granite-guardian":
        return f"<score> {word} </score>"
    if name == "lynx":
        return json.dumps({"REASONING": ["It says so."], "SCORE": word})
    return word
