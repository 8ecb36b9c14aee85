"""What becomes of an evaluation when the endpoint misbehaves, fault by fault."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest

from demur import CallPolicy, Evaluation, RefChecker
from support import facts
from support.faults import BROKEN, FAULTS, UNUSABLE, Faulty
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
everywhere = pytest.mark.parametrize(
    ("fault", "where"), [(fault, at % 3) for at, fault in enumerate(FAULTS)]
)
"""Each fault once, and each stage with some of them."""
unusable = pytest.mark.parametrize(
    ("fault", "where"), [(fault, where) for fault in UNUSABLE for where in range(3)]
)


def evaluate(checker: RefChecker, number: int, where: int) -> Evaluation:
    """In this thread or in a loop: each stage meets both."""
    sample = facts.sample(number)
    return checker.invoke(sample) if (number + where) % 2 else asyncio.run(checker.ainvoke(sample))


def make(server: OpenAIServer, checker: str, fault: str = "", attempts: int = 3) -> RefChecker:
    # Only a hang may run into the time limit. A slow machine may then do so again.
    hangs = {"timeout": 0.5, "attempts": 1000} if fault == "hang" else {"attempts": attempts}
    policy = CallPolicy(first_delay=0.01, **hangs)
    return RefChecker(server.model(), checker=checker, call_policy=policy)


@everywhere
def test_one_that_passes(fault: str, where: int) -> None:
    checker, stage = STAGES[where]
    script = Faulty(facts.serve, [fault], stage=stage, times=1)
    with openai_server(script) as server:
        found = evaluate(make(server, checker, fault), 3, where)
        if fault != "hang":  # A request that is given up may not have reached the server.
            assert found.usage.calls == len(server.requests)
    assert script.met[fault] == 1
    assert facts.grade(3, found) == "right", found.error


def lasting(fault: str, where: int) -> Evaluation:
    checker, stage = STAGES[where]
    script = Faulty(facts.serve, [fault], stage=stage)
    with openai_server(script) as server:
        made = make(server, checker, fault, attempts=2)
        if fault == "hang":
            policy = CallPolicy(timeout=0.2, attempts=2, first_delay=0)
            made = made.model_copy(update={"call_policy": policy})
        found = evaluate(made, 2, where)
        if fault != "hang":
            assert found.usage.calls == len(server.requests)
    return found


@pytest.mark.parametrize("fault", BROKEN)
def test_one_that_lasts_decides_nothing_and_is_named(fault: str) -> None:
    # No request but the spoiled ones is made, so that none of them meets the time limit of a hang.
    found = lasting(fault, 0)
    assert facts.grade(2, found) == "undetermined"
    assert re.search(NAMED[fault], str(found.error))


@unusable
def test_an_unusable_message_is_no_label(fault: str, where: int) -> None:
    found = lasting(fault, where)
    if where == 0:
        # A list that cannot be read nominates nothing: the sentences are checked as they stand.
        assert facts.grade(2, found) == "right"
        assert found.details["coverage"] < 1
    else:
        assert facts.grade(2, found) == "undetermined"
        assert re.search(NAMED[fault], str(found.error))


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
