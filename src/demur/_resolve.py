"""From a short name to a chat model."""

from __future__ import annotations

import os
import re

from langchain_core.language_models import BaseChatModel

from demur.errors import DemurError, MissingExtraError

# Reasoning models refuse a temperature.
_FIXED_TEMPERATURE = re.compile(r"(o\d|gpt-5)")


def resolve_model(model: str | BaseChatModel) -> BaseChatModel:
    """The chat model that `model` names.

    Args:
        model: `"openai:NAME"` (key and base URL from `OPENAI_API_KEY` and `OPENAI_BASE_URL`, so any
            endpoint that speaks OpenAI's protocol), `"ollama:NAME"` (at `OLLAMA_HOST`, default
            this machine), `"local"` or `"local:PATH.gguf"` (llama.cpp in this process), or a
            LangChain chat model, which is returned as it is and never changed.

    Raises:
        ValueError: The name has no known form.
        TypeError: Neither a string nor a chat model.
        MissingExtraError: The local runtime is not installed.
        LocalModelError: The local weights are missing or wrong.
        DemurError: The endpoint is not configured, such as a missing key.
    """
    if isinstance(model, BaseChatModel):
        return model
    if not isinstance(model, str):
        raise TypeError(
            f"expected a model name or a LangChain chat model, got {type(model).__name__}"
        )
    provider, _, name = model.partition(":")
    if provider == "local":
        return _local(name or None)
    if provider == "openai" and name:
        return _openai(name)
    if provider == "ollama" and name:
        host = os.environ.get("OLLAMA_HOST") or "http://127.0.0.1:11434"
        if "://" not in host:
            host = f"http://{host}"
        return _openai(name, base_url=f"{host.rstrip('/')}/v1", api_key="ollama")
    raise ValueError(
        f"unknown model {model!r}: expected 'openai:NAME', 'ollama:NAME', 'local', "
        f"'local:PATH.gguf' or a LangChain chat model{_elsewhere(model, provider, name)}"
    )


def _elsewhere(model: str, provider: str, name: str) -> str:
    """Where a model of this name can be had, if it is of the form that LangChain takes."""
    if not (name and provider) or provider in ("openai", "ollama"):
        return ""
    return (
        f". For the provider {provider!r}, make the model with LangChain and give it in place of "
        f"the name: init_chat_model({model!r}, temperature=0) of langchain.chat_models"
    )


def _openai(name: str, **endpoint: str) -> BaseChatModel:
    from langchain_openai import ChatOpenAI
    from openai import OpenAIError

    # Retries are ours: the client's own would multiply with them.
    options: dict[str, object] = {"model": name, "max_retries": 0, **endpoint}
    if not _FIXED_TEMPERATURE.match(name):
        options["temperature"] = 0
    try:
        return ChatOpenAI(**options)  # type: ignore[arg-type]  # a plain dict of its fields
    except OpenAIError as error:
        raise DemurError(
            f"openai:{name} cannot be used: {str(error).rstrip('.')}. Set OPENAI_API_KEY (and "
            "OPENAI_BASE_URL for another endpoint), or use --model local / resolve_model('local')."
        ) from error


def _local(gguf: str | None) -> BaseChatModel:
    try:
        from demur.local import ChatLocal
    except ImportError as error:
        raise MissingExtraError(error.name or "xllamacpp", "local", "the local model") from error
    return ChatLocal(gguf=gguf)
