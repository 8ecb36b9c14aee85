"""What becomes of an evaluation when the endpoint misbehaves, fault by fault."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest

from demur import CallPolicy, Evaluation, RefChecker
from support import facts
from support.faults import BROKEN, FAULTS, Faulty
from support.openai_server import Answer, OpenAIServer, openai_server

pytestmark = pytest.mark.slow

NAMED: Mapping[str, str] = {
    "429": "429",
    "429 Retry-After": "429",
    "429 Retry-After date": "429",
    "500": "500",
    "503 HTML": "503",
    "200 HTML": "no message .*Bad gateway",
    "hang": "no reply within",
    "cut": "Connection error",
    "cut body": "Connection error",
    "malformed JSON": "JSONDecodeError",
    "empty choices": "no message",
    "error in 200": "no message .*overloaded",
    "null content": "no claims that can be read|no readable label",
    "off format": "no claims that can be read|no readable label",
    "truncated": "ends half-way|no readable label",
}
"""What a user can read of each in `Evaluation.error`."""

STAGES = [("joint", "extraction"), ("joint", "joint"), ("per_claim", "claim")]
"""Checkers, and the stage that is spoiled."""
SLOW = ("429 Retry-After", "429 Retry-After date", "hang")

everywhere = pytest.mark.parametrize(
    ("fault", "checker", "stage"),
    [
        (fault, *where)
        for fault in FAULTS
        # What takes seconds is a matter of the call, whatever it is for.
        for where in (STAGES[:1] if fault in SLOW else STAGES)
    ],
)


def evaluate(checker: RefChecker, number: int, stage: str) -> Evaluation:
    """In this thread or in a loop: each fault meets both, in other stages."""
    sample, at = facts.sample(number), [one for _, one in STAGES].index(stage)
    return checker.invoke(sample) if (number + at) % 2 else asyncio.run(checker.ainvoke(sample))


def make(server: OpenAIServer, checker: str, fault: str = "", attempts: int = 3) -> RefChecker:
    # Only a hang may run into the time limit, and not a slow machine.
    timeout = 2 if fault == "hang" else 100
    policy = CallPolicy(attempts=attempts, first_delay=0.01, timeout=timeout)
    return RefChecker(server.model(), checker=checker, call_policy=policy)


@everywhere
def test_one_that_passes(fault: str, checker: str, stage: str) -> None:
    script = Faulty(facts.serve, [fault], stage=stage, times=1)
    with openai_server(script) as server:
        found = evaluate(make(server, checker, fault), 3, stage)
        assert found.usage.calls == len(server.requests)
    assert script.met[fault] == 1
    assert facts.grade(3, found) == "right", found.error


@everywhere
def test_one_that_lasts(fault: str, checker: str, stage: str) -> None:
    script = Faulty(facts.serve, [fault], stage=stage)
    with openai_server(script) as server:
        found = evaluate(make(server, checker, fault, attempts=2), 2, stage)
        assert found.usage.calls == len(server.requests)
    assert script.met[fault] >= 2
    if stage == "extraction" and fault not in BROKEN:
        # A list that cannot be read nominates nothing: the sentences are checked as they stand.
        assert facts.grade(2, found) == "right"
        assert found.details["coverage"] < 1
        return
    assert facts.grade(2, found) == "undetermined"
    assert found.error is not None
    assert re.search(NAMED[fault], found.error)


@pytest.mark.parametrize(
    ("checker", "reply"),
    [
        ("joint", "1. Entailment would need the list to"),
        ("per_claim", "For Entailment the list would have to"),
    ],
)
def test_a_label_in_half_a_reply_is_none(checker: str, reply: str) -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        right = facts.serve(request, number)
        return right if number == 0 else Answer(reply, finish_reason="length")

    with openai_server(script) as server:
        found = make(server, checker).invoke(facts.sample(1))
    assert [claim.label for claim in found.claims] == [None, None]
