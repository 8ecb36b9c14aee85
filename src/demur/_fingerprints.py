"""Names that tell one model from another: what was kept of one must not be taken for another's."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel

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
    return _without_credentials(" ".join([type(embedding).__qualname__, *fields]))


_ENDPOINTS = ("openai_api_base", "azure_endpoint", "anthropic_api_url", "base_url", "endpoint")
"""What LangChain's chat models call the address that they ask."""


def model_fingerprint(model: BaseChatModel) -> str:
    """What tells a chat model's replies from those of others: name, endpoint, parameters.

    A model with a `fingerprint` of its own, as the local one has of its weights, is told by that
    instead of by its endpoint. Keys are no part of it. Two models behind one class that tells
    LangChain of no parameter (`_identifying_params`) look the same.
    """
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    params = _as_text(model._identifying_params)
    client = getattr(model, "root_client", None)  # of OpenAI's: it has read the environment
    own = getattr(model, "fingerprint", None)
    told = [
        own if isinstance(own, str) else None,
        getattr(client, "base_url", None),
        *(getattr(model, at, None) for at in _ENDPOINTS),
    ]
    source = next((str(one) for one in told if one), "")
    named = [_without_credentials(str(name))] if name else []
    told_apart = _digits(f"{source}\0{params}")
    return " ".join([type(model).__qualname__, *named, f"({told_apart})"])


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")


def digest(value: object) -> str:
    """Twelve hexadecimal digits that tell a value from others by its `repr`: prompts, say."""
    return _digits(_ADDRESS.sub("", repr(value)))  # of a part without a `repr` of its own


def function_fingerprint(function: Callable[..., Any]) -> str:
    """What tells a function from others, as far as it can be told: its place, not what it does.

    That is its module and name, of a `partial` those of what is called, with digits that tell its
    arguments, of other objects those of the class. Two functions behind one name, such as lambdas
    of a module, look the same: give them an attribute `fingerprint`, a text.
    """
    own = getattr(function, "fingerprint", None)
    if isinstance(own, str) and own:
        return own
    if isinstance(function, partial):
        called, given = function_fingerprint(function.func), [function.args, function.keywords]
        return f"{called}({_digits(_as_text(given))})" if any(given) else called
    named = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(named, "__module__", None)  # some of Python's own methods have none
    return f"{module}.{named.__qualname__}" if module else named.__qualname__


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:12]


_DEEPEST = 8


def _as_text(params: object) -> str:
    try:
        return json.dumps(params, sort_keys=True, default=_shown)
    except (TypeError, ValueError, RecursionError):  # odd keys, or a value within itself
        return json.dumps(_plain(params), sort_keys=True)


def _plain(value: object, depth: int = 0) -> object:
    """As JSON. Without a `repr` of objects: an address in it would be another one each time."""
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {
            repr(key) if isinstance(key, (str, int, float)) else str(_shown(key)): _plain(
                one, depth + 1
            )
            for key, one in value.items()
        }
    if isinstance(value, (list, tuple)) and depth < _DEEPEST:
        return [_plain(one, depth + 1) for one in value]
    return value if value is None or isinstance(value, (str, int, float)) else _shown(value)


def _shown(value: object) -> object:
    """What stands for a value that JSON has not: a set's members, or the name of its class."""
    if isinstance(value, (set, frozenset)):
        return sorted(map(_as_text, value))
    if isinstance(value, Enum):
        return f"{_type_name(value)}.{value.name}"
    return _type_name(value)


def _type_name(value: object) -> str:
    return type(value).__qualname__


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")


def _without_credentials(text: str) -> str:
    """The text, with digits in the place of each URL that may hold a password or a key."""
    return _URL.sub(_url_without_credentials, text)


def _url_without_credentials(match: re.Match[str]) -> str:
    url = match[0]
    try:
        parts = urlsplit(url)
        plain = "@" not in parts.netloc and not parts.query
    except ValueError:  # brackets that are no address
        plain = False
    return url if plain else f"({_digits(url)})"
