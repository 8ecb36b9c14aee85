"""Processes that are forked from one that is in the middle of something."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, convert_to_messages
from langchain_core.runnables import RunnableLambda

from demur import (
    CallPolicy,
    DemurError,
    ExampleStore,
    Guard,
    RefChecker,
    Sample,
    ScoreCallbackHandler,
)
from demur._system import Recent
from demur.guard import REFUSAL, UNCHECKED
from demur.observe.log import open_log, records
from demur.runtime import (
    Account,
    ChatCall,
    Outcome,
    PerModel,
    Reply,
    adrive,
    ask_all,
    drive,
    inherited,
    share,
)
from demur.schema import Usage
from demur.similarity import Similarity
from support import facts
from support.fakes import ScriptedModel
from support.handlers import echo
from support.openai_server import Answer, OpenAIServer, openai_server
from support.processes import told
from support.vectors import Told
from support.waiting import PATIENCE, wait

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]

FORKS = 5
WORKERS = 4


@pytest.fixture(autouse=True)
def _none_was_called_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inherited, "_called", set())


class InProcess(ScriptedModel):
    """A model without connections, as `ChatLocal` is one."""

    @property
    def _llm_type(self) -> str:
        return "demur-local"


def asked(
    model: ScriptedModel, text: str, policy: CallPolicy, mode: str = "sync"
) -> Outcome[Reply]:
    def steps() -> Any:
        return (yield from ask_all([ChatCall(model, [HumanMessage(text)], "stage")]))

    if mode == "sync":
        found, _ = drive(steps(), {}, policy)
    else:
        found, _ = asyncio.run(adrive(steps(), {}, policy))
    return found[0]


def value_of(outcome: Outcome[Reply]) -> str:
    return outcome.error or outcome.value.text


@contextlib.contextmanager
def in_flight(kind: type[ScriptedModel], policy: CallPolicy, mode: str) -> Iterator[ScriptedModel]:
    """A model that another thread asks, and that answers it at the end only."""
    parent, begun, over = os.getpid(), threading.Event(), threading.Event()

    def script(stage: str, messages: Any) -> str:
        if os.getpid() == parent:
            begun.set()
            over.wait(PATIENCE)
        return "a reply"

    model = kind(script=script)
    replies: list[str] = []
    thread = threading.Thread(
        target=lambda: replies.append(value_of(asked(model, "why?", policy, mode)))
    )
    thread.start()
    try:
        wait(begun)
        yield model
    finally:
        over.set()
        thread.join(PATIENCE)
    assert replies == ["a reply"], "the parent goes on"


# --- Requests in flight ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("text", ["why?", "who?"])
def test_a_child_waits_for_no_request_and_no_slot_of_its_parent_s(text: str, mode: str) -> None:
    """For an identical one, or for any where one at a time is allowed."""
    policy = CallPolicy(attempts=1, max_concurrency=1)
    with in_flight(InProcess, policy, mode) as model:
        assert told(lambda: value_of(asked(model, text, policy, mode))) == "a reply"


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_child_is_refused_the_connections_of_its_parent_s(mode: str) -> None:
    policy = CallPolicy(attempts=1)
    with in_flight(ScriptedModel, policy, mode) as model:
        error = told(lambda: value_of(asked(model, "why?", policy, mode)))
    assert "a ScriptedModel was called before this process was forked" in error
    assert "'spawn'" in error


# --- The whole, over connections ------------------------------------------------------------------


def serve(request: dict[str, Any], number: int) -> Answer:
    """As `facts.serve`, by the text alone: run names of children are not heard here."""
    messages = convert_to_messages(request["messages"])
    stage = "joint" if "<claims-" in str(messages[-1].content) else "extraction"
    return Answer(str(facts.judge(stage, messages)))


def make_guard(server: OpenAIServer) -> Guard[Any, Any]:
    checker = RefChecker(server.model(), checker="joint", call_policy=CallPolicy(attempts=2))
    chain = RunnableLambda(lambda asked: facts.answer(asked["number"]))
    return Guard(chain, checker, contexts=lambda _: ["A list of items"])


def graded(guard: Guard[Any, Any], worker: int) -> Counter[str]:
    """How the guard did on ten items of the worker's own."""
    found: Counter[str] = Counter()
    for number in range(worker * 10, worker * 10 + 10):
        given = {"question": facts.question(number), "number": number}
        guarded = guard.with_trace().invoke(given)
        (evaluation,) = guarded.trace.attempts[0].evaluations
        found[facts.grade(number, evaluation)] += 1
        passes = guarded.output not in (REFUSAL, UNCHECKED)
        assert passes <= (facts.supported(number) == len(facts.ATTRIBUTES))
    return found


