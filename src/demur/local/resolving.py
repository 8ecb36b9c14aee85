"""Make a chat model from what names it."""

from __future__ import annotations

import os
import re

from langchain_core.language_models import BaseChatModel

from demur.errors import DemurError, needs
from demur.local.small_judge import SMALL

_JUDGE = "judge"
"""The provider of judges that are served elsewhere."""
# Reasoning models reject a request with a temperature.
_FIXED_TEMPERATURE = re.compile(r"(o\d|gpt-5)")


def resolve_model(model: str | BaseChatModel) -> BaseChatModel:
    """Return the chat model that `model` names.

    Args:
        model: One of the names below, or a LangChain chat model, which is returned as it is.

            - `"openai:NAME"`: a model at any endpoint that speaks OpenAI's protocol. The key and
              the base URL come from `OPENAI_API_KEY` and `OPENAI_BASE_URL`.
            - `"ollama:NAME"`: a model of Ollama at `OLLAMA_HOST`, by default on this machine.
            - `"local"`: the embedded model, which runs with llama.cpp in this process.
            - `"local:PATH.gguf"`: the weights in this file, run in the same way.

    Returns:
        The chat model. A model that you pass in is never changed.

    Raises:
        ValueError: The name has no known form.
        TypeError: `model` is neither a string nor a chat model.
        MissingExtraError: The local runtime is not installed.
        LocalModelError: The local weights are missing or wrong.
        DemurError: The endpoint is not configured; a key is missing, for example.
    """
    if isinstance(model, BaseChatModel):
        return model
    if not isinstance(model, str):
        raise TypeError(
            f"expected a model name or a LangChain chat model, got {type(model).__name__}"
        )
    provider, _, name = model.partition(":")
    if model == SMALL or provider == _JUDGE:
        raise ValueError(
            f"{model!r} is a judge, and no chat model: it labels claims and writes nothing. Use "
            f"RefChecker({model!r}) to check, and another model here, such as 'local'"
        )
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


def judge_at(name: str) -> BaseChatModel | None:
    """Return the judge at the address in a name such as "judge:http://host:8080", or None.

    Raises:
        ValueError, DemurError: As in `served_judge`.
    """
    provider, _, address = name.partition(":")
    if provider != _JUDGE:
        return None
    from demur.local.served_judge import served_judge

    return served_judge(address)


def _elsewhere(model: str, provider: str, name: str) -> str:
    """Return where to get a model of this name, if the name has the form that LangChain accepts."""
    if not (name and provider) or provider in ("openai", "ollama"):
        return ""
    return (
        f". For the provider {provider!r}, make the model with LangChain and give it in place of "
        f"the name: init_chat_model({model!r}, temperature=0) of langchain.chat_models"
    )


def _openai(name: str, **endpoint: str) -> BaseChatModel:
    from langchain_openai import ChatOpenAI
    from openai import OpenAIError

    # demur retries itself, and the client's own retries would multiply with these.
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
    with needs(None, "local", "the local model"):
        from demur.local.chat import ChatLocal
    return ChatLocal(gguf=gguf)
