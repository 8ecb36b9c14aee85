"""What a guard did, in words: plain functions of its traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from demur.guard import Attempt, Origin, Trace
from demur.schema import Failure

_WRONG = {
    Failure.NEUTRAL: "claims are not in the passages",
    Failure.CONTRADICTION: "the passages contradict claims",
    Failure.NOTHING: "the answer states nothing to check",
}
_RECOVERIES = {
    "retrieve": "the guard searches for what failed",
    "regenerate": "the guard asks for another answer",
    "repair": "the guard corrects it",
}
_ANSWERING: dict[Origin, str] = {
    "chain": "the chain answers again",
    "feedback": "the chain answers again, told what was wrong",
    "repair": "its model answers from the passages, told what was wrong",
}
_ENDS = {
    "passed": "lets the answer through",
    "recovered": "lets the new answer through",
    "nothing_to_check": "lets an answer through that states nothing to check",
    "abstained": "refuses to answer",
    "blocked": "lets nothing through",
    "best_effort": "lets the best answer through, with a note",
    "evaluator_failed": "lets no answer through that it could not judge",
}


def action(last: Attempt, following: Attempt) -> str:
    """What was wrong with an answer that failed, and what the guard did about it."""
    failures = following.feedback.failures if following.feedback else ()
    wrong = [_WRONG[failure] for failure in failures if failure in _WRONG]
    known = {document.page_content for document in last.contexts}
    new = [one for one in following.contexts if one.page_content not in known]
    titles = ", ".join(dict.fromkeys(str(one.metadata.get("title", "untitled")) for one in new))
    does = _RECOVERIES[following.recovery or "regenerate"]
    found = f", which finds other passages ({titles})" if new else ""
    because = f"{' and '.join(wrong)}: " if wrong else ""
    return f"{because}{does}{found}; {_ANSWERING[following.origin]}"


def ending(trace: Trace) -> str:
    """How a guarded call ended, and why."""
    return f"{_ENDS[trace.outcome]}: {trace.reason}"


def tally(traces: Sequence[Trace]) -> str:
    """How many guarded calls ended in which way, and what was done about answers that failed."""
    outcomes = Counter(trace.outcome.replace("_", " ") for trace in traces)
    tries = Counter(
        attempt.recovery for trace in traces for attempt in trace.attempts if attempt.recovery
    )
    what = f"{len(traces)} question{'' if len(traces) == 1 else 's'}"
    return f"{what}: {_counted(outcomes)}" + (f"; recoveries: {_counted(tries)}" if tries else "")


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
