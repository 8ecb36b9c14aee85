"""Many evaluations at a time over an endpoint that spoils a fifth of the requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from langchain_core.runnables import RouterRunnable

from demur import CallPolicy, Evaluation, RefChecker
from support import facts
from support.faults import FAULTS, Faulty
from support.judging import judging
from support.openai_server import OpenAIServer, openai_server

pytestmark = pytest.mark.slow

COUNT = 60
MET = [name for name in FAULTS if name != "hang"]
"""All but the one that ends at a time limit: a slow machine may reach it with other requests."""


def evaluate(server: OpenAIServer, mode: str) -> list[Evaluation]:
    """The items 0, 1, 2, ..., by both checkers in turns."""
    policy = CallPolicy(first_delay=0.05)
    model = server.model()
    checkers: Any = {
        checker: RefChecker(model, checker=checker, call_policy=policy)
        for checker in ("joint", "per_claim")
    }
    router: RouterRunnable[Any, Evaluation] = RouterRunnable(checkers)
    inputs: Any = [
        {"key": "joint" if at // 4 % 2 else "per_claim", "input": facts.sample(at)}
        for at in range(COUNT)
    ]
    config: Any = {"max_concurrency": COUNT}
    if mode == "sync":
        return router.batch(inputs, config)
    return asyncio.run(router.abatch(inputs, config))


@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.smoke)])
def test_all_end_none_is_lost_or_counted_twice_and_none_is_wrong(mode: str) -> None:
    script = Faulty(facts.serve, MET, share=0.2, seed=2)
    with openai_server(script) as server:
        found = evaluate(server, mode)
        assert sum(evaluation.usage.calls for evaluation in found) == len(server.requests)
    assert set(script.met) == set(MET)
    assert 0.1 < script.met.total() / len(server.requests) < 0.3
    assert len(found) == COUNT
    grades = Counter(facts.grade(at, evaluation) for at, evaluation in enumerate(found))
    assert grades["wrong"] == 0
    assert grades["right"] > COUNT / 2, grades
    assert all(e.error for e in found if e.undetermined)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_judge_at_an_address_labels_nothing_wrongly(mode: str) -> None:
    script = Faulty(judging(), MET, share=0.2, seed=2)
    samples: Any = [facts.sample(at) for at in range(COUNT)]
    config: Any = {"max_concurrency": COUNT}
    with openai_server(script) as server:
        checker = RefChecker(server.judge, call_policy=CallPolicy(first_delay=0.05))
        if mode == "sync":
            found = checker.batch(samples, config)
        else:
            found = asyncio.run(checker.abatch(samples, config))
    assert len(script.met) > len(MET) / 2
    grades = Counter(facts.grade(at, evaluation) for at, evaluation in enumerate(found))
    assert grades["wrong"] == 0
    assert grades["right"] > COUNT / 2, grades
    assert all(e.error for e in found if e.undetermined)
