"""Test the store of neighbours on a real Chroma: in memory, in a folder, on a server."""

from __future__ import annotations

import gc
import math
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demur.evaluators import NeighborStore, Pairs
from demur.evaluators.fewl.drafts import Draft
from demur.evaluators.fewl.neighbors import KnownQuestion, Neighbor
from support.vectors import Told

pytest.importorskip("chromadb")
pytest.importorskip("filelock")

PAIRS = Pairs((("a dog", "a cat"), ("two", "three")), same=1, repeated=2, incomplete=3)
STRANGE = "1 1 | was heißt \u200d👩\u200d🚀 {x} \x00 \ud800?"


@pytest.fixture
def store() -> NeighborStore:
    return NeighborStore(embedding=Told())


def fill(store: NeighborStore, questions: list[str]) -> None:
    store.add_many([KnownQuestion(question, (f"of {question}",)) for question in questions])


def names(found: list[Neighbor]) -> list[str]:
    return [one.question for one in found]


# --- What is kept ---------------------------------------------------------------------------------


def test_what_is_added_is_read_again(anywhere: Callable[[], NeighborStore]) -> None:
    anywhere().add("1 0 | why?", ["because", ""], PAIRS, [0.25, -1])
    anywhere().add("0 1 | how?", ["so"])
    again = anywhere()
    assert again.get("1 0 | why?") == KnownQuestion(
        "1 0 | why?", ("because", ""), PAIRS, (0.25, -1.0)
    )
    assert again.get("0 1 | how?") == KnownQuestion("0 1 | how?", ("so",))
    assert again.get("who?") is None
    assert again.get_many(["who?", "0 1 | how?", "who?"])[1:] == [again.get("0 1 | how?"), None]
    assert (len(again), sorted(again.questions())) == (2, ["0 1 | how?", "1 0 | why?"])
    assert again.nearest("2 1 | what?", 5, 1.0) == [
        Neighbor("1 0 | why?", ("because", ""), pytest.approx(2 / 5**0.5)),
        Neighbor("0 1 | how?", ("so",), pytest.approx(1 / 5**0.5)),
    ]


def test_strange_texts_come_back_with_lone_surrogates_replaced(
    anywhere: Callable[[], NeighborStore],
) -> None:
    anywhere().add(STRANGE, [STRANGE, "x" * 50_000], Pairs(((STRANGE, "b"),)))
    expected = STRANGE.replace("\ud800", "\ufffd")
    assert anywhere().get(STRANGE) == KnownQuestion(
        expected, (expected, "x" * 50_000), Pairs(((expected, "b"),))
    )
    assert names(anywhere().nearest("0 1 | q", 3, 0.8)) == [expected]


