"""Test which calls are made, and which run side by side: the server waits for all of them."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from demur import CallPolicy, RefChecker, Sample
from support.openai_server import Answer, openai_server
from support.waiting import PATIENCE

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


def _waiting(at_once: dict[str, int]) -> Callable[[dict[str, Any], int], Answer]:
    """Return a server's script that answers a stage once so many of its requests have arrived."""
    barriers = {stage: threading.Barrier(count) for stage, count in at_once.items()}

    def script(request: dict[str, Any], number: int) -> Answer:
        text = request["messages"][-1]["content"]
        if "<answer-" in text:
            barriers["extraction"].wait(PATIENCE)
            return Answer(TRIPLETS)
        barriers["checking"].wait(PATIENCE)
        numbers = re.findall(r"^(\d+)\. ", text, re.MULTILINE)
        labels = "\n".join(f"{number}. Entailment" for number in numbers)
        return Answer(labels if "<claims-" in text else "Entailment")

    return script


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize(("mode", "calls"), [("joint", 1), ("per_claim", CLAIMS)])
def test_answers_of_a_batch_wait_for_nothing_but_their_own_calls(
    mode: str, calls: int, way: str
) -> None:
    count = len(SAMPLES)
    # The server answers no request about a claim before the requests of all answers are there.
    with openai_server(_waiting({"extraction": count, "checking": count * calls})) as server:
        checker = RefChecker(server.model(), checker=mode, call_policy=CallPolicy(attempts=1))
        if way == "sync":
            found = checker.batch(SAMPLES, {"max_concurrency": count})
        else:
            found = asyncio.run(checker.abatch(SAMPLES, {"max_concurrency": count}))
        assert len(server.requests) == count * (1 + calls)
    assert [evaluation.passed for evaluation in found] == [True] * count, found
    assert [len(evaluation.claims) for evaluation in found] == [CLAIMS] * count
