"""What a guarded call tells callbacks: custom events of LangChain, and the trace.

The events' data are plain values, so that every tracer can write them down, and hold no text that
was not let through, nor what a judge or a provider said of it. The trace has all of that; only
handlers that ask for it are told.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.runnables import RunnableConfig

from demur.guard.trace import Trace, Verdict
from demur.runtime import describe
from demur.schema import Evaluation, Failure

_log = logging.getLogger(__name__)

EVALUATION = "demur.evaluation"
"""An evaluator judged: attempt, name, finding, score, label, passed, cause."""
DECISION = "demur.decision"
"""What is done about an attempt: attempt, verdict, action, failures."""
OUTCOME = "demur.outcome"
"""How the call ended: outcome, reason, limit, attempts, and the refusal of one that abstained."""
REPLACE = "demur.replace"
"""Of the text that was streamed, only the first `keep` characters still hold."""
USAGE = "demur.usage"
"""What a chain says that it spent on model calls that LangChain does not see, such as another
framework's: the fields of `Usage`. What is told several times adds up."""

Event = tuple[str, Mapping[str, Any]]
"""Name and data."""


@runtime_checkable
class TraceHandler(Protocol):
    """A callback handler that is told how guarded calls went."""

    def on_guard_end(self, trace: Trace, *, run_id: UUID) -> None:
        """A guard's run came to its end; it returns or raises next. This must not wait."""
        ...


@dataclass(frozen=True)
class Announcement:
    """Callbacks are told events, in their order, and then the trace."""

    events: tuple[Event, ...]
    trace: Trace | None = None

    def tell(self, config: RunnableConfig) -> None:
        """Tell them in this thread."""
        if _heard(config):
            for name, data in self.events:
                dispatch_custom_event(name, data, config=config)
            self._tell_trace(config)

    async def atell(self, config: RunnableConfig) -> None:
        """Tell them in the running loop."""
        if _heard(config):
            for name, data in self.events:
                await adispatch_custom_event(name, data, config=config)
            self._tell_trace(config)

    def _tell_trace(self, config: RunnableConfig) -> None:
        manager = config.get("callbacks")
        if self.trace is None or not isinstance(manager, BaseCallbackManager):
            return
        for handler in manager.handlers:
            if not isinstance(handler, TraceHandler) or manager.parent_run_id is None:
                continue
            try:
                handler.on_guard_end(self.trace, run_id=manager.parent_run_id)
            except Exception as error:  # as LangChain does with its own events
                if handler.raise_error:
                    raise
                _log.warning("%s.on_guard_end failed: %s", type(handler).__name__, describe(error))


def _heard(config: RunnableConfig) -> bool:
    manager = config.get("callbacks")
    return isinstance(manager, BaseCallbackManager) and bool(manager.handlers)


def evaluation_event(attempt: int, evaluation: Evaluation) -> Event:
    """What an evaluator found of an attempt."""
    names = ("name", "finding", "score", "label", "passed", "cause")
    return EVALUATION, {"attempt": attempt, **{name: getattr(evaluation, name) for name in names}}


def evaluation_of_event(data: Mapping[str, Any]) -> Evaluation:
    """The evaluation of which such an event told, as far as it did."""
    fields = {name: data[name] for name in ("name", "score", "label", "passed", "cause")}
    # Its words are in the trace alone, and there is none of a guard that was cut short.
    error = data["cause"] or "it could not decide" if data["finding"] == "undetermined" else None
    return Evaluation(**fields, error=error, explanation=error or "")


def decision_event(
    attempt: int, verdict: Verdict, action: str, failures: Sequence[Failure]
) -> Event:
    """What is done about an attempt."""
    about = {"attempt": attempt, "verdict": verdict, "action": action}
    return DECISION, {**about, "failures": [*map(str, failures)]}


def outcome_event(trace: Trace, refusal: str | None) -> Event:
    """How a call ended."""
    ending = {name: getattr(trace, name) for name in ("outcome", "reason", "limit")}
    return OUTCOME, {**ending, "attempts": len(trace.attempts), "refusal": refusal}
