"""What guarded engines tell LlamaIndex's dispatcher, for any event handler to hear.

The fields hold no text that was not let through. The trace of a guarded call has all of that; it is
no field, so that handlers that write events down leave it out.
"""

from __future__ import annotations

from typing import Any

from llama_index.core.instrumentation.events import BaseEvent
from pydantic import PrivateAttr

from demur.guard import Trace


class _Event(BaseEvent):
    @classmethod
    def class_name(cls) -> str:
        """Its name in logs."""
        return f"Demur{cls.__name__}"


class EvaluationEvent(_Event):
    """An evaluator judged an answer of a guarded engine."""

    attempt: int
    """Which answer, from 1."""
    name: str
    """The evaluator's name."""
    finding: str
    """What it says, in a word: see `demur.schema.Finding`."""
    score: float | None
    label: str | None
    passed: bool | None
    cause: str | None
    """Of one that could not decide the errors of calls that failed, class and status."""


class DecisionEvent(_Event):
    """A guarded engine decided what to do about a rejected answer."""

    attempt: int
    """Which answer, from 1."""
    verdict: str
    action: str
    """The recovery: "retrieve", "regenerate", "repair", "strip" or "cite"."""
    failures: list[str]


class ReplaceEvent(_Event):
    """Of the text that a guarded engine has streamed, only the first characters still hold."""

    keep: int
    """How many."""


class OutcomeEvent(_Event):
    """A guarded call came to its end; the engine returns or raises next."""

    outcome: str
    reason: str
    limit: str | None
    attempts: int
    refusal: str | None
    """The text, if a refusal took the answer's place."""
    claims: list[dict[str, Any]]
    """What a delivered answer says: `text`, `label`, `start`, `end`, `path`."""
    evidence: list[dict[str, Any]]
    """What it rests on: see the event `demur.outcome` in docs/guard.md."""
    citations: list[dict[str, Any]]
    """The citations in it, if the engine has `on_pass=Cite()`: the fields of `Citation`."""
    _trace: Trace = PrivateAttr()

    def __init__(self, trace: Trace, **fields: Any) -> None:
        """`trace` is of the whole call; `fields` are the event's."""
        super().__init__(**fields)
        self._trace = trace

    @property
    def trace(self) -> Trace:
        """Every attempt and what was found of it, rejected answers too."""
        return self._trace


__all__ = [
    "DecisionEvent",
    "EvaluationEvent",
    "OutcomeEvent",
    "ReplaceEvent",
]
