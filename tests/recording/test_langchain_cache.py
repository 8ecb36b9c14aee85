"""Test that a recording answers for the models of any chain, and holds no key."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.globals import get_llm_cache
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from demur import DemurError, RefChecker
from demur.recording import open_recording, recorded
from support.openai_server import Answer, openai_server

PROMPT = ChatPromptTemplate.from_template("From {context} answer: {question}")
ASKED = {"context": "the guide", "question": "How tall is the tower?"}


@contextmanager
def recording(path: Path, replay: bool = False) -> Iterator[None]:
    opened = open_recording(path, replay, "with --demur-record")
    with opened as one, recorded(one):
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "replies.jsonl"


def test_a_chain_that_was_recorded_needs_its_endpoint_no_more(path: Path) -> None:
    with openai_server(["330 metres."]) as server, recording(path):
        chain = PROMPT | server.model() | StrOutputParser()
        assert chain.invoke(ASKED) == chain.invoke(ASKED) == "330 metres."
    assert len(server.requests) == 1
    gone = PROMPT | server.model(api_key="another key") | StrOutputParser()
    with recording(path, replay=True):
        assert gone.invoke(ASKED) == "330 metres."
        assert [*gone.stream(ASKED)] == ["330 metres."]


async def test_replies_are_recorded_and_replayed_in_asyncio_and_in_streams(path: Path) -> None:
    asked = {**ASKED, "question": "streamed"}
    with openai_server(["330 metres.", "324 metres."]) as server, recording(path):
        chain = PROMPT | server.model() | StrOutputParser()
        assert await chain.ainvoke(ASKED) == "330 metres."
        assert [one async for one in chain.astream(asked)] == ["324 metres."]
    with recording(path, replay=True):
        assert await chain.ainvoke(ASKED) == "330 metres."
        assert [one async for one in chain.astream(asked)] == ["324 metres."]


def test_a_judge_is_replayed_with_its_tokens(path: Path) -> None:
    sample = {"answer": "The tower is 330 metres tall.", "contexts": ["It is 330 metres tall."]}
    with openai_server(["1. Entailment"]) as server, recording(path):
        first = RefChecker(server.model(), claims="sentences").invoke(sample)
    judge = RefChecker(server.model(), claims="sentences")
    with recording(path, replay=True):
        again = judge.invoke(sample)
    assert first.passed
    assert again.claims == first.claims
    assert (again.usage.calls, again.usage.cached) == (0, 1)


@pytest.mark.parametrize("stop", [None, ["---"]])
def test_another_gateway_and_other_headers_replay_the_same(
    path: Path, stop: list[str] | None
) -> None:
    with openai_server(["330 metres."]) as server, recording(path):
        model = server.model(default_headers={"X-Team": "a"}, organization="a")
        model.invoke("How tall?", stop=stop)
    with openai_server(["never"]) as other, recording(path, replay=True):
        model = other.model(default_headers={"X-Team": "b"}, organization="b", max_retries=3)
        assert model.invoke("How tall?", stop=stop).content == "330 metres."
    assert not other.requests


@pytest.mark.parametrize(
    "other",
    [
        {"temperature": 0.5},
        {"model": "another"},
    ],
)
def test_another_parameter_is_another_request(path: Path, other: dict[str, Any]) -> None:
    with openai_server(["330 metres."]) as server, recording(path):
        server.model().invoke("How tall?")
    with recording(path, replay=True), pytest.raises(DemurError, match="is of ChatOpenAI"):
        server.model(**other).invoke("How tall?")
    with recording(path, replay=True), pytest.raises(DemurError, match="is of ChatOpenAI"):
        server.model().invoke("How tall?", stop=["."])


def test_a_request_that_is_not_recorded_names_the_nearest_and_what_differs(path: Path) -> None:
    model = FakeListChatModel(responses=["330 metres.", "Hello."])
    with recording(path):
        model.invoke("In the city of Paris, how tall is the old tower by the river?")
        model.invoke("Say hello.")
    with recording(path, replay=True), pytest.raises(DemurError) as refused:
        model.invoke("In the city of Paris, how wide is the old tower by the river?")
    message = str(refused.value)
    assert "the city of Paris, how tall is the old tower" in message
    assert "the city of Paris, how wide is the old tower" in message
    assert "hello" not in message
    assert "Record it, with --demur-record" in message


def test_results_of_tools_and_calls_of_tools_are_part_of_a_request(path: Path) -> None:
    def conversation(result: str, city: str = "Paris") -> list[Any]:
        call = {"name": "weather", "args": {"city": city}, "id": "1"}
        asked = [HumanMessage("Will it rain?"), AIMessage("", tool_calls=[call])]
        return [*asked, ToolMessage(result, tool_call_id="1")]

    model = FakeListChatModel(responses=["No.", "wrong"])
    with recording(path):
        model.invoke(conversation("sun"))
    with recording(path, replay=True):
        assert model.invoke(conversation("sun")).content == "No."
        for other in (conversation("rain"), conversation("sun", "Rome")):
            with pytest.raises(DemurError, match="holds no reply"):
                model.invoke(other)


def test_the_role_that_a_message_names_is_part_of_a_request(path: Path) -> None:
    model = FakeListChatModel(responses=["Fine.", "Wrong."])
    with recording(path):
        said = [model.invoke([ChatMessage("Tall.", role=role)]) for role in ("author", "critic")]
    assert [one.content for one in said] == ["Fine.", "Wrong."]


def test_text_models_are_recorded_too(path: Path) -> None:
    with recording(path):
        FakeListLLM(responses=["[a] text"]).invoke("[1] is a list")
    with recording(path, replay=True):
        assert FakeListLLM(responses=["[a] text"]).invoke("[1] is a list") == "[a] text"


def test_no_key_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-4f9aQ7LmZx82TbVd03Kc"
    monkeypatch.setenv("OUR_API_KEY", secret)
    with openai_server([f"The key is {secret}."]) as server, recording(path):
        model = server.model(api_key=secret, default_headers={"Authorization": secret})
        said = model.invoke(f"Repeat {secret}")
    assert secret in str(said.content)
    assert secret not in path.read_text()
    with recording(path, replay=True):
        assert model.invoke(f"Repeat {secret}").content == "The key is [secret]."
        with pytest.raises(DemurError, match=r"where this one has .*Say \[secret\]") as refused:
            model.invoke(f"Say {secret}")
    assert secret not in str(refused.value)
    assert secret[:8] not in str(refused.value)


def test_several_replies_to_one_request_are_refused(path: Path) -> None:
    body = json.dumps(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "test",
            "choices": [
                {
                    "index": at,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": said},
                }
                for at, said in enumerate(("a", "b"))
            ],
        }
    )
    with openai_server([Answer(body=body.encode())]) as server, recording(path):
        model = server.model(n=2)
        with pytest.raises(DemurError, match="2 replies"):
            model.invoke("How tall?")


def test_a_recording_serves_every_thread_until_the_thread_has_left_it(path: Path) -> None:
    entered, left = threading.Event(), threading.Event()
    model = FakeListChatModel(responses=["330 metres."])
    before = get_llm_cache()

    def ask_late() -> None:
        with recorded(opened):
            entered.set()
            left.wait()
            model.invoke("How tall?")

    with open_recording(path) as opened:
        thread = threading.Thread(target=ask_late)
        with recorded(opened):
            thread.start()
            entered.wait()
        left.set()
        thread.join()
        assert len(opened.calls) == 1
    assert get_llm_cache() is before


def test_the_cache_of_before_comes_back(path: Path) -> None:
    before = get_llm_cache()
    with recording(path):
        assert get_llm_cache() is not before
    assert get_llm_cache() is before
