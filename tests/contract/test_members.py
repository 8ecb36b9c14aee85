"""Test the contract that every member of `members.py` keeps as a Runnable."""

from __future__ import annotations

import asyncio
import copy
import pickle
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel

from contract.evaluators import EVALUATORS
from contract.member import Member
from contract.members import MEMBERS

TESTS = Path(__file__).parents[1]


@pytest.fixture(params=MEMBERS, ids=lambda member: member.name)
def member(request: pytest.FixtureRequest) -> Member:
    return request.param


def given(member: Member, count: int) -> list[Any]:
    return [member.give(number) for number in range(count)]


def all_good(member: Member, outputs: Sequence[Any]) -> bool:
    """Return whether each output is right for its number: none missing, repeated or misplaced."""
    return all(member.good(number, output) for number, output in enumerate(outputs))


# --- The ways to call -------------------------------------------------------------------------


@pytest.mark.slow
async def test_sync_async_and_batch_agree_in_order(member: Member, made: Any) -> None:
    inputs = given(member, 3)
    outputs = [made.invoke(input) for input in inputs]
    assert all_good(member, outputs)
    expected = [member.essence(output) for output in outputs]
    ways = {
        "ainvoke": [await made.ainvoke(input) for input in inputs],
        "batch": made.batch(inputs),
        "abatch": await made.abatch(inputs),
        "abatch, 2 at a time": await made.abatch(inputs, {"max_concurrency": 2}),
        "as completed": [output for _, output in sorted(made.batch_as_completed(inputs), key=_at)],
        "map": made.map().invoke(inputs),
    }
    for way, found in ways.items():
        assert [member.essence(output) for output in found] == expected, way


def _at(completed: tuple[int, Any]) -> int:
    return completed[0]


@pytest.mark.slow
async def test_streams_give_the_one_output(member: Member, made: Any) -> None:
    input = member.give(3)
    assert [member.good(3, output) for output in made.stream(input)] == [True]
    assert [member.good(3, output) async for output in made.astream(input)] == [True]
    chain = RunnableLambda(member.give) | made
    assert [member.good(3, output) for output in chain.stream(3)] == [True]
    assert [member.good(3, output) async for output in chain.astream(3)] == [True]


@pytest.mark.slow
async def test_an_input_that_cannot_be_used_raises_alone(member: Member, made: Any) -> None:
    inputs = [member.give(0), member.bad_input, member.give(2)]
    with pytest.raises(ValueError, match=member.complaint) as alone:
        made.invoke(member.bad_input)
    kind = type(alone.value)
    with pytest.raises(kind, match=member.complaint):
        await made.ainvoke(member.bad_input)
    with pytest.raises(kind, match=member.complaint):
        made.batch(inputs)
    for outputs in (
        made.batch(inputs, return_exceptions=True),
        await made.abatch(inputs, return_exceptions=True),
    ):
        assert isinstance(outputs[1], kind)
        assert member.good(0, outputs[0])
        assert member.good(2, outputs[2])


# --- Many at a time ---------------------------------------------------------------------------


@pytest.mark.slow
async def test_tasks_share_nothing(member: Member, made: Any) -> None:
    inputs = given(member, 16)
    assert all_good(member, await asyncio.gather(*map(made.ainvoke, inputs)))


@pytest.mark.slow
def test_threads_share_nothing(member: Member, made: Any) -> None:
    assert all_good(member, made.batch(given(member, 12), {"max_concurrency": 12}))


@pytest.mark.slow
def test_event_loops_share_nothing(member: Member, made: Any) -> None:
    def run(inputs: Sequence[Any]) -> list[Any]:
        return asyncio.run(made.abatch(inputs))

    inputs = given(member, 8)
    with ThreadPoolExecutor(4) as pool:
        parts = pool.map(run, [inputs[at : at + 2] for at in range(0, 8, 2)])
    assert all_good(member, [output for part in parts for output in part])


# --- Callbacks --------------------------------------------------------------------------------


class _Runs:
    """Record the runs that callbacks report."""

    def __init__(self) -> None:
        self.kinds: dict[UUID, str] = {}
        self.parents: dict[UUID, UUID | None] = {}
        self.tags: dict[UUID, set[str]] = {}
        self.metadata: dict[UUID, dict[str, Any]] = {}
        self.ended: list[UUID] = []

    def start(self, kind: str, run_id: UUID, **kwargs: Any) -> None:
        self.kinds[run_id] = kind
        self.parents[run_id] = kwargs.get("parent_run_id")
        self.tags[run_id] = set(kwargs.get("tags") or ())
        self.metadata[run_id] = kwargs.get("metadata") or {}

    def check(self, member: Member) -> None:
        """Check that the runs are one tree, have ended, and carry the caller's configuration."""
        (root,) = (run for run, parent in self.parents.items() if parent is None)
        assert all(parent in self.kinds for parent in self.parents.values() if parent)
        assert sorted(self.ended) == sorted(self.kinds), "each run ends once"
        assert {"chain", *(["model"] if member.asks else [])} <= set(self.kinds.values())
        for run, kind in self.kinds.items():
            assert "mine" in self.tags[run], kind
            assert self.metadata[run]["tenant"] == 7
            if kind == "model":  # LangGraph would stream tokens that nobody has checked.
                assert "nostream" in self.tags[run]
            if kind == "model" and member in EVALUATORS:
                assert "demur:judge" in self.tags[run]
                assert self.parents[run] == root


