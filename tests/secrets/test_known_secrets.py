"""Test how secret values are found in models, clients and the environment."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, SecretBytes, SecretStr

from demur import Guard, RefChecker
from demur._secrets import known_secrets, learn, secrets_in

KEY, TOKEN, WORD = "a key of ours, the 1st", "0123-token-abcd", "hunter2-password"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "X-Password": WORD, "Accept": "application/json"}


class _Client:
    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


class _Model(BaseModel):
    held: SecretBytes
    name: str = "a name that is long enough"


@pytest.mark.parametrize(
    ("owner", "secret"),
    [
        (ChatOpenAI(model="m", api_key=KEY, default_headers=HEADERS), {KEY, TOKEN, WORD}),  # type: ignore[arg-type]  # a text is taken
        (OpenAIEmbeddings(api_key=KEY), {KEY}),  # type: ignore[arg-type]  # a text is taken
        (openai.AsyncOpenAI(api_key=KEY, default_headers=HEADERS), {KEY, TOKEN, WORD}),
        (httpx.Client(headers={"x-api-key": TOKEN}), {TOKEN}),
        (_Client(inner=[_Client(_api_key=KEY)], max_tokens="not a secret at all"), {KEY}),
        (_Model(held=SecretBytes(KEY.encode())), {KEY}),
        ({"openai_api_keys": [TOKEN, KEY], "cache_key": "a place in a table"}, {TOKEN, KEY}),
        ([{"name": "Authorization", "value": f"Basic {TOKEN}"}], {TOKEN}),
        ([["x-api-key", TOKEN], [b"cookie", b"a=b; c=d"]], {TOKEN, "a=b; c=d"}),
        ({"a": SecretStr(KEY), "b": SecretStr("")}, {KEY}),
        ((["access token", "is", "what a session begins with"],), set()),
        # These values are placeholders and paths, which identify no secret.
        ({"api_key": "EMPTY", "token": "not-needed", "password": "postgres"}, set()),
        ({"credentials": "/etc/keys/google.json", "tls_key": "~/keys/tls.pem"}, set()),
    ],
)
def test_secrets_of_objects(owner: object, secret: set[str]) -> None:
    assert secrets_in(owner) == secret


def test_an_object_may_hold_itself_and_much() -> None:
    circle: dict[str, Any] = {"api_key": KEY}
    circle["self"] = [circle, *range(100_000)]
    assert secrets_in(circle) == {KEY}


def test_what_evaluators_and_guards_are_made_of_is_learnt() -> None:
    def model(key: str) -> ChatOpenAI:
        return ChatOpenAI(model="m", api_key=key)  # type: ignore[arg-type]  # a text is taken

    keys = {f"key of a model, the {at}" for at in ("1st 1", "2nd 2", "3rd 3")}
    judging, answering, repairing = map(model, sorted(keys))
    chain = RunnableLambda(str) | answering
    assert keys.isdisjoint(known_secrets())
    Guard(chain, RefChecker(judging), model=repairing)
    assert keys <= known_secrets()


def test_the_environment_is_looked_at_each_time_and_a_key_that_was_changed_stays_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "first-value-1")
    monkeypatch.setenv("SERVICE_NAME", "no secret, value 1")
    assert "first-value-1" in known_secrets()
    monkeypatch.setenv("SERVICE_TOKEN", "second-value-2")
    assert {"first-value-1", "second-value-2"} <= known_secrets()
    assert "no secret, value 1" not in known_secrets()


def test_the_process_keeps_the_last_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demur._secrets.known._learnt", {})  # later tests must not see them
    learn({"api_keys": ["the very first value 1"]})
    for at in range(1000):
        learn({"api_key": f"value number {at} of a thousand"})
    assert "the very first value 1" not in known_secrets()
    assert "value number 999 of a thousand" in known_secrets()
