"""The bounded queue: nothing is lost, nothing grows, and every end is a clean one."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

import pytest

from demur.observe.backlog import Backlog


def nothing() -> None:
    """No rest."""


async def until_no_task_is_left(backlog: Backlog[Any]) -> None:
    """A worker finds out that there is no more to do after the last job is done."""
    deadline = time.monotonic() + 10
    while backlog._tasks and time.monotonic() < deadline:
        await asyncio.sleep(0.001)
    assert not backlog._tasks


class Works:
    """Jobs that were done. Those done in a loop may be held up until `go` is set."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.threads: list[str] = []
        self.most, self._now = 0, 0
        self.go = threading.Event()
        self.go.set()
        self._lock = threading.Lock()

    def work(self, job: Any) -> None:
        self._enter()
        self.go.wait(30)
        if job == "bad":
            raise ValueError("no")
        self._leave(job)

    async def awork(self, job: Any) -> Callable[[], None]:
        self._enter()
        try:
            while not self.go.is_set():
                await asyncio.sleep(0.001)
            await asyncio.sleep(0)
        except BaseException:
            self._now -= 1
            raise
        if job == "bad":
            raise ValueError("no")
        self._leave(job)
        return nothing

    def _enter(self) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)

    def _leave(self, job: Any) -> None:
        with self._lock:
            self._now -= 1
            self.done.append(job)
            self.threads.append(threading.current_thread().name)

    def backlog(
        self, limit: int = 100, on_full: Literal["drop", "block"] = "drop", at_once: int = 2
    ) -> Backlog[Any]:
        return Backlog(self.work, self.awork, limit, on_full, at_once)


@pytest.fixture
def works() -> Iterator[Works]:
    works = Works()
    yield works
    works.go.set()


def test_all_is_done_by_so_many_at_a_time(works: Works) -> None:
    backlog = works.backlog(limit=1000, at_once=3)
    assert all(backlog.put(at) for at in range(500))
    assert backlog.flush(30)
    assert sorted(works.done) == [*range(500)]
    assert works.most <= 3
    assert (len(backlog), backlog.give_up()) == (0, 0)


def test_what_there_is_no_room_for_is_dropped_and_counted(works: Works) -> None:
    works.go.clear()
    backlog = works.backlog(limit=5, at_once=2)
    taken = [backlog.put(at) for at in range(20)]
    # Two may be at work already, or not yet.
    assert 5 <= sum(taken) <= 7
    assert backlog.dropped == 20 - sum(taken)
    assert len(backlog) <= 5
    works.go.set()
    assert backlog.flush(30)
    assert sorted(works.done) == [at for at, was in enumerate(taken) if was]


def test_block_waits_for_room(works: Works) -> None:
    works.go.clear()
    backlog = works.backlog(limit=1, on_full="block", at_once=1)
    offering = threading.Thread(target=lambda: [backlog.put(at) for at in range(10)])
    offering.start()
    offering.join(0.1)
    assert offering.is_alive()
    works.go.set()
    offering.join(30)
    assert not offering.is_alive()
    assert backlog.flush(30)
    assert works.done == [*range(10)]
    assert backlog.dropped == 0


async def test_block_in_a_loop_holds_up_only_who_offers(works: Works) -> None:
    works.go.clear()
    backlog = works.backlog(limit=1, on_full="block", at_once=1)
    loop = asyncio.get_running_loop()
    offering = [asyncio.create_task(backlog.aput(at, loop)) for at in range(10)]
    await asyncio.sleep(0.05)  # the loop goes on
    assert sum(task.done() for task in offering) <= 2
    offering[5].cancel()
    await asyncio.sleep(0)
    works.go.set()
    took = await asyncio.gather(*offering, return_exceptions=True)
    assert sum(one is True for one in took) == 9
    assert await backlog.aflush(30)
    assert sorted(works.done) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert not backlog._for_room


