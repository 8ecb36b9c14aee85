"""Test demur's contract with evaluators that ask a LlamaIndex LLM.

The evaluators are the core's own, whose contract `tests/contract` tests. New is the chat model
inside them, so these are the tests that ask it in every way, copy it, and listen to it. Everything
is at module level, so that it can be pickled.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from langchain_core.runnables import Runnable

from contract.evaluators import EVALUATORS
from contract.member import Member
from contract.test_fingerprints import test_they_stay_the_same_in_copies
from contract.test_members import (
    test_async_calls_stay_in_their_event_loop,
    test_children_have_their_parents_and_the_caller_s_config,
    test_copies_do_the_same,
    test_event_loops_share_nothing,
    test_sync_async_and_batch_agree_in_order,
    test_tasks_share_nothing,
)
from contract.test_nothing import test_no_evaluator_says_that_it_passed
from fake_llm import ScriptedCompletions, ScriptedLLM
from llama_index.evaluation.demur.evaluators import RefCheckerEvaluator
from support import facts

__all__ = [
    "test_async_calls_stay_in_their_event_loop",
    "test_children_have_their_parents_and_the_caller_s_config",
    "test_copies_do_the_same",
    "test_event_loops_share_nothing",
    "test_no_evaluator_says_that_it_passed",
    "test_sync_async_and_batch_agree_in_order",
    "test_tasks_share_nothing",
    "test_they_stay_the_same_in_copies",
]


def _refchecker(kind: type[Any], checker: str) -> Runnable[Any, Any]:
    return RefCheckerEvaluator(kind(script=facts.judge), checker=checker).evaluator


_CORE = {member.name: member for member in EVALUATORS}
MEMBERS = [
    replace(
        _CORE["refchecker logprobs"],
        make=partial(_refchecker, ScriptedLLM, "logprobs"),
    ),
    replace(
        _CORE["refchecker joint"],
        name="refchecker, completions",
        make=partial(_refchecker, ScriptedCompletions, "joint"),
    ),
]


@pytest.fixture(params=MEMBERS, ids=lambda member: member.name)
def member(request: pytest.FixtureRequest) -> Member:
    return request.param


@pytest.fixture
def made(member: Member) -> Runnable[Any, Any]:
    return member.make()
