"""Test the store of exemplars on a real Chroma: in memory, a folder, a server, or by a client."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demur import ExampleStore
from demur.errors import DemurError
from demur.evaluators import NeighborStore
from demur.exemplars import Candidate
from exemplars.conftest import Open
from support.chroma_server import chroma_server
from support.exemplars import answers, scorer
from support.fakes import ScriptedModel
from support.fewl import QUESTION, model
from support.vectors import Told

pytest.importorskip("chromadb")
pytest.importorskip("filelock")

STRANGE = "1 1 | was heißt \u200d👩\u200d🚀 {x} {{ y }} {% if %} \x00 \ud800?"


# --- What is kept ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_added_is_read_again_with_lone_surrogates_replaced(anywhere: Open) -> None:
    long = "{long} " * 7200
    told = anywhere().add("1 0 | why?", ["because", "so"], [0.25, 1], source="by hand")
    anywhere().add("0 1 | how?", ["thus"], [-2])
    anywhere().add(STRANGE, [STRANGE, long, f"{long}!"], [3, 2, 1])
    again = anywhere()
    entry = again.get("1 0 | why?")
    assert entry == told
    (so, because) = told.candidates
    assert (told.best, told.stale, because.source) == (so, (), "by hand")
    assert so == Candidate("so", 1.0, "given", so.scored_at, "by hand", {})
    assert again.get("who?") is None
    expected = STRANGE.replace("\ud800", "\ufffd")
    assert answers(again.get(STRANGE)) == [expected, long, f"{long}!"]
    assert len(again) == 3
    assert {one.question for one in again.entries()} == {"1 0 | why?", "0 1 | how?", expected}
    near = again.nearest("2 1 | what?", 5)
    assert [(one.question, one.answer, one.score, one.similarity) for one in near] == [
        (expected, expected, 3.0, pytest.approx(3 / 10**0.5)),
        ("1 0 | why?", "so", 1.0, pytest.approx(2 / 5**0.5)),
        ("0 1 | how?", "thus", -2.0, pytest.approx(1 / 5**0.5)),
    ]


def test_the_same_twice_changes_nothing_and_a_new_candidate_competes(tmp_path: Path) -> None:
    asked = model()
    given = scorer(reference_models=asked)
    store = ExampleStore(tmp_path / "chroma", embedding=Told(), scorer=given)
    first = store.add(QUESTION, ["0.2 no", "0.8 yes"], source="run 1")
    assert answers(first) == ["0.8 yes", "0.2 no"]
    assert store.scorers() == {first.candidates[0].scorer: given.fingerprints}
    store.export(tmp_path / "first")
    assert store.add(QUESTION, ["0.8 yes", "0.2 no"], source="run 2") == first
    assert store.add(f" {QUESTION}\n", ["0.8 yes", "0.2 no"]).all == first.all
    store.add(QUESTION, ["0.8 yes"], [first.candidates[0].score])
    assert store.get(QUESTION) == first
    store.export(tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == (tmp_path / "first").read_bytes()
    assert (given.similarity.asked, asked.stages) == (4, ["reference"])
    store.add(QUESTION, ["0.8 yes", "0.9 surely"], source="later")
    assert given.similarity.asked == 6
    store.add(QUESTION, ["0.1 never"])
    entry = store.get(QUESTION)
    assert answers(entry) == ["0.9 surely", "0.8 yes", "0.2 no", "0.1 never"]
    assert entry is not None
    assert [one.source for one in entry.candidates] == ["later", "run 1", "run 1", None]
    assert [one.answer for one in store.nearest("0 1 | q", 9)] == ["0.9 surely"]
    store.close()


def test_a_score_that_is_given_anew_replaces_the_old_one(store: ExampleStore) -> None:
    store.add("q", ["a", "b"], [1, 2], source="first")
    store.add("q", ["a"], [3], source="second")
    entry = store.get("q")
    assert entry is not None
    assert [(one.answer, one.score, one.source) for one in entry.candidates] == [
        ("a", 3.0, "second"),
        ("b", 2.0, "first"),
    ]


def test_what_cannot_be_kept_is_refused_and_nothing_written(store: ExampleStore) -> None:
    with pytest.raises(ValueError, match=r"^add: expected answers to 'q' that say something"):
        store.add("q", ["a", " "], [1, 2])
    with pytest.raises(ValueError, match=r"^add: expected 1 finite numbers, one per answer"):
        store.add("q", ["a"], [float("nan")])
    with pytest.raises(DemurError, match="there is no scorer for the answers to 'q'"):
        store.add("q", ["a"])
    assert (len(store), list(store.entries())) == (0, [])


# --- Near -----------------------------------------------------------------------------------------


def test_the_question_itself_and_what_is_written_otherwise_only_are_not_told(
    store: ExampleStore,
) -> None:
    assert store.nearest("1 0 | who lit it?", 5) == []
    same = ["1 0 | Who lit it?", "1 0 | who lit it", "1 0 | WHO LIT IT!", "1  0 | who lit it?"]
    for question in [*same, "1 1 | who else?", "1 1 | Who else?!", "0 1 | nobody"]:
        store.add(question, ["a"], [1])
    found = [one.question for one in store.nearest("1 0 | who lit it?", 9)]
    assert found[0] in ("1 1 | who else?", "1 1 | Who else?!")
    assert found[1:] == ["0 1 | nobody"]
    with pytest.raises(ValueError, match="expected a question, got ' '"):
        store.nearest(" ", 5)
    with pytest.raises(ValueError, match="k must be an integer, at least 1, got 0"):
        store.nearest("q", 0)


@pytest.mark.slow
def test_limits_hold_and_the_search_is_widened_until_enough_fit(store: ExampleStore) -> None:
    offers = [(f"1 {at / 700} | q{at}", ["a"], [float(at % 100 == 99)]) for at in range(700)]
    store.add_many(offers)
    found = store.nearest("1 0 | q", 5, min_score=1)
    assert [one.question.split()[-1] for one in found] == ["q99", "q199", "q299", "q399", "q499"]
    assert len(store.nearest("1 0 | q", 99, min_score=1)) == 7
    assert store.nearest("1 0 | q", 5, min_score=1.5) == []
    # cos(1, 0.5) is 0.894; the results are the nearest below it.
    below = store.nearest("1 0 | q", 3, max_similarity=0.8944)
    assert [one.question.split()[-1] for one in below] == ["q351", "q352", "q353"]
    assert len(store.nearest("1 0 | q", 699)) == 699
    both = store.nearest("1 0 | q", 5, max_similarity=0.8944, min_score=1)
    assert [one.question.split()[-1] for one in both] == ["q399", "q499", "q599", "q699"]


# --- Taking away ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_removed_is_gone_for_all_and_can_be_added_again(anywhere: Open) -> None:
    anywhere().add_many([("1 0 | p", ["a", "b"], [1, 3]), ("0 1 | q", ["a"], [2])])
    other = anywhere()
    assert len(list(other.entries())) == 2

    def left() -> dict[str, list[str]]:
        return {entry.question: answers(entry) for entry in other.entries()}

    assert anywhere().remove("1 0 | p", "b") == 1
    assert anywhere().remove(" 0 1 |  q ") == 1
    assert left() == {"1 0 | p": ["a"]}
    assert (len(other), [one.answer for one in other.nearest("1 1 | r", 9)]) == (1, ["a"])
    assert other.remove("1 0 | p", "unknown") == other.remove("0 1 | unknown") == 0
    # The store has as many questions as before, but others.
    anywhere().add("0 1 | new", ["a"], [1])
    assert left() == {"1 0 | p": ["a"], "0 1 | new": ["a"]}
    anywhere().add("0 1 | q", ["b"], [1])
    assert left() == {"1 0 | p": ["a"], "0 1 | new": ["a"], "0 1 | q": ["b"]}


# --- Places ---------------------------------------------------------------------------------------


def test_stores_in_memory_are_private_and_gone_with_their_object() -> None:
    import chromadb

    def names() -> set[str]:
        return {one.name for one in chromadb.EphemeralClient().list_collections()}

    gc.collect()
    before = names()
    first, second = ExampleStore(embedding=Told()), ExampleStore(embedding=Told())
    first.add("1 0 | q", ["a"], [1])
    assert (len(first), len(second)) == (1, 0)
    assert len(names() - before) == 2
    del first
    gc.collect()
    assert len(names() - before) == 1


def test_a_vector_is_computed_once() -> None:
    told = Told()
    store = ExampleStore(embedding=told)
    store.nearest("1 0 | q", 3)
    store.add("1 0 | q", ["a"], [1])
    store.add("1 0 | q", ["b"], [2])
    assert told.texts == ["1 0 | q"]


def test_equally_near_questions_come_in_the_order_of_their_ids(store: ExampleStore) -> None:
    questions = [f"{length} 0 | q{length}" for length in range(1, 9)]
    for question in questions:  # all have the same direction
        store.add(question, ["a"], [1])
    ids = [one.id for one in store.nearest("9 0 | asked", 8)]
    assert len(ids) == 8
    assert ids == sorted(ids)


def test_another_embedding_model_and_another_kind_are_refused(tmp_path: Path) -> None:
    ExampleStore(tmp_path, embedding=Told("one")).close()
    with pytest.raises(ValueError, match="made with another embedding model: one, and this one is"):
        ExampleStore(tmp_path, embedding=Told("two"))
    with pytest.raises(ValueError, match=r"holds something else \(exemplars-2, where fewl-neighbo"):
        NeighborStore(tmp_path, collection="exemplars", embedding=Told("one"))
    beside = ExampleStore(tmp_path, collection="another", embedding=Told("two"))
    assert len(beside) == 0
    beside.close()


def says(stage: str, messages: Any) -> str:
    return "1. One.\n2. Two."


def test_a_store_of_a_folder_is_pickled_with_its_scorer_and_one_in_memory_not(
    tmp_path: Path, store: ExampleStore
) -> None:
    given = scorer(reference_models=ScriptedModel(script=says), neighbors=None)
    first = ExampleStore(tmp_path, collection="pickled", embedding=Told(), scorer=given)
    first.add(QUESTION, ["0.2 no"])
    again = pickle.loads(pickle.dumps(first))
    assert repr(again) == repr(first)
    assert answers(again.add(QUESTION, ["0.8 yes"])) == ["0.8 yes"]
    assert answers(first.get(QUESTION)) == ["0.8 yes", "0.2 no"]
    first.close()
    again.close()
    with pytest.raises(TypeError, match="cannot be pickled, since it lives in this process"):
        pickle.dumps(store)


@pytest.mark.slow
def test_a_server_that_went_away_is_told(tmp_path: Path) -> None:
    with chroma_server(tmp_path / "data") as url:
        store = ExampleStore(url, embedding=Told(), scorer=scorer())
        store.add(QUESTION, ["0.5 yes"])
    uses: list[Callable[[], object]] = [
        lambda: store.get(QUESTION),
        lambda: store.nearest("0 1 | q", 1),
        lambda: store.add(QUESTION, ["0.6"]),
        lambda: store.add_many([(QUESTION, ["0.6"])]),
        lambda: store.rescore(),
    ]
    for use in uses:
        with pytest.raises(DemurError, match=f"Chroma in {url} cannot be used"):
            use()


@pytest.mark.parametrize("vectors", [[], [[1.0, float("nan")]], [[1.0], [2.0]]], ids=str)
def test_vectors_that_are_none_are_refused(vectors: Any) -> None:
    told = Told()
    told.embed_documents = lambda texts: vectors  # type: ignore[method-assign]  # of this object only
    store = ExampleStore(embedding=told)
    with pytest.raises(ValueError, match="expected a vector of finite numbers for each of 1"):
        store.add("q", ["a"], [1])
    assert len(store) == 0
