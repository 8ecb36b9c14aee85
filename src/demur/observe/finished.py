"""A run that is over, whoever told of it: what it was, what it said, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_core.outputs import ChatGeneration, LLMResult
from pydantic import JsonValue

from demur.guard import Trace
from demur.observe.reading import Said
from demur.schema import Evaluation, Usage


@dataclass(frozen=True)
class About:
    """What a record says of a run, whatever was found of its answer: its fields of these names."""

    id: str
    root: str
    time: datetime
    name: str | None
    tags: tuple[str, ...]
    metadata: dict[str, JsonValue]
    model: str | None
    response: str | None
    trace_id: str | None
    span_id: str | None
    seconds: float


@dataclass(frozen=True)
class Finished:
    """A run that is over, and is to be scored or only to be recorded."""

    about: About
    said: Said
    """Of a guard that did not come to its end, what is known."""
    usage: Usage = field(default_factory=Usage)
    """What answering cost."""
    trace: Trace | None = None
    """Of a guard's run: it was judged."""
    evaluations: tuple[tuple[int, Evaluation], ...] = ()
    """Of a guard's run that did not come to its end: what it found, with the attempts' numbers."""

    @property
    def judged(self) -> bool:
        """Whether there is nothing left to score."""
        return self.trace is not None or bool(self.evaluations) or self.said.evaluation is not None


def plain(metadata: Mapping[str, Any]) -> dict[str, JsonValue]:
    """What of a run's metadata is a plain value; LangChain lets users put anything there."""
    return {str(key): value for key, value in metadata.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)  # JSON can hold no other
    if isinstance(value, int):
        return value.bit_length() < 64  # nor can its readers hold more
    return isinstance(value, (str, type(None)))


def author_of(response: LLMResult, metadata: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Which model wrote a reply, and the id that its provider gave it.

    Args:
        response: The reply.
        metadata: Of the model's run, which has the model's name where the reply has not.
    """
    generation = next(
        (generation for several in response.generations for generation in several), None
    )
    message = generation.message if isinstance(generation, ChatGeneration) else None
    provider = getattr(message, "response_metadata", None) or {}
    model = provider.get("model_name") or provider.get("model") or metadata.get("ls_model_name")
    return _text(model), _text(provider.get("id")) or _given_id(getattr(message, "id", None))


def _given_id(message_id: Any) -> str | None:
    """A message's id, unless LangChain made it up."""
    made_up = not isinstance(message_id, str) or message_id.startswith(("run-", "lc_"))
    return None if made_up else message_id


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
