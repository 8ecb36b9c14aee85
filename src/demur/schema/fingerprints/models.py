"""Make fingerprints of models: of embeddings by their vectors, of chat models by their replies."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel

from demur.schema.fingerprints.values import (
    host_of,
    marked_digits,
    named,
    shown,
    without_credentials,
)

_FIELDS = (
    *("model", "model_name", "model_id", "deployment", "azure_deployment", "repo_id"),
    *("revision", "dimensions", "size"),
)
"""The fields in which LangChain's embedding classes hold the choices that change a vector."""


def fingerprint(embedding: object) -> str:
    """Return a text that identifies the model behind `embedding`, as far as its fields do.

    The text is the object's own `fingerprint` if it has one; the embedded MiniLM has one of its
    weights. Otherwise it is the class, with the fields in which LangChain's classes name a model. A
    cache around a model has the fingerprint of that model. Two models of one class without such a
    field look the same: give that class an attribute `fingerprint`.
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
"""The fields in which chat models hold the address of their endpoint."""
_OF_A_HOST = (*_ENDPOINTS, "default_query", "openai_proxy", "openai_organization")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_NAMES = ("model_name", "model")
_WITHOUT_EFFECT = frozenset(
    (
        # how a reply is delivered, and how often a request is repeated
        *("stream", "streaming", "stream_usage", "stream_options", "disable_streaming"),
        *("stream_chunk_timeout", "timeout", "request_timeout", "default_request_timeout"),
        *("max_retries", "rate_limiter", "cache", "verbose", "callbacks"),
        # only the first of several replies is read
        "n",
        # what providers store for their customers
        *("tags", "metadata", "user", "safety_identifier", "store"),
        *("prompt_cache_key", "prompt_cache_retention"),
    )
)
"""The parameters that change no reply. Every other parameter counts, even an unknown one."""
_PASSED_ON = ("model_kwargs", "additional_kwargs")
"""The parameters that hold further parameters."""


def model_fingerprint(model: BaseChatModel) -> str:
    """Return a text that identifies a chat model's replies: its name, endpoint and parameters.

    An example is "ChatOpenAI gpt-4o-mini (host=api.openai.com/v1, seed=1, temperature=0)".
    Parameters that change no reply, such as `streaming`, are left out, and so are parameters that
    are not set. The text never holds a key.

    If a model has its own `fingerprint`, the text has that in place of the endpoint; the local
    model has one of its weights. Two models of one class look the same if the class reports no
    parameters to LangChain (`_identifying_params`).
    """
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    head = " ".join([type(model).__qualname__, *([_shown_name(str(name))] if name else [])])
    params: object = model._identifying_params
    if not isinstance(params, Mapping):  # some classes report them in another form
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


def request_fingerprint(key: str) -> str:
    """Return a text that identifies the model and the parameters of a request, but not the host.

    Args:
        key: The key of the model and its parameters in LangChain's caches. It may hold headers.

    Returns:
        A text as `model_fingerprint` returns it, in which objects have no address. Another gateway
        and other headers give the same text.
    """
    try:
        told, end = json.JSONDecoder().raw_decode(key)
        name, fields, called = told["id"][-1], dict(told["kwargs"]), key[end + len("---") :]
    except (ValueError, LookupError, TypeError):  # the class cannot be serialised
        name, fields, called = "model", {}, key
    try:
        fields |= ast.literal_eval(called)
    except (ValueError, TypeError, SyntaxError):  # it holds an object
        fields["called"] = _ADDRESS.sub("", called)
    kept = {field: value for field, value in fields.items() if field not in _OF_A_HOST}
    return f"{name} ({', '.join(named(_effective(kept)))})"


def endpoint_of(model: BaseChatModel) -> str:
    """Return the host and path of the model's address; without an address, the model's class."""
    params: object = model._identifying_params
    return _host(model, params if isinstance(params, Mapping) else {}) or type(model).__qualname__


def _shown_name(name: str) -> str:
    plain = without_credentials(name)
    return marked_digits(name) if re.search(r"[(),=]", plain) else plain


def _host(model: BaseChatModel, params: Mapping[str, Any]) -> str | None:
    """Return the host and path of the address that a model uses, if the model names one."""
    client = getattr(model, "root_client", None)  # OpenAI's client, which has read the environment
    addresses = [getattr(client, "base_url", None)]
    addresses += [getattr(model, at, None) or params.get(at) for at in _ENDPOINTS]
    return next((host_of(str(address)) for address in addresses if address), None)


def _effective(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that may change a reply."""
    kept = {key: value for key, value in params.items() if key not in _WITHOUT_EFFECT}
    for key in _PASSED_ON:
        if isinstance(inner := kept.get(key), Mapping):
            kept[key] = {k: v for k, v in inner.items() if k not in _WITHOUT_EFFECT}
    return kept
