"""Provide decision models of LangChain: one that a script answers for, and one behind HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from langchain_core.decisions import BaseDecisionModel, ClassifierResponse
from pydantic import Field, SecretStr

from support import facts
from support.openai_server import Answer, OpenAIServer, openai_server

KEY = "sk-decisions-4f9a2c71"
"""The key that `HttpDecisions` sends."""
Replies = Callable[[dict[str, Any], int], "Answer | dict[str, Any]"]
"""A function from a request and its number to the answers by name, or to a whole answer."""


def choice(label: str, **probabilities: float) -> dict[str, Any]:
    """Return the answer to one question; without probabilities, the choice alone."""
    return {"type": "choice", "choice": label, "probabilities": probabilities, "confidence": 0.5}


def sure(label: str) -> dict[str, Any]:
    """Return an answer that gives the label nine tenths, and each other the half of the rest."""
    labels = ("Entailment", "Neutral", "Contradiction")
    return choice(label, **{one: 0.9 if one == label else (1 - 0.9) / 2 for one in labels})


_CLIENT: dict[str, Any] = {"trust_env": False, "timeout": 30, "verify": False}
"""Options of a client; without TLS, whose certificates take longer to read than the reply."""


class HttpDecisions(BaseDecisionModel):
    """Ask a server on this machine, which `decisions_server` runs."""

    model: str = "decider-1"
    base_url: str
    api_key: SecretStr = SecretStr(KEY)

    @property
    def _provider(self) -> str:
        return "tests"

    def _request(self, state: Any, questions: Any) -> dict[str, Any]:
        asked = {name: one.model_dump() for name, one in questions.items()}
        return {
            "url": f"{self.base_url}/decisions",
            "json": {"model": self.model, "state": state, "questions": asked},
            "headers": {"Authorization": f"Bearer {self.api_key.get_secret_value()}"},
        }

    def _classify(self, state: Any, questions: Any) -> ClassifierResponse:
        with httpx.Client(**_CLIENT) as client:
            return _read(client.post(**self._request(state, questions)))

    async def _aclassify(self, state: Any, questions: Any) -> ClassifierResponse:
        async with httpx.AsyncClient(**_CLIENT) as client:
            return _read(await client.post(**self._request(state, questions)))


def _read(response: httpx.Response) -> ClassifierResponse:
    response.raise_for_status()
    return ClassifierResponse.model_validate(response.json())


@contextmanager
def decisions_server(replies: Replies) -> Iterator[OpenAIServer]:
    """Serve decisions on a free port of the loopback for the length of the block."""

    def script(request: dict[str, Any], number: int) -> Answer:
        answered = replies(request, number)
        if isinstance(answered, Answer):
            return answered
        words = len(json.dumps(request).split())
        usage = {"input_tokens": words, "output_tokens": len(answered)}
        body = {"model": request["model"], "answers": answered, "usage": usage}
        return Answer(body=json.dumps(body).encode())

    with openai_server(script) as server:
        yield server


def asked(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the claims that a request asks about, by the names of the questions."""
    claims = request["state"]["claims"]
    return {
        name: claims[re.findall(r"claim number (\d+)", question["instructions"])[0]]
        for name, question in request["questions"].items()
    }


class TrueDecisions(BaseDecisionModel):
    """Answer in this process, as a judge that knows the truth about all items of `facts`."""

    model: str = Field(default="truthful")

    @property
    def _provider(self) -> str:
        return "tests"

    def _classify(self, state: Any, questions: Any) -> ClassifierResponse:
        dumped = {name: one.model_dump() for name, one in questions.items()}
        claims = asked({"state": state, "questions": dumped})
        answers = {name: sure(str(facts.label_of(claim))) for name, claim in claims.items()}
        return ClassifierResponse.model_validate({"model": self.model, "answers": answers})
