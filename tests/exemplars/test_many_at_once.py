"""Test many users of one store at once: what is reported as kept stays, whatever others remove."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from demur import ExampleStore
from demur.errors import DemurError
from demur.evaluators import Fitted
from exemplars.conftest import Open
from support.exemplars import answers, contrary, scored, scorer, stale
from support.vectors import Told

pytest.importorskip("chromadb")
pytest.importorskip("filelock")

TESTS = Path(__file__).parents[1]


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


@pytest.mark.slow
def test_a_rescore_elsewhere_between_two_searches_mixes_nothing(tmp_path: Path) -> None:
    first = ExampleStore(tmp_path, embedding=Told(), scorer=scorer())
    pairs = [["0.2 no", "0.8 yes"], ["0.1 bad"]]
    first.add_many([(f"1 {at} | q{at}", pairs[at % 2]) for at in range(30)])
    reader = ExampleStore(tmp_path, embedding=Told())
    assert [one.answer for one in reader.nearest("0 1 | q", 4)] == ["0.1 bad", "0.8 yes"] * 2
    other = ExampleStore(tmp_path, embedding=Told(), scorer=scorer(contrary))
    other.rescore()
    found = reader.nearest("0 1 | q", 10, min_score=0.3)
    assert [one.answer for one in found] == ["0.1 bad", "0.2 no"] * 5
    with pytest.raises(DemurError, match=r"call rescore\(\)"):
        first.nearest("0 1 | q", 10, min_score=0.3)
    for one in (first, other, reader):
        one.close()


@pytest.mark.slow
def test_while_all_is_scored_anew_each_reads_scores_of_one_scorer(tmp_path: Path) -> None:
    first = ExampleStore(tmp_path, embedding=Told(), scorer=scorer())
    pairs = [["0.2 no", "0.8 yes"], ["0.1 bad"]]
    first.add_many([(f"1 {at} | q{at}", pairs[at % 2]) for at in range(30)])
    reader = ExampleStore(tmp_path, embedding=Told())
    other = ExampleStore(tmp_path, embedding=Told(), scorer=scorer(contrary))
    seen = set[float]()

    def read(now: Fitted) -> None:
        found = reader.nearest("0 1 | q", 10)
        told = [(one.answer, pytest.approx(one.score)) for one in found]
        old = all(one in [("0.8 yes", scored(0.8)), ("0.1 bad", scored(0.1))] for one in told)
        new = all(one in [("0.2 no", scored(0.8)), ("0.1 bad", scored(0.9))] for one in told)
        assert old or new, told
        seen.update(one.score for one in found)

    other.rescore(at_once=1, progress=read)
    # These are two scores of the first scorer, and one that only the other scorer gives.
    assert len(seen) == 3
    for one in (first, other, reader):
        one.close()


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
    """Start another process that adds questions and prints each when it is kept."""
    command = [sys.executable, "-c", ADDING, str(path), name, who, str(start), str(count)]
    paths = {"PYTHONPATH": ":".join([str(TESTS), *filter(None, sys.path)])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=paths)


@pytest.mark.slow
def test_processes_that_write_to_the_same_questions_on_one_server_lose_nothing(server: str) -> None:
    """Test the same with a reader and remover beside the writers."""
    store = ExampleStore(server, collection="writers", embedding=Told(), scorer=scorer())
    writers = {who: adding(server, "writers", who, 100, 10) for who in ("ada", "bo")}
    while any(one.poll() is None for one in writers.values()):
        for entry in store.entries():
            assert entry.best is not None
        store.nearest("-1 0 | q", 5)
        for question in [entry.question for entry in store.entries()]:
            store.remove(question, "0.5 by ada")
    told = {who: one.communicate()[0].splitlines()[1:] for who, one in writers.items()}
    assert [one.returncode for one in writers.values()] == [0, 0]
    assert [len(lines) for lines in told.values()] == [10, 10]
    for question in told["ada"]:
        store.remove(question, "0.5 by ada")
    assert len(store) == 11
    for question in told["ada"]:
        left = {"0.7 by ada too", "0.5 by bo", "0.7 by bo too"}
        assert set(answers(store.get(question))) == left
    shared = {f"0.{at} by {who}" for at in range(100, 110) for who in writers}
    assert set(answers(store.get("0 1 | shared"))) == shared
    assert stale(store) == 0
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
    time.sleep(random.uniform(0, 0.03))  # The kill comes somewhere in the next write.
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
    # A process that goes on scores only what is missing.
    store.add_many([(question, ["0.5 by ada", "0.7 by ada too"]) for question in told])
    assert graded.similarity.asked == 0
    store.close()
