"""What tells models from others: embeddings by their vectors, chat models by their replies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel

from demur._fingerprints.values import host_of, marked_digits, named, shown, without_credentials

_FIELDS = (
    *("model", "model_name", "model_id", "deployment", "azure_deployment", "repo_id"),
    *("revision", "dimensions", "size"),
)
"""What LangChain's embedding classes call the choices that change a vector."""


def fingerprint(embedding: object) -> str:
    """What tells the vectors of `embedding` from those of other models, as far as it can be told.

    The object's own `fingerprint`, if that is a text, as the embedded MiniLM has of its weights;
    else its class and the fields by which LangChain's classes name a model. A cache
    around a model has the model's. Two models behind one class without such a field look the
    same: give that class an attribute `fingerprint`.
    """
    own = getattr(embedding, "fingerprint", None)
    if isinstance(own, str) and own:
        return own
    if (cached := getattr(embedding, "underlying_embeddings", None)) is not None:
        return fingerprint(cached)
    told = ((field, getattr(embedding, field, None)) for field in _FIELDS)
    fields = [f"{field}={value}" for field, value in told if isinstance(value, str | int)]
    return without_credentials(" ".join([type(embedding).__qualname__, *fields]))


_ENDPOINTS = (
    *("openai_api_base", "azure_endpoint", "anthropic_api_url", "base_url", "endpoint"),
    *("endpoint_url", "api_base"),
)
"""What chat models call the address that they ask."""
_NAMES = ("model_name", "model")
_WITHOUT_EFFECT = frozenset(
    (
        # how a reply comes, and how often it is asked for
        *("stream", "streaming", "stream_usage", "stream_options", "disable_streaming"),
        *("stream_chunk_timeout", "timeout", "request_timeout", "default_request_timeout"),
        *("max_retries", "rate_limiter", "cache", "verbose", "callbacks"),
        # all but the first of several replies are left unread
        "n",
        # what providers keep for their customers
        *("tags", "metadata", "user", "safety_identifier", "store"),
        *("prompt_cache_key", "prompt_cache_retention"),
    )
)
"""Parameters that change no reply. Any other one counts, also one that is not known here."""
_PASSED_ON = ("model_kwargs", "additional_kwargs")
"""Parameters that hold further ones."""


def model_fingerprint(model: BaseChatModel) -> str:
    """What tells a chat model's replies from those of others: name, endpoint, parameters.

    Such as "ChatOpenAI gpt-4o-mini (host=api.openai.com/v1, seed=1, temperature=0)". Parameters
    that change no reply, such as `streaming`, are left out, and so are those that are not set. A
    model with a `fingerprint` of its own, as the local one has of its weights, is told by that
    instead of by its endpoint. Keys are no part of it. Two models behind one class that tells
    LangChain of no parameter (`_identifying_params`) look the same.
    """
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    head = " ".join([type(model).__qualname__, *([_shown_name(str(name))] if name else [])])
    params: object = model._identifying_params
    if not isinstance(params, Mapping):  # of a class that says it in a way of its own
        params = {"parameters": params}
    own = getattr(model, "fingerprint", None)
    host = _host(model, params)
    if isinstance(own, str) and own:
        source = [f"fingerprint={shown(own)}"]
    else:
        source = [f"host={host}"] if host else []
    said = {*source, *(f"{key}={shown(name)}" for key in _NAMES)}
    said |= {f"{key}={host}" for key in _ENDPOINTS}
    parts = [*source, *(part for part in named(_effective(params)) if part not in said)]
    return f"{head} ({', '.join(parts)})" if parts else head


def endpoint_of(model: BaseChatModel) -> str:
    """Who is asked: host and path of the model's address; without one, the model's class."""
    params: object = model._identifying_params
    return _host(model, params if isinstance(params, Mapping) else {}) or type(model).__qualname__


def _shown_name(name: str) -> str:
    plain = without_credentials(name)
    return marked_digits(name) if re.search(r"[(),=]", plain) else plain


def _host(model: BaseChatModel, params: Mapping[str, Any]) -> str | None:
    """Of the address that a model asks, if it tells one."""
    client = getattr(model, "root_client", None)  # of OpenAI's: it has read the environment
    addresses = [getattr(client, "base_url", None)]
    addresses += [getattr(model, at, None) or params.get(at) for at in _ENDPOINTS]
    return next((host_of(str(address)) for address in addresses if address), None)


def _effective(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that may change a reply."""
    kept = {key: value for key, value in params.items() if key not in _WITHOUT_EFFECT}
    for key in _PASSED_ON:
        if isinstance(inner := kept.get(key), Mapping):
            kept[key] = {k: v for k, v in inner.items() if k not in _WITHOUT_EFFECT}
    return kept
