"""Test how short names are resolved to chat models."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

from demur import DemurError, resolve_model
from support.fakes import scripted
from support.openai_server import openai_server


def test_a_chat_model_is_returned_as_it_is() -> None:
    model = scripted("x")
    assert resolve_model(model) is model


def test_openai_names_a_model_of_any_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server(["hello"]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert resolve_model("openai:org/some-model:7b").invoke([HumanMessage("x")]).text == "hello"
        (request,) = server.requests
    assert request["model"] == "org/some-model:7b"
    assert request["temperature"] == 0


def test_ollama_is_spoken_to_where_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server(["hello"]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://").removesuffix("/v1"))
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        assert resolve_model("ollama:qwen3:8b").invoke([HumanMessage("x")]).text == "hello"
        assert server.requests[0]["model"] == "qwen3:8b"


@pytest.mark.parametrize(
    ("name", "temperature"), [("gpt-4o", 0), ("o3", None), ("gpt-5-mini", None)]
)
def test_reasoning_models_are_given_no_temperature(
    name: str, temperature: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    model = resolve_model(f"openai:{name}")
    assert isinstance(model, ChatOpenAI)
    assert model.temperature == temperature
    assert model.max_retries == 0


def test_a_missing_key_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(DemurError, match="OPENAI_API_KEY"):
        resolve_model("openai:gpt-4o")


def test_a_model_of_another_provider_is_langchains_to_make() -> None:
    with pytest.raises(ValueError, match=r"init_chat_model\('anthropic:claude-x', temperature=0\)"):
        resolve_model("anthropic:claude-x")
    for name in ("", "gpt-4o", "openai:", "ollama:"):
        with pytest.raises(ValueError, match=r"'openai:NAME', 'ollama:NAME', 'local'.*chat model$"):
            resolve_model(name)


@pytest.mark.parametrize("model", [None, 3, object()])
def test_what_is_no_model_is_refused(model: object) -> None:
    with pytest.raises(TypeError, match="expected a model name or a LangChain chat model"):
        resolve_model(model)  # type: ignore[arg-type]  # the mistake that is tested
