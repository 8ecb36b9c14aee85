"""Test demur's contract for evaluators with evaluators that ask a LlamaIndex LLM.

The tests are those of the core, with members of this distribution. Everything is at module level,
so that it can be pickled.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from langchain_core.runnables import Runnable

from contract import test_members
from contract.evaluators import EVALUATORS, _Beginning
from contract.member import FEWER, Member
from contract.test_coverage import (
    test_a_sentence_that_nobody_nominates_is_checked,
    test_no_guard_lets_it_out,
)
from contract.test_fingerprints import (
    test_a_copy_with_other_parts_tells_of_those,
    test_evaluations_do_not_share_them,
    test_every_evaluation_carries_them,
    test_how_calls_are_made_is_no_part_of_them,
    test_they_are_texts_that_say_something,
    test_they_differ_where_scores_may,
    test_they_stay_the_same_in_copies,
)
from contract.test_members import (
    test_a_hundred_tasks_share_nothing,
    test_a_sync_call_within_a_running_loop_works,
    test_an_input_that_cannot_be_used_raises_alone,
    test_async_calls_stay_in_their_event_loop,
    test_children_have_their_parents_and_the_caller_s_config,
    test_copies_do_the_same,
    test_event_loops_share_nothing,
    test_events_make_one_tree,
    test_it_composes_like_any_runnable,
    test_it_says_what_it_takes_and_gives,
    test_no_token_is_streamed_from_within,
    test_nothing_of_the_caller_s_is_changed,
    test_runs_of_a_batch_are_apart,
    test_streams_give_the_one_output,
    test_sync_async_and_batch_agree_in_order,
    test_threads_share_nothing,
)
from contract.test_nothing import (
    test_no_evaluator_says_that_it_passed,
    test_no_guard_says_that_it_passed,
)
from fake_llm import ScriptedCompletions, ScriptedLLM
from llama_index.evaluation.demur.evaluators import (
    FEWLEvaluator,
    RefCheckerEvaluator,
    ReverseValidationEvaluator,
)
from support import facts

__all__ = [
    "test_a_copy_with_other_parts_tells_of_those",
    "test_a_hundred_tasks_share_nothing",
    "test_a_sentence_that_nobody_nominates_is_checked",
    "test_a_sync_call_within_a_running_loop_works",
    "test_an_input_that_cannot_be_used_raises_alone",
    "test_async_calls_stay_in_their_event_loop",
    "test_children_have_their_parents_and_the_caller_s_config",
    "test_copies_do_the_same",
    "test_evaluations_do_not_share_them",
    "test_event_loops_share_nothing",
    "test_events_make_one_tree",
    "test_every_evaluation_carries_them",
    "test_how_calls_are_made_is_no_part_of_them",
    "test_it_composes_like_any_runnable",
    "test_it_says_what_it_takes_and_gives",
    "test_no_evaluator_says_that_it_passed",
    "test_no_guard_lets_it_out",
    "test_no_guard_says_that_it_passed",
    "test_no_token_is_streamed_from_within",
    "test_nothing_of_the_caller_s_is_changed",
    "test_runs_of_a_batch_are_apart",
    "test_streams_give_the_one_output",
    "test_sync_async_and_batch_agree_in_order",
    "test_they_are_texts_that_say_something",
    "test_they_differ_where_scores_may",
    "test_they_stay_the_same_in_copies",
    "test_threads_share_nothing",
]


def _llm() -> ScriptedLLM:
    return ScriptedLLM(script=facts.judge)


def _refchecker(checker: str) -> Runnable[Any, Any]:
    return RefCheckerEvaluator(_llm(), checker=checker).evaluator


def _completing() -> Runnable[Any, Any]:
    return RefCheckerEvaluator(ScriptedCompletions(script=facts.judge)).evaluator


def _reverse_validation() -> Runnable[Any, Any]:
    return ReverseValidationEvaluator(_llm(), variant="em").evaluator


def _fewl() -> Runnable[Any, Any]:
    return FEWLEvaluator(
        [_llm(), _llm()],
        similarity=facts.alike,
        n_answers=2,
        k_neighbors=2,
        neighbors=_Beginning(),
        threshold=0.2,
    ).evaluator


_CORE = {member.name: member for member in EVALUATORS}
MEMBERS = [
    replace(_CORE["refchecker joint"], make=partial(_refchecker, "joint")),
    replace(_CORE["refchecker logprobs"], make=partial(_refchecker, "logprobs"), tasks=FEWER),
    replace(
        _CORE["refchecker joint"], name="refchecker, completions", make=_completing, tasks=FEWER
    ),
    replace(_CORE["reverse validation, em"], make=_reverse_validation, tasks=FEWER),
    replace(_CORE["fewl, two references, penalty"], make=_fewl, tasks=FEWER),
]


@pytest.fixture(params=MEMBERS, ids=lambda member: member.name)
def member(request: pytest.FixtureRequest) -> Member:
    return request.param


@pytest.fixture
def made(member: Member) -> Runnable[Any, Any]:
    return member.make()


def test_calls_that_judge_are_marked(member: Member) -> None:
    test_members.test_calls_that_judge_are_marked(member)


_ELSEWHERE = """
import pickle, sys
for member, made, told in pickle.load(sys.stdin.buffer):
    print(member.name, member.good(3, made.invoke(member.give(3))), made.fingerprints == told)
"""


@pytest.mark.slow
def test_pickles_work_in_another_process_and_tell_the_same() -> None:
    made = [(member, member.make()) for member in MEMBERS]
    # The members must have the name under which the other process finds them.
    pickled = pickle.dumps([(member, one, one.fingerprints) for member, one in made])
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "7"}
    ran = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE],
        input=pickled,
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
        timeout=120,
    )
    said = ran.stdout.decode().splitlines()
    assert said == [f"{member.name} True True" for member in MEMBERS], ran.stderr.decode()
