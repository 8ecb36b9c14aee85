"""Test which calls are made, and which run side by side: the server waits for all of them."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from demur import CallPolicy, Evaluation, RefChecker, Sample
from support.openai_server import Answer, openai_server

CLAIMS = 8
TRIPLETS = "\n".join(f'("Oslo", "has", "{at} bridges")' for at in range(CLAIMS))
SAMPLES = [
    Sample(
        question="What is Oslo?",
        answer=" ".join(f"Oslo has {number} bridges." for number in range(CLAIMS)) + "!" * at,
        # Every request differs from the others.
        contexts=["Oslo has many bridges.", f"It has {at} rivers."],
    )
    for at in range(4)
]
ONCE = CallPolicy(attempts=1)

Batch = Callable[[RefChecker, list[Sample]], list[Evaluation]]


@pytest.fixture(params=["sync", "async"])
def batch(request: pytest.FixtureRequest) -> Batch:
    """Return a function that checks samples side by side, in threads or in an event loop."""

    def sync(checker: RefChecker, samples: list[Sample]) -> list[Evaluation]:
        return checker.batch(samples, {"max_concurrency": len(samples)})

    def asynchronous(checker: RefChecker, samples: list[Sample]) -> list[Evaluation]:
        return asyncio.run(checker.abatch(samples, {"max_concurrency": len(samples)}))

    return sync if request.param == "sync" else asynchronous


def _waiting(at_once: dict[str, int]) -> Callable[[dict[str, Any], int], Answer]:
    """Return a server's script that answers a stage once so many of its requests have arrived."""
    barriers = {stage: threading.Barrier(count) for stage, count in at_once.items()}

    def script(request: dict[str, Any], number: int) -> Answer:
        text = request["messages"][-1]["content"]
        if "<answer-" in text:
            barriers["extraction"].wait(timeout=60)
            return Answer(TRIPLETS)
        barriers["checking"].wait(timeout=60)
        numbers = re.findall(r"^(\d+)\. ", text, re.MULTILINE)
        labels = "\n".join(f"{number}. Entailment" for number in numbers)
        return Answer(labels if "<claims-" in text else "Entailment")

    return script


def test_joint_checking_of_a_short_answer_takes_two_calls(batch: Batch) -> None:
    with openai_server(_waiting({"extraction": 1, "checking": 1})) as server:
        checker = RefChecker(server.model(), checker="joint", call_policy=ONCE)
        (found,) = batch(checker, SAMPLES[:1])
        assert (len(server.requests), server.most_at_once) == (2, 1)
    assert (found.passed, len(found.claims)) == (True, CLAIMS), found


def test_per_claim_checking_asks_about_all_claims_at_once(batch: Batch) -> None:
    with openai_server(_waiting({"extraction": 1, "checking": CLAIMS})) as server:
        checker = RefChecker(server.model(), checker="per_claim", call_policy=ONCE)
        (found,) = batch(checker, SAMPLES[:1])
        assert len(server.requests) == 1 + CLAIMS
    assert (found.passed, len(found.claims)) == (True, CLAIMS), found


@pytest.mark.parametrize(("mode", "calls"), [("joint", 1), ("per_claim", CLAIMS)])
def test_answers_of_a_batch_wait_for_nothing_but_their_own_calls(
    batch: Batch, mode: str, calls: int
) -> None:
    count = len(SAMPLES)
    # The server answers no request about a claim before the requests of all answers are there.
    with openai_server(_waiting({"extraction": count, "checking": count * calls})) as server:
        found = batch(RefChecker(server.model(), checker=mode, call_policy=ONCE), SAMPLES)
        assert len(server.requests) == count * (1 + calls)
    assert [evaluation.passed for evaluation in found] == [True] * count, found