def test_a_later_add_keeps_pairs_and_agreement_of_the_same_answers_only(
    store: NeighborStore,
) -> None:
    store.add("1 0 | q", ["a", "b"], PAIRS)
    store.add("1 0 | q", ["a", "b"], agreement=[0, 1])
    store.add("1 0 | q", ["a", "b"])
    assert store.get("1 0 | q") == KnownQuestion("1 0 | q", ("a", "b"), PAIRS, (0, 1))
    store.add("1 0 | q", ["a", "c"])
    assert store.get("1 0 | q") == KnownQuestion("1 0 | q", ("a", "c"))
    store.add("1 0 | q", ["a", "c"], Pairs(same=4))
    assert store.get("1 0 | q") == KnownQuestion("1 0 | q", ("a", "c"), Pairs(same=4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((" \n", ["a"]), "expected a question, got ' "),
        (("q", []), r"expected one answer per reference, as text, for 'q'; got \(\)"),
        (("q", "because"), "expected a list of answers, one per reference, got 'because'"),
        (("q", ["a", "b"], None, [1.0]), "expected 2 finite numbers, one per answer to 'q'"),
        (("q", ["a"], None, [float("nan")]), "expected 1 finite numbers"),
    ],
    ids=["question", "none", "text", "too few", "nan"],
)
def test_what_cannot_be_kept_is_refused(
    store: NeighborStore, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        store.add(*arguments)
    assert len(store) == 0


# --- Vectors --------------------------------------------------------------------------------------


def test_a_vector_is_computed_once_and_of_a_known_question_not_again(tmp_path: Path) -> None:
    told = Told()
    store = NeighborStore(tmp_path, embedding=told)
    store.nearest("1 0 | q", 3, 0.8)
    store.add("1 0 | q", ["a"])
    store.add("1 0 | q", ["a"], PAIRS)
    store.random("1 0 | q", 3, 0.8)
    assert told.texts == ["1 0 | q"]
    store.close()
    again = Told()
    store = NeighborStore(tmp_path, embedding=again)
    store.add("1 0 | q", ["b"])
    store.nearest_many(["1 0 | q", "0 1 | r"], 3, 0.8)
    assert again.texts == ["0 1 | r"]
    store.close()


# --- Neighbours -----------------------------------------------------------------------------------


def test_paraphrases_and_the_question_itself_are_no_neighbours(store: NeighborStore) -> None:
    fill(store, ["1 0 | q", *(f"1 0.{at:03} | same" for at in range(60)), "1 2 | a", "0 1 | b"])
    found = store.nearest("1 0 | q", 2, 0.8)
    assert found == [
        Neighbor("1 2 | a", ("of 1 2 | a",), pytest.approx(1 / 5**0.5)),
        Neighbor("0 1 | b", ("of 0 1 | b",), pytest.approx(0)),
    ]
    assert sorted(names(store.random("1 0 | q", 2, 0.8))) == ["0 1 | b", "1 2 | a"]
    assert store.nearest("1 0 | q", 1, 0.8) == found[:1]


def test_many_at_once_are_as_one_by_one(store: NeighborStore) -> None:
    questions = [f"{at % 7} {at % 11 - 5} | {at}" for at in range(1, 30)]
    fill(store, questions)
    asked = [*questions[:10], "3 1 | new", questions[0]]
    together = store.nearest_many(asked, 5, 0.9)
    assert together == [store.nearest(question, 5, 0.9) for question in asked]
    assert store.nearest_many([], 5, 0.9) == []


def test_random_ones_depend_on_question_and_content_alone() -> None:
    questions = [f"{at} {90 - at} | {at}" for at in range(1, 90)]
    first, second = NeighborStore(embedding=Told()), NeighborStore(embedding=Told())
    fill(first, questions)
    for question in reversed(questions):
        second.add(question, [f"of {question}"])
    found = first.random("1 0 | q", 10, 0.7)
    again = second.random("1 0 | q", 10, 0.7)
    assert names(found) == names(again)
    assert len(set(names(found))) == 10
    assert all(one.similarity < 0.7 for one in found)
    assert names(first.random("1 0 | r", 10, 0.7)) != names(found)


# --- Whose answers --------------------------------------------------------------------------------


def test_the_first_binding_decides_and_others_are_refused(store: NeighborStore) -> None:
    store.add("1 0 | by hand", ["a"])
    assert store.binding() == {}
    store.bind("two models", "prompts-1")
    store.bind("two models", "prompts-1")
    with pytest.raises(ValueError, match="reference models was 'two models' and is"):
        store.bind("three models", "prompts-1")
    with pytest.raises(ValueError, match=r"prompts was prompts-1 and is prompts-2.* give another"):
        store.bind("two models", "prompts-2")
    assert store.binding() == {"reference_models": "two models", "prompts": "prompts-1"}
    assert store.get("1 0 | by hand") is not None


def test_another_embedding_model_is_refused(tmp_path: Path) -> None:
    NeighborStore(tmp_path, embedding=Told("one")).close()
    with pytest.raises(ValueError, match="made with another embedding model: one, and this one is"):
        NeighborStore(tmp_path, embedding=Told("two"))
    beside = NeighborStore(tmp_path, collection="another", embedding=Told("two"))
    assert len(beside) == 0
    beside.close()


# --- Places ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_stores_in_memory_are_private_and_gone_with_their_object() -> None:
    import chromadb

    def held() -> set[str]:
        return {one.name for one in chromadb.EphemeralClient().list_collections()}

    second, before = NeighborStore(embedding=Told()), held()
    first = NeighborStore(embedding=Told())
    first.add("1 0 | q", ["a"])
    assert (len(first), len(second)) == (1, 0)
    first.drafts.keep("1 0 | q", Draft({0: ("a",)}))
    made = held() - before
    assert len(made) == 2
    del first
    gc.collect()
    assert not made & held()


def test_a_client_of_the_users_own() -> None:
    import chromadb

    client = chromadb.EphemeralClient()
    NeighborStore(client=client, collection="of-the-user", embedding=Told()).add("1 0 | q", ["a"])
    assert len(NeighborStore(client=client, collection="of-the-user", embedding=Told())) == 1
    with pytest.raises(ValueError, match="path and client both say where the store is"):
        NeighborStore("somewhere", client=client)


def test_a_store_of_a_folder_is_pickled_and_one_in_memory_not(
    tmp_path: Path, store: NeighborStore
) -> None:
    first = NeighborStore(tmp_path, embedding=Told())
    first.add("1 0 | q", ["a"])
    again = pickle.loads(pickle.dumps(first))
    assert again.get("1 0 | q") == KnownQuestion("1 0 | q", ("a",))
    assert repr(again) == repr(first)
    first.close()
    again.close()
    with pytest.raises(TypeError, match="cannot be pickled, since it lives in this process"):
        pickle.dumps(store)


# --- Many at once, and kills ----------------------------------------------------------------------


ADDING = """
import itertools
import math
import sys
from itertools import islice
from demur.evaluators.fewl.neighbors import NeighborStore
from demur.evaluators.fewl.parsing import Pairs
from support.vectors import Told

path, name, start, count, shared = sys.argv[1:]
store = NeighborStore(path, collection=name, embedding=Told())
print("open", flush=True)
for at in islice(itertools.count(int(start)), int(count) or None):
    # Apart from each other: of vectors that are nearly equal Chroma's index may reach but one.
    question = f"{math.cos(2.4 * at):.4f} {math.sin(2.4 * at):.4f} | question {at}"
    store.add(question, [f"answer to {question}"])
    store.add(shared, ["one", "two"], Pairs(same=at) if at % 2 else None)
    print(question, flush=True)
"""


def adding(path: object, name: str, start: int, count: int = 0) -> subprocess.Popen[str]:
    """Start another process that adds questions, for ever by default, and prints each if kept."""
    command = [sys.executable, "-c", ADDING, str(path), name, str(start), str(count), "0 1 | both"]
    paths = {"PYTHONPATH": ":".join(entry for entry in sys.path if entry)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=paths)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


@pytest.mark.slow
def test_processes_on_one_server_lose_nothing(chroma: str) -> None:
    store = NeighborStore(chroma, collection="writers", embedding=Told())
    writer = adding(chroma, "writers", 100, 8)
    ours = [f"{math.cos(at):.4f} {math.sin(at):.4f} | ours" for at in range(8)]
    for question in ours:
        store.add(question, ["a"])
        store.add("0 1 | both", ["one", "two"])
    told = [line.strip() for line in writer.communicate()[0].splitlines()]
    assert (writer.returncode, len(told)) == (0, 8)
    again = pickle.loads(pickle.dumps(store))
    assert sorted(again.questions()) == sorted([*told, *ours, "0 1 | both"])
    both = again.get("0 1 | both")
    assert both is not None
    assert both.answers == ("one", "two")
    # The other process wrote them, and later writes without pairs did not remove them.
    assert both.pairs is not None
    assert len(again.nearest("-1 0 | q", 200, 1.0)) == 17


@pytest.mark.smoke
@pytest.mark.slow
def test_a_kill_loses_nothing_that_was_told_as_kept(tmp_path: Path) -> None:
    process = adding(tmp_path, "killed", 1)
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(7)]
    process.kill()  # It comes somewhere in the writes, which have no end.
    rest = process.communicate()[0].splitlines(keepends=True)
    assert process.returncode == -signal.SIGKILL
    told += [line.strip() for line in rest if line.endswith("\n")]
    store = NeighborStore(tmp_path, collection="killed", embedding=Told())
    found = set(store.questions())
    assert found >= {*told, "0 1 | both"}
    for question, one in zip(told, store.get_many(told), strict=True):
        assert one == KnownQuestion(question, (f"answer to {question}",))
    assert {*names(store.nearest("-1 0 | q", len(found) + 9, 1.0))} == found
    store.close()


