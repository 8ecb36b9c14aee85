"""The faults are what their names say, to a client that knows nothing of demur."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from support.fakes import ScriptedModel
from support.faults import FAULTS, Faulty
from support.openai_server import Answer, openai_server


def post(url: str, text: str = "hello", timeout: float = 60, **fields: Any) -> httpx.Response:
    request = {"model": "test", "messages": [{"role": "user", "content": text}], **fields}
    return httpx.post(f"{url}/chat/completions", json=request, timeout=timeout)


def met(name: str, **options: Any) -> httpx.Response:
    with openai_server([FAULTS[name](Answer("a good reply"))]) as server:
        return post(server.url, **options)


@pytest.mark.parametrize(
    ("name", "status"),
    [("429", 429), ("429 Retry-After", 429), ("500", 500), ("503 HTML", 503), ("200 HTML", 200)],
)
def test_a_status(name: str, status: int) -> None:
    assert met(name).status_code == status


def test_the_pause_that_is_asked_for() -> None:
    assert met("429 Retry-After").headers["Retry-After"] == "1"
    assert met("429 Retry-After date").headers["Retry-After"].endswith("GMT")
    assert "Retry-After" not in met("429").headers


@pytest.mark.parametrize("name", ["200 HTML", "503 HTML"])
def test_a_page_for_people(name: str) -> None:
    response = met(name)
    assert response.headers["Content-Type"] == "text/html"
    assert response.text.startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["cut", "cut body"])
def test_a_connection_that_is_cut(name: str) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        met(name)


def test_a_hang_outlasts_the_client_but_not_the_server() -> None:
    with ThreadPoolExecutor(1) as pool:
        with openai_server([FAULTS["hang"](Answer())]) as server:
            with pytest.raises(httpx.ReadTimeout):
                post(server.url, timeout=0.2)
            waiting = pool.submit(post, server.url, timeout=3600)
            while len(server.requests) < 2:
                time.sleep(0.01)
        with pytest.raises(httpx.RemoteProtocolError):
            waiting.result()


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("empty choices", lambda body: body["choices"] == []),
        ("error in 200", lambda body: "choices" not in body),
        ("null content", lambda body: body["choices"][0]["message"]["content"] is None),
        ("truncated", lambda body: body["choices"][0]["finish_reason"] == "length"),
        ("truncated", lambda body: body["choices"][0]["message"]["content"] == "a good"),
    ],
)
def test_a_body_that_holds_no_good_reply(name: str, read: Callable[[Any], bool]) -> None:
    assert read(met(name).json())


def test_a_body_that_is_no_json() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        met("malformed JSON").json()


def test_a_streamed_reply_comes_in_chunks_with_its_usage() -> None:
    text = "one  two\nthree "
    with openai_server([text]) as server:
        chunks = list(server.model(stream_usage=True).stream("some words"))
    assert [chunk.content for chunk in chunks if chunk.content] == ["one", "  two", "\nthree "]
    whole = sum(chunks[1:], chunks[0])
    assert whole.response_metadata["finish_reason"] == "stop"
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] == 3


def test_a_stream_may_be_cut_in_its_middle() -> None:
    seen = []
    with openai_server([Answer("one two three four", sent=0.5)]) as server:
        stream = server.model().stream("x")
        with pytest.raises((httpx.TransportError, openai.APIConnectionError)):
            seen.extend(chunk.content for chunk in stream)
    assert "one" in seen
    assert " four" not in seen


def fates(seed: int) -> list[str]:
    """Statuses of 200 requests over a server that spoils a fifth of them."""
    found = []
    script = Faulty(lambda _, number: Answer("x"), ["500"], share=0.2, seed=seed)
    with openai_server(script) as server, httpx.Client() as client:
        for at in range(200):
            request = {"model": "test", "messages": [{"role": "user", "content": f"{at % 100}"}]}
            found.append(client.post(server.url, json=request).status_code)
    assert script.met["500"] == found.count(500)
    return found


@pytest.mark.slow
def test_a_share_of_the_requests_is_spoiled_and_always_the_same_ones() -> None:
    first = fates(1)
    assert 20 < first.count(500) < 60
    assert fates(1) == first
    assert fates(2) != first
    assert first[:100] != first[100:], "a request that is made again meets another fate"


def test_faults_can_be_held_to_a_stage_and_to_a_number() -> None:
    model = ScriptedModel(script=lambda *_: "x")
    for text, stage in (("a", "extraction"), ("b", "checking"), ("c", "extraction")):
        model.invoke(text, {"run_name": stage})

    def statuses(**options: Any) -> list[int]:
        script = Faulty(lambda *_: Answer("x"), ["500"], **options)
        with openai_server(script) as server:
            return [post(server.url, text).status_code for text in "abc"]

    assert statuses(stage="extraction") == [500, 200, 500]
    assert statuses(stage="claim") == [200, 500, 200]
    assert statuses(times=2) == [500, 500, 200]
    assert statuses(stage="extraction", times=1) == [500, 200, 200]
