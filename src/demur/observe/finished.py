"""Describe a finished run of any framework: its identity, its texts and its usage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_core.outputs import LLMResult
from pydantic import JsonValue

from demur.guard import Trace
from demur.observe.records import TraceLink
from demur.observe.texts import Said
from demur.runtime import reply_in
from demur.schema import Evaluation, Usage


@dataclass(frozen=True)
class About:
    """Hold the fields of a `Record` that do not depend on the evaluations."""

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
    traces: tuple[TraceLink, ...] = ()


@dataclass(frozen=True)
class Finished:
    """Hold a run that ended and is now to be scored, or only to be recorded."""

    about: About
    said: Said
    """The texts of the run; those of a guard that did not finish, as far as they are known."""
    usage: Usage = field(default_factory=Usage)
    """The usage of answering."""
    trace: Trace | None = None
    """The trace of a guard's run, which has its evaluations already."""
    evaluations: tuple[tuple[int, Evaluation], ...] = ()
    """The evaluations of a guard's unfinished run, each with the number of its attempt."""

    @property
    def judged(self) -> bool:
        """Return whether the run has its evaluations already, so that nothing must be scored."""
        return self.trace is not None or bool(self.evaluations) or self.said.evaluation is not None


def plain(metadata: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return the entries of a run's metadata whose values are plain; LangChain allows any value."""
    return {str(key): value for key, value in metadata.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)  # JSON has no NaN and no infinity
    if isinstance(value, int):
        return value.bit_length() < 64  # many readers of JSON hold no larger integers
    return isinstance(value, (str, type(None)))


def author_of(response: LLMResult, metadata: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the model that wrote a reply, and the id that the provider gave to the reply.

    Args:
        response: The reply.
        metadata: The metadata of the model's run, which names the model if the reply does not.
    """
    message = reply_in(response)
    provider = getattr(message, "response_metadata", None) or {}
    model = provider.get("model_name") or provider.get("model") or metadata.get("ls_model_name")
    return _text(model), _text(provider.get("id")) or _given_id(getattr(message, "id", None))


def _given_id(message_id: Any) -> str | None:
    """Return a message's id, or None if LangChain made the id up."""
    made_up = not isinstance(message_id, str) or message_id.startswith(("run-", "lc_"))
    return None if made_up else message_id


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
