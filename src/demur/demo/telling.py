"""What a guard did, in words: plain functions of its traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from demur.guard.trace import Attempt, Origin, Trace

_AGAIN: dict[Origin, str] = {
    "chain": "the chain answers again",
    "feedback": "the chain answers again, with a search for the claims that failed",
    "repair": "the guard's model answers from the passages",
}
_ENDS = {
    "passed": "lets the answer through",
    "recovered": "lets the new answer through",
    "abstained": "refuses to answer",
    "blocked": "lets nothing through",
    "best_effort": "lets the best answer through, with a note",
    "failed": "lets no answer through that it could not judge",
}


def action(last: Attempt, following: Attempt) -> str:
    """What the guard did about an answer that failed, and what it found for that."""
    known = {document.page_content for document in last.contexts}
    new = [one for one in following.contexts if one.page_content not in known]
    titles = ", ".join(dict.fromkeys(str(one.metadata.get("title", "untitled")) for one in new))
    found = f", which finds other passages ({titles})" if new else ""
    return f"{_AGAIN[following.origin]}{found}"


def ending(trace: Trace) -> str:
    """How a guarded call ended, and why."""
    return f"{_ENDS[trace.outcome]}: {trace.reason}"


def tally(traces: Sequence[Trace]) -> str:
    """How many guarded calls ended in which way."""
    counts = Counter(trace.outcome for trace in traces)
    parts = [f"{count} {outcome.replace('_', ' ')}" for outcome, count in counts.items()]
    return f"{len(traces)} question{'' if len(traces) == 1 else 's'}: {', '.join(parts)}"
