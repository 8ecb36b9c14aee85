"""Names that tell one model from another: what was kept of one must not be taken for another's."""

from __future__ import annotations

import hashlib
import json

from langchain_core.language_models import BaseChatModel

from demur.models.embeddings import MiniLM
from demur.models.weights import MINILM

_FIELDS = (
    *("model", "model_name", "model_id", "deployment", "azure_deployment", "repo_id"),
    *("revision", "dimensions", "size"),
)
"""What LangChain's embedding classes call the choices that change a vector."""


def fingerprint(embedding: object) -> str:
    """What tells the vectors of `embedding` from those of other models, as far as it can be told.

    For the embedded MiniLM the sha256 of its weights; else the object's own `fingerprint`, if that
    is a text; else its class and the fields by which LangChain's classes name a model. A cache
    around a model has the model's. Two models behind one class without such a field look the
    same: give that class an attribute `fingerprint`.
    """
    if isinstance(embedding, MiniLM):
        return f"MiniLM {MINILM.sha256}"
    own = getattr(embedding, "fingerprint", None)
    if isinstance(own, str) and own:
        return own
    if (cached := getattr(embedding, "underlying_embeddings", None)) is not None:
        return fingerprint(cached)
    told = ((field, getattr(embedding, field, None)) for field in _FIELDS)
    fields = [f"{field}={value}" for field, value in told if isinstance(value, str | int)]
    return " ".join([type(embedding).__qualname__, *fields])


_ENDPOINTS = ("openai_api_base", "azure_endpoint", "anthropic_api_url", "base_url", "endpoint")
"""What LangChain's chat models call the address that they ask."""


def model_fingerprint(model: BaseChatModel) -> str:
    """What tells a chat model's replies from those of others: name, endpoint, parameters.

    A model with a `fingerprint` of its own, as the local one has of its weights, is told by that
    instead of by its endpoint. Keys are no part of it. Two models behind one class that tells
    LangChain of no parameter (`_identifying_params`) look the same.
    """
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    params = json.dumps(model._identifying_params, sort_keys=True, default=_type_name)
    client = getattr(model, "root_client", None)  # of OpenAI's: it has read the environment
    own = getattr(model, "fingerprint", None)
    told = [
        own if isinstance(own, str) else None,
        getattr(client, "base_url", None),
        *(getattr(model, at, None) for at in _ENDPOINTS),
    ]
    source = next((str(one) for one in told if one), "")
    digest = hashlib.sha256(f"{source}\0{params}".encode()).hexdigest()[:12]
    return " ".join([type(model).__qualname__, *([str(name)] if name else []), f"({digest})"])


def _type_name(value: object) -> str:
    return type(value).__qualname__