def test_flush_waits_for_what_was_there_and_not_for_what_comes_later(works: Works) -> None:
    works.go.clear()
    backlog = works.backlog(at_once=1)
    backlog.put(1)
    assert not backlog.flush(0.05)
    assert not backlog.flush(0)
    stop = threading.Event()

    def more() -> None:
        while not stop.is_set():
            backlog.put("later")
            time.sleep(0.001)

    offering = threading.Thread(target=more)
    offering.start()
    try:
        works.go.set()
        assert backlog.flush(30)
        assert 1 in works.done
    finally:
        stop.set()
        offering.join()
    assert backlog.flush(30)


def test_a_job_that_fails_stops_nothing(works: Works, caplog: pytest.LogCaptureFixture) -> None:
    backlog = works.backlog(at_once=1)
    for job in ("bad", 1, "bad", 2):
        backlog.put(job)
    assert backlog.flush(30)
    assert works.done == [1, 2]
    assert "ValueError: no" in caplog.text


def test_after_close_nothing_is_taken_in_and_the_rest_is_done(works: Works) -> None:
    backlog = works.backlog()
    for at in range(10):
        backlog.put(at)
    backlog.close()
    assert not backlog.put("late")
    assert backlog.dropped == 1
    assert backlog.flush(30)
    assert sorted(works.done) == [*range(10)]
    assert backlog.give_up() == 0


def test_close_lets_those_go_that_wait_for_room(works: Works) -> None:
    works.go.clear()
    backlog = works.backlog(limit=1, on_full="block", at_once=1)
    took: list[bool] = []
    offering = threading.Thread(target=lambda: took.extend(backlog.put(at) for at in range(5)))
    offering.start()
    while not backlog._for_room:
        time.sleep(0.001)
    backlog.close()
    offering.join(30)
    assert took[-1] is False
    assert backlog.give_up() == sum(took)
    assert backlog.dropped == 5


async def test_room_that_nobody_wants_any_more_is_given_to_the_next(works: Works) -> None:
    works.go.clear()
    backlog = works.backlog(limit=1, on_full="block", at_once=1)
    await backlog.aput(0, None)
    while len(backlog):
        await asyncio.sleep(0.001)
    await backlog.aput(1, None)
    first = asyncio.create_task(backlog.aput(2, None))
    second = asyncio.create_task(backlog.aput(3, None))
    while len(backlog._for_room) < 2:
        await asyncio.sleep(0.001)
    works.go.set()
    while 1 not in works.done:  # the first is told of room, and cannot act on it
        time.sleep(0.001)
    first.cancel()
    assert await asyncio.wait_for(second, 10)
    assert await backlog.aflush(30)
    assert works.done == [0, 1, 3]


async def test_who_holds_up_the_loop_does_not_wait_for_its_tasks(works: Works) -> None:
    """As a sync chain that is called in a coroutine."""
    works.go.clear()
    backlog = works.backlog(limit=1, on_full="block", at_once=2)
    loop = asyncio.get_running_loop()
    for at in range(3):
        await backlog.aput(at, loop)
        await asyncio.sleep(0.01)
    works.go.set()
    offering = threading.Thread(target=lambda: [backlog.put(at) for at in (3, 4)], daemon=True)
    offering.start()
    offering.join(10)  # meanwhile the loop stands still
    assert not offering.is_alive()
    assert await backlog.aflush(30)
    assert sorted(works.done) == [0, 1, 2, 3, 4]


def test_work_that_makes_work_does_not_wait_for_itself() -> None:
    done: list[int] = []

    def work(job: int) -> None:
        done.append(job)
        if job < 5:
            assert backlog.put(10 * job + 1)
            assert backlog.put(10 * job + 2)

    backlog: Backlog[int] = Backlog(work, None, 1, "block", 1)  # type: ignore[arg-type]  # unused
    backlog.put(1)
    assert backlog.flush(10)
    backlog.put(2)
    assert backlog.flush(10)
    assert sorted(done) == [1, 2, 11, 12, 21, 22]