# --- Files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kept.jsonl", "kept.jsonl.gz"])
def test_a_file_holds_all_of_a_store(name: str, tmp_path: Path, store: NeighborStore) -> None:
    store.add(STRANGE, ["a\u2028b", ""], PAIRS, [1, 2])
    fill(store, [f"{at} 1 | q" for at in range(1, 20)])
    store.bind("two models", "prompts-1")
    store.export(tmp_path / name)
    again = NeighborStore(embedding=Told("another"))
    assert again.load(str(tmp_path / name)) == 20
    assert list(again.entries()) == list(store.entries())
    assert again.binding() == store.binding()
    again.export(tmp_path / f"again-{name}")
    assert (tmp_path / f"again-{name}").read_bytes() == (tmp_path / name).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"again-{name}", name]
    (first, *_) = store.questions()
    again.add(first, ["changed"])
    again.load(tmp_path / name)
    assert list(again.entries()) == list(store.entries())


def test_a_file_of_others_is_refused_and_one_of_nobody_not(
    tmp_path: Path, store: NeighborStore
) -> None:
    fill(store, ["1 0 | q"])
    store.export(tmp_path / "nobody.jsonl")
    store.bind("two models", "prompts-1")
    store.export(tmp_path / "two.jsonl")
    other = NeighborStore(embedding=Told())
    other.bind("three models", "prompts-1")
    with pytest.raises(ValueError, match="reference models was 'three models' and is"):
        other.load(tmp_path / "two.jsonl")
    assert len(other) == 0
    assert other.load(tmp_path / "nobody.jsonl") == 1


HEAD = '{"kind": "fewl-neighbors-1"}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "other"}\n', "holds no exported neighbours"),
        ("hello\n", "is damaged at line 1"),
        (HEAD + '{"question": "q", "answers": ["a"]}\n{"ques', "is damaged at line 3"),
        (HEAD + '{"question": "q"}\n', "line 2: .*answers"),
    ],
    ids=["kind", "text", "cut", "lacking"],
)
def test_a_damaged_file_is_told_with_its_line(
    text: str, message: str, tmp_path: Path, store: NeighborStore
) -> None:
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(ValueError, match=rf"(?s)x\.jsonl.*{message}"):
        store.load(tmp_path / "x.jsonl")
