"""Turn a finished run into a record, and have the evaluators judge its answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from demur.errors import DemurError
from demur.guard import Attempt, as_evaluation, verdict_of
from demur.observe.finished import Finished
from demur.observe.records import Record
from demur.runtime import CallPolicy, Outcome, RunnableCall, Steps, ask_all
from demur.schema import Evaluation, Sample, Usage

Named = tuple[str, Runnable[Any, Any]]
"""An evaluator with its name."""

_CUT_SHORT = "the guard's call did not come to its end"


def score(finished: Finished, evaluators: Sequence[Named]) -> Steps[Record]:
    """Have all evaluators judge at the same time, unless the run was judged; return the record."""
    if finished.trace is not None:
        return _of_trace(finished)
    if finished.evaluations:
        return _cut_short(finished)
    content = finished.said
    evaluations: tuple[Evaluation, ...]
    if content.evaluation is not None:
        evaluations = (content.evaluation,)
    elif content.error is not None:
        evaluations = tuple(_undecided(name, content.error) for name, _ in evaluators)
    else:
        outcomes = yield from ask_all(
            [_Judging(runnable, content.sample, name) for name, runnable in evaluators]
        )
        names = [name for name, _ in evaluators]
        evaluations = tuple(map(_evaluation, names, outcomes))
    attempt = _attempt(finished, evaluations, finished.usage, content.answer)
    return _record(finished, (attempt,), attempt.cost)


@dataclass(frozen=True)
class _Judging(RunnableCall[Sample, object]):
    """Call an evaluator; whatever it raises is the outcome, since no caller could handle it."""

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[object]:
        started = time.monotonic()
        try:
            return super().run(config, policy)
        except BaseException as error:
            return Outcome.failed(error, time.monotonic() - started)


def _evaluation(name: str, outcome: Outcome[object]) -> Evaluation:
    try:
        return as_evaluation(name, outcome)
    except DemurError as error:  # no caller could handle it
        return _undecided(name, str(error))


def _undecided(name: str, why: str) -> Evaluation:
    return Evaluation(name=name, error=why, explanation=why)


def _of_trace(finished: Finished) -> Record:
    trace = finished.trace
    assert trace is not None
    ended = {name: getattr(trace, name) for name in ("outcome", "reason", "error", "limit")}
    return _record(finished, trace.attempts, trace.usage, **ended)


def _cut_short(finished: Finished) -> Record:
    """Make the record of a guard's unfinished run; only its last attempt may have an answer."""
    numbered = groupby(finished.evaluations, key=lambda pair: pair[0])
    judged = [tuple(evaluation for _, evaluation in group) for _, group in numbered]
    attempts = [_attempt(finished, evaluations, Usage(), "") for evaluations in judged[:-1]]
    attempts.append(_attempt(finished, judged[-1], Usage(), finished.said.answer))
    usage = sum((attempt.cost for attempt in attempts), Usage())
    return _record(finished, tuple(attempts), usage, reason=_CUT_SHORT)


def _attempt(
    finished: Finished, evaluations: tuple[Evaluation, ...], usage: Usage, answer: str
) -> Attempt:
    return Attempt(
        origin="chain",
        question=finished.said.question,
        answer=answer,
        contexts=finished.said.contexts,
        evaluations=evaluations,
        verdict=verdict_of(evaluations),
        usage=usage,
    )


def _record(
    finished: Finished, attempts: tuple[Attempt, ...], usage: Usage, **ended: Any
) -> Record:
    return Record(**vars(finished.about), attempts=attempts, usage=usage, **ended)
