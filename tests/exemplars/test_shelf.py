"""Many at once on one shelf: what is told as kept stays, whoever takes away beside it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from demur import ExampleStore
from demur.errors import DemurError
from demur.exemplars import Candidate
from demur.exemplars.entries import candidate_key, keys_of, to_metadata, without
from demur.storage import Questions, question_id
from exemplars.conftest import Open
from support.exemplars import answers, contrary, interrupted, scorer
from support.vectors import Told

pytest.importorskip("chromadb")
pytest.importorskip("filelock")

TESTS = Path(__file__).parents[1]
NOW = "2026-11-22T10:00:00+00:00"


@pytest.mark.slow
def test_threads_add_and_look_up_at_once(anywhere: Open) -> None:
    store = anywhere()

    def use(thread: int) -> None:
        for at in range(3):
            question = f"{thread + 1} {at - 5} | {thread} {at}"
            store.add(question, ["a", question], [0, 1])
            store.add("0 1 | shared", [f"{thread} {at}"], [thread + at / 10])
            assert answers(store.get(question)) == [question, "a"]
            assert question not in {one.question for one in store.nearest(question, 5)}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(4)))
    assert len(store) == 13
    expected = [f"{thread} {at}" for thread in range(3, -1, -1) for at in range(2, -1, -1)]
    assert answers(anywhere().get("0 1 | shared")) == expected


def test_what_is_added_while_its_question_is_evicted_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, store: ExampleStore
) -> None:
    store.add("q", ["old"], [1])
    read, adding = Questions.read, threading.Event()

    def slow(self: Questions, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Another thread adds between this reading, which finds nothing left, and the deletion."""
        found = read(self, ids)
        evicts = threading.current_thread() is threading.main_thread()
        if evicts and not adding.is_set() and not keys_of(found[question_id("q")]):
            adding.set()
            time.sleep(0.3)
        return found

    monkeypatch.setattr(Questions, "read", slow)
    with ThreadPoolExecutor(1) as pool:

        def add() -> None:
            assert adding.wait(5)
            store.add("q", ["new"], [2])

        added = pool.submit(add)
        store.evict("q")
        added.result()
    assert answers(store.get("q")) == ["new"]


