"""Add up what model calls cost, with the seconds of the time when they were recorded."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import ChatGeneration, LLMResult

from demur.recording import SECONDS


@dataclass(frozen=True)
class Spent:
    """Hold calls, tokens and seconds, or their means.

    Seconds are summed over calls, also over calls that overlap in time.
    """

    calls: float = 0
    input_tokens: float = 0
    output_tokens: float = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> float | None:
        """Return the tokens of prompts and replies.

        The value is None if calls were made and no endpoint reported tokens.
        """
        return (self.input_tokens + self.output_tokens) or (None if self.calls else 0)

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.seconds + other.seconds,
        )

    def __truediv__(self, count: float) -> Spent:
        return Spent(
            self.calls / count,
            self.input_tokens / count,
            self.output_tokens / count,
            self.seconds / count,
        )


def total(parts: Iterable[Spent]) -> Spent:
    """Return the sum of the costs."""
    return sum(parts, Spent())


class Meter(BaseCallbackHandler):
    """Add up what the calls of a run cost, whether they are made now or replayed."""

    def __init__(self) -> None:
        self.spent = Spent()
        self._lock = threading.Lock()

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Count a model call, with its tokens and seconds."""
        for generation, *_ in response.generations:
            if isinstance(generation, ChatGeneration):
                usage = getattr(generation.message, "usage_metadata", None) or {}
                seconds = generation.message.response_metadata.get(SECONDS, 0.0)
                one = Spent(1, usage.get("input_tokens", 0), usage.get("output_tokens", 0), seconds)
                with self._lock:
                    self.spent += one