class _Handler(BaseCallbackHandler):
    def __init__(self) -> None:
        self.runs = _Runs()

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.runs.start("chain", **kwargs)

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.runs.start("model", **kwargs)

    def on_retriever_start(self, serialized: Any, query: Any, **kwargs: Any) -> None:
        self.runs.start("retriever", **kwargs)

    def on_end(self, ended: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.runs.ended.append(run_id)

    on_chain_end = on_llm_end = on_retriever_end = on_end


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_children_have_their_parents_and_the_caller_s_config(
    member: Member, made: Any, mode: str
) -> None:
    mine = _Handler()
    config: Any = {"callbacks": [mine], "tags": ["mine"], "metadata": {"tenant": 7}}
    before = {key: copy.copy(value) for key, value in config.items()}
    if mode == "sync":
        await asyncio.to_thread(made.invoke, member.give(3), config)
    else:
        await made.ainvoke(member.give(3), config)
    mine.runs.check(member)
    assert config == before


class _Loops(AsyncCallbackHandler):
    """Record the event loops in which runs start."""

    def __init__(self) -> None:
        self.found: list[asyncio.AbstractEventLoop] = []

    async def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.found.append(asyncio.get_running_loop())

    async def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.found.append(asyncio.get_running_loop())


async def test_async_calls_stay_in_their_event_loop(member: Member, made: Any) -> None:
    loops = _Loops()
    await made.ainvoke(member.give(3), {"callbacks": [loops]})
    assert len(loops.found) >= (2 if member.asks else 1)
    assert set(loops.found) == {asyncio.get_running_loop()}


@pytest.mark.slow
def test_runs_of_a_batch_are_apart(member: Member, made: Any) -> None:
    handlers = [_Handler() for _ in range(4)]
    configs: Any = [
        {"callbacks": [mine], "tags": ["mine"], "metadata": {"tenant": 7}} for mine in handlers
    ]
    made.batch(given(member, 4), configs)
    for mine in handlers:
        mine.runs.check(member)
    runs = [run for mine in handlers for run in mine.runs.kinds]
    assert len(set(runs)) == len(runs)


# --- As a part of something -------------------------------------------------------------------


@pytest.mark.slow
async def test_it_composes_like_any_runnable(member: Member, made: Any) -> None:
    heard: list[Any] = []
    fallback = RunnableLambda(lambda _: "instead")
    parts: dict[str, Runnable[Any, Any]] = {
        "|": made | RunnableLambda(lambda output: output),
        "bind": made.bind(),
        "with_config": made.with_config(tags=["x"], run_name="mine"),
        "with_retry": made.with_retry(stop_after_attempt=2),
        "with_fallbacks": made.with_fallbacks([fallback]),
        "with_listeners": made.with_listeners(on_end=lambda run: heard.append(run.outputs)),
        "with_types": made.with_types(input_type=object),
    }
    for name, part in parts.items():
        assert member.good(3, part.invoke(member.give(3))), name
        assert member.good(3, await part.ainvoke(member.give(3))), name
    assert len(heard) == 2
    assert parts["with_fallbacks"].invoke(member.bad_input) == "instead"
    side_by_side = RunnableParallel(first=made, second=made)
    both = (RunnableLambda(member.give) | side_by_side).invoke(3)
    assert all(member.good(3, both[name]) for name in ("first", "second"))


def test_it_says_what_it_takes_and_gives(member: Member, made: Any) -> None:
    assert made.get_input_jsonschema()
    assert made.get_output_jsonschema()
    assert made.config_specs == []
    graph = (RunnableLambda(member.give) | made).get_graph()
    assert len(graph.nodes) >= 3


# --- Copies -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_copies_do_the_same(member: Member, made: Any) -> None:
    made.invoke(member.give(1))  # State that a call leaves behind must not prevent a copy.
    for copied in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert all_good(member, copied.batch(given(member, 2)))


_ELSEWHERE = """
import pickle, sys
for member, made, told in pickle.load(sys.stdin.buffer):
    same = getattr(made, "fingerprints", None) == told
    print(member.name, member.good(3, made.invoke(member.give(3))), same)
"""


@pytest.mark.slow
def test_pickles_work_in_another_process_and_have_the_same_fingerprints() -> None:
    made = [(member, member.make()) for member in MEMBERS]
    pickled = pickle.dumps([(*one, getattr(one[1], "fingerprints", None)) for one in made])
    ran = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE],
        input=pickled,
        capture_output=True,
        check=False,
        env={"PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}", "PYTHONHASHSEED": "7"},
    )
    assert ran.stdout.decode().splitlines() == [f"{member.name} True True" for member in MEMBERS], (
        ran.stderr.decode()
    )


@pytest.mark.slow
def test_nothing_of_the_caller_s_is_changed(member: Member, made: Any) -> None:
    for number in (2, 3):
        input = member.give(number)
        before = copy.deepcopy(input), repr(made), copy.copy(vars(made))
        output = made.invoke(input)
        assert (input, repr(made), vars(made)) == before
        kept = copy.deepcopy(output)
        made.invoke(member.give(number + 2))
        assert output == kept