def test_what_another_process_deletes_beside_it_is_written_again(
    monkeypatch: pytest.MonkeyPatch, store: ExampleStore
) -> None:
    read, times = Questions.read, [0]

    def late(self: Questions, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        times[0] += 1
        if times[0] in until:
            self.delete(list(ids))
        return read(self, ids)

    monkeypatch.setattr(Questions, "read", late)
    until = range(3, 5)  # after what is read before: when what was written is read
    store.add("q", ["a"], [1])
    assert answers(store.get("q")) == ["a"]
    until = range(1000)
    with pytest.raises(
        DemurError, match=r"1 questions that were written to the collection .* gone"
    ):
        store.add("q", ["b"], [1])


def test_a_question_on_its_way_out_is_not_told(store: ExampleStore) -> None:
    """As another process leaves it between taking its candidates and the question itself."""
    store.add("1 0 | q", ["a"], [1])
    (entry,) = store.entries()
    id_ = question_id("1 0 | q")
    store._questions.amend({id_: without(row(store, id_), keys_of(row(store, id_)))})
    assert entry.best is not None
    assert store.get("1 0 | q") is None
    assert list(store.entries()) == []
    assert store.nearest("0 1 | r", 3) == []
    assert store.stats().questions == 0
    store.add("1 0 | q", ["b"], [1])
    assert [one.answer for one in store.nearest("0 1 | r", 3)] == ["b"]


def row(store: ExampleStore, id_: str) -> Mapping[str, Any]:
    return store._questions.read([id_])[id_]


def test_requests_take_no_time_by_the_number_of_answers(store: ExampleStore) -> None:
    """Chroma reads the names of all metadata that a collection ever had with every request."""
    for at in range(30):
        store.add(f"1 {at} | q", [f"{at} a", f"{at} b"], [1, 2])
    rows = store._questions.read(store._questions.all_ids()).values()
    assert {name for one in rows for name in one} == {"question", "candidates-1"}


def test_processes_write_under_names_of_their_own(tmp_path: Path) -> None:
    import chromadb

    shared = ExampleStore(client=chromadb.EphemeralClient(), embedding=Told(), collection="shared")
    shared.add("q", ["a"], [1])
    id_ = question_id("q")
    (mine,) = row(shared, id_).keys() - {"question"}
    other = to_metadata("q", {candidate_key("b"): Candidate("b", 2, "given", NOW)}, "w", {})
    shared._questions.amend({id_: other})
    assert answers(shared.add("q", ["c"], [3])) == ["c", "b", "a"]
    assert row(shared, id_).keys() == {"question", mine, "candidates-w"}
    assert shared.evict(answer="b") == 1
    assert row(shared, id_).keys() == {"question", mine}
    assert answers(shared.get("q")) == ["c", "a"]


@pytest.mark.slow
def test_a_rescore_elsewhere_in_the_middle_of_a_search_mixes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = ExampleStore(tmp_path, embedding=Told(), scorer=scorer())
    pairs = [["0.2 no", "0.8 yes"], ["0.1 bad"]]
    first.add_many([(f"1 {at} | q{at}", pairs[at % 2]) for at in range(30)])
    other = ExampleStore(tmp_path, embedding=Told(), scorer=scorer(contrary))
    reader = ExampleStore(tmp_path, embedding=Told())
    nearest, done = Questions.by_nearness, []

    def interrupted(self: Questions, *args: Any) -> Any:
        for at, one in enumerate(nearest(self, *args)):
            if at == 5 and self in (first._questions, reader._questions) and self not in done:
                done.append(self)
                other.rescore()  # before the search is widened
            yield one

    monkeypatch.setattr(Questions, "by_nearness", interrupted)
    found = reader.nearest("0 1 | q", 10, min_score=0.3)
    assert done == [reader._questions]
    assert [one.answer for one in found] == ["0.1 bad", "0.2 no"] * 5
    with pytest.raises(DemurError, match=r"call rescore\(\)"):
        first.nearest("0 1 | q", 10, min_score=0.3)
    for one in (first, other, reader):
        one.close()


def test_while_nothing_is_scored_anew_reading_asks_once_a_part_whose_scores_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    by_hand = ExampleStore(tmp_path, embedding=Told())
    by_hand.add_many([(f"1 {at} | q{at}", ["a"], [at]) for at in range(450)])
    store = ExampleStore(tmp_path, embedding=Told(), scorer=scorer())
    with pytest.raises(KeyboardInterrupt):
        store.rescore(progress=interrupted)
    metadata, asked = Questions.metadata, []

    def counted(self: Questions) -> Mapping[str, str]:
        asked.append(self)
        return metadata(self)

    monkeypatch.setattr(Questions, "metadata", counted)
    assert store.stats().without_best == 450
    assert len(asked) <= 3
    assert store.nearest("0 1 | q", 5) == []
    assert len(asked) <= 4
    by_hand.close()
    store.close()


# --- Processes ------------------------------------------------------------------------------------

ADDING = """
import math
import sys
from demur import ExampleStore
from support.exemplars import scorer
from support.vectors import Told

path, name, who, start, count = sys.argv[1:]
kept = ExampleStore(path, collection=name, embedding=Told(), scorer=scorer())
print("open", flush=True)
for at in range(int(start), int(start) + int(count)):
    # Apart from each other: of vectors that are nearly equal Chroma's index may reach but one.
    question = f"{math.cos(2.4 * at):.4f} {math.sin(2.4 * at):.4f} | question {at}"
    kept.add(question, [f"0.5 by {who}", f"0.7 by {who} too"])
    kept.add("0 1 | shared", [f"0.{at} by {who}"])
    print(question, flush=True)
"""


def adding(path: object, name: str, who: str, start: int, count: int) -> subprocess.Popen[str]:
    """Another process that adds questions, and tells of each when it is kept."""
    command = [sys.executable, "-c", ADDING, str(path), name, who, str(start), str(count)]
    paths = {"PYTHONPATH": ":".join([str(TESTS), *filter(None, sys.path)])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=paths)


@pytest.mark.slow
def test_processes_that_write_to_the_same_questions_on_one_server_lose_nothing(server: str) -> None:
    """Nor does who reads and evicts beside them."""
    store = ExampleStore(server, collection="writers", embedding=Told(), scorer=scorer())
    writers = {who: adding(server, "writers", who, 100, 10) for who in ("ada", "bo")}
    while any(one.poll() is None for one in writers.values()):
        for entry in store.entries():
            assert entry.best is not None
        store.nearest("-1 0 | q", 5)
        store.evict(answer="0.5 by ada")
    told = {who: one.communicate()[0].splitlines()[1:] for who, one in writers.items()}
    assert [one.returncode for one in writers.values()] == [0, 0]
    assert [len(lines) for lines in told.values()] == [10, 10]
    store.evict(answer="0.5 by ada")
    assert len(store) == 11
    for question in told["ada"]:
        left = {"0.7 by ada too", "0.5 by bo", "0.7 by bo too"}
        assert set(answers(store.get(question))) == left
    shared = {f"0.{at} by {who}" for at in range(100, 110) for who in writers}
    assert set(answers(store.get("0 1 | shared"))) == shared
    assert store.stats().stale == 0
    assert len(store.nearest("-1 0 | q", 99)) == 11


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
@pytest.mark.parametrize("served", [False, True], ids=["folder", "server"])
def test_a_kill_loses_nothing_that_was_told_as_kept(
    served: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue("server") if served else tmp_path
    process = adding(path, "killed", "ada", 1, 1000)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    told = [process.stdout.readline().strip() for _ in range(5)]
    time.sleep(random.uniform(0, 0.03))  # somewhere in the next one
    process.kill()
    rest = process.communicate()[0].splitlines(keepends=True)
    assert process.returncode == -signal.SIGKILL
    told += [line.strip() for line in rest if line.endswith("\n")]
    graded = scorer()
    store = ExampleStore(path, collection="killed", embedding=Told(), scorer=graded)
    found = {entry.question: entry for entry in store.entries()}
    assert found.keys() >= {*told, "0 1 | shared"}
    for question in told:
        assert answers(found[question]) == ["0.7 by ada too", "0.5 by ada"]
    assert {one.question for one in store.nearest("-1 0 | q", 9999)} == found.keys()
    # Whoever goes on scores what is missing, and nothing else.
    store.add_many([(question, ["0.5 by ada", "0.7 by ada too"]) for question in told])
    assert graded.similarity.asked == 0
    store.close()