def test_when_no_thread_can_be_started_the_next_to_come_tries_again(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(work: Any) -> None:
        raise RuntimeError("can't start new thread")

    backlog = works.backlog(at_once=1)
    with monkeypatch.context() as patched:
        patched.setattr("demur.observe.backlog.in_background", none)
        with pytest.raises(RuntimeError, match="can't start"):
            backlog.put(1)
    backlog.put(2)
    assert backlog.flush(10)
    assert works.done == [1, 2]


async def test_work_that_wants_to_exit_is_a_job_that_fails(
    works: Works, caplog: pytest.LogCaptureFixture
) -> None:
    async def exits(job: Any) -> Callable[[], None]:
        if job == "exit":
            raise SystemExit(3)
        works.done.append(job)
        return nothing

    backlog: Backlog[Any] = Backlog(works.work, exits, 10, "drop", 1)
    for job in ("exit", 1):
        await backlog.aput(job, asyncio.get_running_loop())
    assert await backlog.aflush(10)
    assert works.done == [1]
    assert "SystemExit: 3" in caplog.text
    await until_no_task_is_left(backlog)


def test_those_who_stop_waiting_for_the_end_are_forgotten(works: Works) -> None:
    works.go.clear()
    backlog = works.backlog()
    backlog.put(1)
    assert not any(backlog.flush(0) for _ in range(50))
    assert len(backlog._for_end) <= 2
    works.go.set()
    assert backlog.flush(10)


async def test_in_a_loop_its_tasks_do_the_work(works: Works) -> None:
    backlog = works.backlog(at_once=3)
    loop = asyncio.get_running_loop()
    for at in range(50):
        assert await backlog.aput(at, loop)
    assert await backlog.aflush(30)
    assert sorted(works.done) == [*range(50)]
    assert set(works.threads) == {threading.current_thread().name}
    assert works.most <= 3
    await until_no_task_is_left(backlog)


@pytest.mark.parametrize("held", [True, False])
def test_when_the_loop_ends_threads_do_the_rest(works: Works, held: bool) -> None:
    if held:
        works.go.clear()
    backlog = works.backlog(at_once=2)

    async def chain() -> None:
        for at in range(20):
            await backlog.aput(at, asyncio.get_running_loop())
        await asyncio.sleep(0.01)

    asyncio.run(chain())
    works.go.set()
    assert backlog.flush(30)
    assert sorted(works.done) == [*range(20)]
    assert not backlog._tasks
    assert not backlog._in_tasks


@pytest.mark.parametrize("cancels", [True, False])
def test_what_a_task_leaves_to_a_thread_is_done_once_though_the_loop_ends(cancels: bool) -> None:
    began, go = threading.Event(), threading.Event()
    asked: list[int] = []
    written: list[int] = []

    def write(job: int) -> None:
        began.set()
        go.wait(30)
        written.append(job)

    async def awork(job: int) -> Callable[[], None]:
        asked.append(job)
        return partial(write, job)

    backlog: Backlog[int] = Backlog(write, awork, 10, "drop", 1)
    loop = asyncio.new_event_loop()

    async def chain() -> None:
        await backlog.aput(1, loop)
        while not began.is_set():
            await asyncio.sleep(0.001)
        if cancels:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0.01)

    loop.run_until_complete(chain())
    assert not backlog.flush(0.05)
    go.set()
    assert backlog.flush(30)
    assert asked == written == [1]
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.close()
    assert not backlog._tasks


def test_a_loop_that_is_left_standing_is_given_up(works: Works) -> None:
    """As a script's that calls `run_until_complete` and goes on without the loop."""
    works.go.clear()
    backlog = works.backlog(at_once=2)
    loop = asyncio.new_event_loop()

    async def chain() -> None:
        for at in range(6):
            await backlog.aput(at, loop)
        await asyncio.sleep(0.01)

    loop.run_until_complete(chain())
    works.go.set()
    assert backlog.flush(30)
    assert sorted(works.done) == [*range(6)]
    # Its tasks find out, when it goes on after all.
    loop.run_until_complete(asyncio.sleep(0.05))
    assert backlog.give_up() == 0
    loop.close()


