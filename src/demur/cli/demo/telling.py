"""Describe in words what a guard did, from its traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from demur.guard import Attempt, Trace
from demur.schema import Failure
from demur.views import counted, outcome_look, plural, what_the_guard_did

_WRONG = {
    Failure.NEUTRAL: "claims are not in the passages",
    Failure.CONTRADICTION: "the passages contradict claims",
    Failure.CITATION: "the answer cites other passages than those that support it",
    Failure.NOTHING: "the answer states nothing to check",
}


def action(last: Attempt, following: Attempt) -> str:
    """Return what was wrong with an answer that failed, and what the guard did about it."""
    failures = following.feedback.failures if following.feedback else ()
    wrong = [_WRONG[failure] for failure in failures if failure in _WRONG]
    known = {document.page_content for document in last.contexts}
    new = [context for context in following.contexts if context.page_content not in known]
    titles = ", ".join(dict.fromkeys(str(one.metadata.get("title", "untitled")) for one in new))
    because = f"{' and '.join(wrong).capitalize()}. " if wrong else ""
    found = f" Other passages: {titles}." if new else ""
    return f"{because}{what_the_guard_did(following)}{found}"


def ending(trace: Trace) -> str:
    """Return how a guarded call ended, and why."""
    return f"{outcome_look(trace.outcome).word}: {trace.reason}"


def tally(traces: Sequence[Trace]) -> str:
    """Return how many guarded calls ended in which way, and how often each recovery was used."""
    outcomes = Counter(trace.outcome for trace in traces)
    tries = Counter(
        attempt.recovery for trace in traces for attempt in trace.attempts if attempt.recovery
    )
    what = f"{plural(len(traces), 'question')}: {counted(outcomes)}"
    return f"{what}; recoveries: {counted(tries)}" if tries else what
