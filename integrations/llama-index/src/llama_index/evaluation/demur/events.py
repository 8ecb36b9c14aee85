"""Define the events that guarded engines send to LlamaIndex's dispatcher.

The fields hold no text that was not let through. The trace of a guarded call has that text too, so
it is not a field: handlers that write events down leave it out.
"""

from __future__ import annotations

from typing import Any

from llama_index.core.instrumentation.events import BaseEvent
from pydantic import PrivateAttr

from demur.guard import Trace


class _Event(BaseEvent):
    @classmethod
    def class_name(cls) -> str:
        """Return the name of the event in logs."""
        return f"Demur{cls.__name__}"


class EvaluationEvent(_Event):
    """Report that an evaluator judged an answer of a guarded engine."""

    attempt: int
    """The number of the answer, from 1."""
    name: str
    """The name of the evaluator."""
    finding: str
    """The result in a word, a `demur.schema.Finding`."""
    score: float | None
    label: str | None
    passed: bool | None
    cause: str | None
    """If the evaluator could not decide: the errors of failed calls, each with class and status."""


class DecisionEvent(_Event):
    """Report what a guarded engine does about a rejected answer."""

    attempt: int
    """The number of the answer, from 1."""
    verdict: str
    action: str
    """The recovery: "retrieve", "regenerate", "repair", "strip" or "cite"."""
    failures: list[str]


class ReplaceEvent(_Event):
    """Report that only the beginning of the text that a guarded engine has streamed still holds."""

    keep: int
    """The number of characters that still hold."""


class OutcomeEvent(_Event):
    """Report that a guarded call has ended; the engine returns or raises next."""

    outcome: str
    reason: str
    limit: str | None
    attempts: int
    refusal: str | None
    """The text of the refusal, if one took the answer's place."""
    claims: list[dict[str, Any]]
    """The claims of a delivered answer: `text`, `label`, `start`, `end`, `path`."""
    evidence: list[dict[str, Any]]
    """The evidence for a delivered answer, as in the event `demur.outcome` in docs/guard.md."""
    citations: list[dict[str, Any]]
    """The citations in a delivered answer, if the engine has `on_pass=Cite()`: the fields of
    `Citation`."""
    _trace: Trace = PrivateAttr()

    def __init__(self, trace: Trace, **fields: Any) -> None:
        """Make an event of the trace of the whole call, and the event's fields."""
        super().__init__(**fields)
        self._trace = trace

    @property
    def trace(self) -> Trace:
        """Return the trace: every attempt with its evaluations, rejected answers too."""
        return self._trace


__all__ = [
    "DecisionEvent",
    "EvaluationEvent",
    "OutcomeEvent",
    "ReplaceEvent",
]