def test_a_loop_that_is_closed_over_its_tasks(works: Works) -> None:
    works.go.clear()
    backlog = works.backlog(limit=4, at_once=2)
    loop = asyncio.new_event_loop()

    async def chain() -> None:
        for at in range(4):
            await backlog.aput(at, loop)
        await asyncio.sleep(0.01)

    loop.run_until_complete(chain())
    loop.close()
    works.go.set()
    backlog.put("next")  # finds the workers gone
    assert backlog.flush(30)
    assert sorted(map(str, works.done)) == ["0", "1", "2", "3", "next"]


_told: ContextVar[str] = ContextVar("told", default="nothing")


async def test_work_has_a_context_of_its_own() -> None:
    seen: list[str] = []

    async def awork(job: Any) -> Callable[[], None]:
        seen.append(_told.get())
        return nothing

    backlog: Backlog[Any] = Backlog(lambda job: seen.append(_told.get()), awork, 10, "drop", 1)
    _told.set("the chain's")
    backlog.put(1)
    await backlog.aflush(30)
    await backlog.aput(2, asyncio.get_running_loop())
    await backlog.aflush(30)
    assert seen == ["nothing", "nothing"]


def test_who_waits_for_room_is_told_though_the_loop_ends_while_a_job_is_finished() -> None:
    """The task that finishes it was the only worker: others have to go on."""
    finishing, finish = threading.Event(), threading.Event()
    done: list[str] = []

    def rest() -> None:
        finishing.set()
        finish.wait(10)

    async def awork(job: str) -> Callable[[], None]:
        done.append(job)
        return rest

    backlog: Backlog[str] = Backlog(done.append, awork, 1, "block", 1)

    async def one() -> None:
        await backlog.aput("first", asyncio.get_running_loop())
        while not finishing.is_set():
            await asyncio.sleep(0.001)
        await backlog.aput("second", asyncio.get_running_loop())
        waiting.start()
        while not backlog._for_room:
            await asyncio.sleep(0.001)

    async def another() -> None:
        await backlog.aput("third", asyncio.get_running_loop())
        await backlog.aflush(10)

    waiting = threading.Thread(target=lambda: asyncio.run(another()), daemon=True)
    asyncio.run(one())
    finish.set()
    waiting.join(10)
    assert not waiting.is_alive()
    assert backlog.flush(10)
    assert done == ["first", "second", "third"]


def test_a_task_that_is_cancelled_before_it_has_begun_leaves_its_work_to_others() -> None:
    done: list[str] = []

    async def awork(job: str) -> Callable[[], None]:
        done.append(job)
        return nothing

    backlog: Backlog[str] = Backlog(done.append, awork, 1, "block", 1)

    async def one() -> None:
        await backlog.aput("first", asyncio.get_running_loop())
        waiting.start()
        while not backlog._for_room:
            time.sleep(0.001)  # the loop has no chance to begin the task, and ends

    async def another() -> None:
        await backlog.aput("second", asyncio.get_running_loop())
        await backlog.aflush(10)

    waiting = threading.Thread(target=lambda: asyncio.run(another()), daemon=True)
    asyncio.run(one())
    waiting.join(10)
    assert not waiting.is_alive()
    assert done == ["first", "second"]


@pytest.mark.parametrize("seed", range(5))
def test_threads_and_loops_at_a_time_lose_nothing(seed: int) -> None:
    dice = random.Random(seed)
    works = Works()
    backlog = works.backlog(limit=50, on_full="block", at_once=4)

    def in_thread(first: int) -> None:
        for at in range(first, first + 50):
            backlog.put(at)

    async def in_loop(first: int) -> None:
        for at in range(first, first + 50):
            await backlog.aput(at, asyncio.get_running_loop() if at % 3 else None)
            if dice.random() < 0.1:
                await asyncio.sleep(0)

    def loop_in_thread(first: int) -> None:
        asyncio.run(in_loop(first))

    workers = [
        threading.Thread(target=loop_in_thread if at % 2 else in_thread, args=(at * 50,))
        for at in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert backlog.flush(60)
    # What a loop had begun when it ended may be done twice, and must be done once.
    assert {*works.done} == {*range(400)}
    assert backlog.dropped == 0
    assert not backlog._open
