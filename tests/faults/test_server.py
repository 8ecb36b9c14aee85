"""The faults are what their names say, to a client that knows nothing of demur."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from support.fakes import ScriptedModel
from support.faults import FAULTS, Faulty
from support.openai_server import Answer, openai_server


def post(url: str, text: str = "hello", timeout: Any = 60, **fields: Any) -> httpx.Response:
    request = {"model": "test", "messages": [{"role": "user", "content": text}], **fields}
    return httpx.post(f"{url}/chat/completions", json=request, timeout=timeout)


def met(name: str) -> httpx.Response:
    with openai_server([FAULTS[name](Answer("a good reply"))]) as server:
        return post(server.url)


def test_each_is_what_its_name_says() -> None:
    statuses = {name: met(name).status_code for name in ("429", "500", "503 HTML", "200 HTML")}
    assert statuses == {"429": 429, "500": 500, "503 HTML": 503, "200 HTML": 200}
    assert met("429 Retry-After").headers["Retry-After"] == "1"
    assert met("429 Retry-After date").headers["Retry-After"].endswith("GMT")
    assert met("503 HTML").text.startswith("<!doctype html>")
    assert met("empty choices").json()["choices"] == []
    assert "choices" not in met("error in 200").json()
    assert met("null content").json()["choices"][0]["message"]["content"] is None
    (choice,) = met("truncated").json()["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", "a good")
    with pytest.raises(ValueError, match="Expecting"):
        met("malformed JSON").json()
    for name in ("cut", "cut body"):
        with pytest.raises(httpx.RemoteProtocolError):
            met(name)


def test_a_hang_outlasts_the_client_but_not_the_server() -> None:
    with ThreadPoolExecutor(1) as pool:
        with openai_server([FAULTS["hang"](Answer())]) as server:
            with pytest.raises(httpx.ReadTimeout):
                post(server.url, timeout=httpx.Timeout(60, read=0.1))
            waiting = pool.submit(post, server.url, timeout=3600)
            server.arrived(2)
        with pytest.raises(httpx.RemoteProtocolError):
            waiting.result()


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
    """Return the faults of 200 requests, a fifth of which are spoiled; each is made twice."""
    script = Faulty(lambda _, number: Answer("x"), ["500"], share=0.2, seed=seed)
    said = [{"messages": [{"role": "user", "content": f"{at % 100}"}]} for at in range(200)]
    found = ["500" if script(one, 0).status == 500 else "" for one in said]
    assert script.met["500"] == found.count("500")
    return found


def test_a_share_of_the_requests_is_spoiled_and_always_the_same_ones() -> None:
    first = fates(1)
    assert 20 < first.count("500") < 60
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