def in_workers(guard: Guard[Any, Any]) -> Counter[str]:
    """The same in processes that `multiprocessing` forks, side by side."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def work(worker: int) -> None:
        queue.put(graded(guard, worker))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        workers = [context.Process(target=work, args=(one,)) for one in range(WORKERS)]
        for one in workers:
            one.start()
    for one in workers:
        one.join()
    assert [one.exitcode for one in workers] == [0] * WORKERS
    total: Counter[str] = Counter()
    for _ in workers:
        total += queue.get()
    return total


@pytest.mark.slow
@pytest.mark.smoke
def test_a_guard_serves_in_forked_workers_or_is_refused_where_the_parent_had_called() -> None:
    with openai_server(serve) as server:
        guard = make_guard(server)
        assert in_workers(guard) == {"right": WORKERS * 10}
        assert graded(guard, 0) == {"right": 10}
        assert in_workers(guard) == {"undetermined": WORKERS * 10}, "none reads another's replies"
        assert graded(guard, 1) == {"right": 10}, "the parent goes on"


# --- Stores ---------------------------------------------------------------------------------------


def make_store(path: Path | str | None) -> ExampleStore:
    store = ExampleStore(path, embedding=Told())
    store.add("1 0 | who?", ["Ann"], [0.5])
    return store


@pytest.mark.slow
@pytest.mark.parametrize("place", ["folder", "memory"])
def test_a_store_that_was_opened_before_a_fork_is_refused_in_the_child(
    tmp_path: Path, place: str
) -> None:
    store = make_store(tmp_path / "store" if place == "folder" else None)

    def work() -> str:
        errors = []
        for use in (
            lambda: len(store),
            lambda: store.get("1 0 | who?"),
            lambda: store.nearest("1 1 | why?", 1),
            lambda: store.add("0 1 | why?", ["Bo"], [0.5]),
            lambda: store.remove("1 0 | who?"),
        ):
            with pytest.raises(DemurError) as caught:
                use()
            errors.append(str(caught.value))
        store.close()
        assert len(set(errors)) == 1
        return errors[0]

    error = told(work)
    assert "was opened before this process was forked" in error
    assert "post_fork" in error
    store.add("0 1 | why?", ["Bo"], [0.5])
    assert len(store) == 2, "the parent goes on"
    store.close()


@pytest.mark.slow
def test_a_child_opens_stores_on_a_server_and_no_others(tmp_path: Path, chroma: str) -> None:
    kept, private = make_store(tmp_path / "parent"), [make_store(None)]

    def refused(place: Path | None) -> str:
        private.clear()  # nothing is waited for when it goes
        with pytest.raises(DemurError) as caught:
            make_store(place)
        return str(caught.value)

    for place in (tmp_path / "parent", tmp_path / "child", None):
        error = told(lambda place=place: refused(place))
        assert "was forked from one that had opened Chroma" in error
        assert "post_fork" in error
    kept.close()
    assert "had opened" in told(lambda: refused(tmp_path / "parent")), "also what is closed"
    there = make_store(chroma)
    assert told(lambda: len(make_store(chroma))) == "1"
    assert len(there) == 1, "the parent goes on"
    there.close()


_ENDING = """
import os, signal, sys
from support.vectors import Told
from demur import ExampleStore

try:
    import onnxruntime  # as a store with its own embedding does
except ImportError:
    pass
stores = [ExampleStore(sys.argv[1], embedding=Told()), ExampleStore(embedding=Told())]
for store in stores:
    store.add("1 0 | who?", ["Ann"], [0.5])
child = os.fork()
if not child:
    signal.alarm(30)
    sys.exit(3)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert [len(store) for store in stores] == [1, 1]
print("ended", flush=True)
sys.stdin.read()
sys.exit(code)
"""


@pytest.mark.slow
def test_a_child_that_ends_as_servers_workers_do_waits_for_nothing(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    command = [sys.executable, "-W", "ignore", "-c", _ENDING, str(tmp_path / "store")]
    pipe, env = subprocess.PIPE, {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ended\n"
        with pytest.raises(DemurError, match="is in use by another process"):
            make_store(tmp_path / "store")  # The child has left the parent its folder.
        parent.communicate()
    assert parent.returncode == 3


# --- Locks ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_child_hangs_on_a_lock_that_a_thread_of_its_parent_s_held(tmp_path: Path) -> None:
    model = InProcess(script=lambda stage, messages: "a reply")
    recent: Recent[int] = Recent(8)
    kept: PerModel[int] = PerModel()
    account = Account(model_calls=10**9)
    similarity = Similarity(lambda pairs: [0.5] * len(pairs), "half", "half")
    handler = ScoreCallbackHandler(echo, sink=tmp_path / "log.sqlite", max_queue=10)
    chain = RunnableLambda(lambda text: f"{text} good")

    def use(key: str) -> None:
        recent.put(key, 1, 1)
        recent.get([key])
        kept.setdefault(model, "key", lambda: 1)
        account.reserve(1)
        account.settle(1, Usage(calls=1))
        share("same", lambda: 1)
        similarity.scores([(key, "x")])
        chain.invoke(key, {"callbacks": [handler]})

    stop = threading.Event()

    def hammer(name: int) -> None:
        at = 0
        while not stop.is_set():
            use(f"{name}-{at}")
            at += 1

    threads = [threading.Thread(target=hammer, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    try:
        for at in range(FORKS):
            assert told(lambda at=at: use(f"child {at}")) == "None"
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert handler.close(PATIENCE)


# --- Handlers -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_parent_and_child_write_one_log(tmp_path: Path) -> None:
    """Also where the parent is scoring at the moment of the fork: that stays the parent's."""
    parent, go = os.getpid(), threading.Event()

    def judge(sample: Sample) -> Any:
        if os.getpid() == parent:
            wait(go)
        return echo(sample)

    handler = ScoreCallbackHandler(judge, sink=tmp_path / "log.sqlite")
    chain = RunnableLambda(lambda text: f"{text} good")
    chain.invoke("parent", {"callbacks": [handler]})

    def work() -> str:
        chain.invoke("child", {"callbacks": [handler]})
        return f"{handler.flush(PATIENCE)} {handler.close(PATIENCE)}"

    assert told(work) == "True True"
    go.set()
    assert handler.close(PATIENCE)
    with open_log(tmp_path / "log.sqlite") as log:
        assert sorted(str(record.question) for record in records(log)) == ["child", "parent"]
