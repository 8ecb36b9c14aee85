"""Tell callbacks what a guarded call does, by events and by its trace.

The data of events are plain values, so that every tracer can store them. They hold no text that was
not let through, and nothing that a judge or a provider said of it. The trace holds all of that, and
only handlers that ask for the trace get it.
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
"""The event of an evaluator's result: attempt, name, finding, score, label, passed, cause."""
DECISION = "demur.decision"
"""The event of what is done about an attempt: attempt, verdict, action, failures."""
OUTCOME = "demur.outcome"
"""The event of how the call ended: outcome, reason, limit, attempts, the refusal if the guard
abstained, and the `claims`, `evidence` and `citations` of the trace."""
REPLACE = "demur.replace"
"""The event of a correction in a stream: of the streamed text, only the first `keep` characters
still hold. The values of the keys in `keys` are taken back."""
USAGE = "demur.usage"
"""The event by which a chain reports model calls that LangChain does not see, such as those of
another framework. Its data are the fields of `Usage`. Several events add up."""

Event = tuple[str, Mapping[str, Any]]
"""A pair of an event's name and its data."""


@runtime_checkable
class TraceHandler(Protocol):
    """Describe a callback handler that receives the traces of guarded calls."""

    def on_guard_end(self, trace: Trace, *, run_id: UUID) -> None:
        """Receive the trace of a call that is about to return or raise. This must not block."""
        ...


@dataclass(frozen=True)
class Announcement:
    """Hold events for callbacks, in their order, and the trace that follows them."""

    events: tuple[Event, ...]
    trace: Trace | None = None

    def tell(self, config: RunnableConfig) -> None:
        """Send the events and the trace to the callbacks, in this thread."""
        if _heard(config):
            for name, data in self.events:
                dispatch_custom_event(name, data, config=config)
            self._tell_trace(config)

    async def atell(self, config: RunnableConfig) -> None:
        """Send the events and the trace to the callbacks, in the running loop."""
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
    """Return the event of an evaluation of an attempt."""
    names = ("name", "finding", "score", "label", "passed", "cause")
    return EVALUATION, {"attempt": attempt, **{name: getattr(evaluation, name) for name in names}}


def evaluation_of_event(data: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation that an event describes, as far as the event tells it."""
    fields = {name: data[name] for name in ("name", "score", "label", "passed", "cause")}
    # Only the trace has the error's message, and a guard that was cut short has no trace.
    error = data["cause"] or "it could not decide" if data["finding"] == "undetermined" else None
    return Evaluation(**fields, error=error, explanation=error or "")


def decision_event(
    attempt: int, verdict: Verdict, action: str, failures: Sequence[Failure]
) -> Event:
    """Return the event of what is done about an attempt."""
    about = {"attempt": attempt, "verdict": verdict, "action": action}
    return DECISION, {**about, "failures": [*map(str, failures)]}


def outcome_event(trace: Trace, refusal: str | None) -> Event:
    """Return the event of how a call ended.

    `refusal` is the refusal that took the answer's place, or None.
    """
    ending = {name: getattr(trace, name) for name in ("outcome", "reason", "limit")}
    told = {
        "refusal": refusal,
        "claims": trace.claims,
        "evidence": trace.evidence,
        "citations": [citation.model_dump() for citation in trace.citations],
    }
    return OUTCOME, {**ending, "attempts": len(trace.attempts), **told}
