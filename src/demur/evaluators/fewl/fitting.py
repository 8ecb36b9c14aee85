"""Asking the references many questions beforehand, so that later ones have neighbours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from demur.models.calls import Ledger
from demur.models.threads import as_completed
from demur.schema import Usage


@dataclass(frozen=True)
class Fitted:
    """How far the asking is, or what came of it."""

    questions: int
    """How many there are, each counted once."""
    done: int = 0
    """Of how many the store holds what the references say."""
    failed: tuple[tuple[str, str], ...] = ()
    """Questions without an answer, and why. They are tried again by the next `fit`."""
    usage: Usage = field(default_factory=Usage)
    """What it cost this time."""


Learned: TypeAlias = tuple[str, str | None, Ledger]
"""A question, why it could not be learned, and what it cost."""
Report: TypeAlias = Callable[[Fitted], None]


def fit(
    learn: Callable[[str], Learned], questions: Sequence[str], at_once: int, report: Report
) -> Fitted:
    """Learn each question in threads; what was learned is kept if the rest is interrupted."""
    now = Fitted(len(questions))
    report(now)
    for learned in as_completed(learn, questions, at_once):
        now = _after(now, learned)
        report(now)
    return now


async def afit(
    learn: Callable[[str], Awaitable[Learned]],
    questions: Sequence[str],
    at_once: int,
    report: Report,
) -> Fitted:
    """As `fit`, in tasks of the running loop."""
    now = Fitted(len(questions))
    report(now)
    waiting = iter(questions)

    async def work() -> None:
        nonlocal now
        for question in waiting:
            now = _after(now, await learn(question))
            report(now)

    workers = [asyncio.ensure_future(work()) for _ in range(min(at_once, len(questions)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
    return now


def _after(now: Fitted, learned: Learned) -> Fitted:
    question, error, ledger = learned
    usage = sum(ledger.values(), now.usage)
    if error is not None:
        return replace(now, failed=(*now.failed, (question, error)), usage=usage)
    return replace(now, done=now.done + 1, usage=usage)
