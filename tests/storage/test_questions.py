"""A collection of questions in Chroma: what is said of it and of each, and what is near."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.errors import DemurError
from demur.storage import Questions, question_id
from support.vectors import Told

pytest.importorskip("chromadb")


def made(path: Path | None = None, name: str = "questions") -> Questions:
    return Questions(path, None, name, Told(), "test-1", "a test")


@pytest.fixture
def questions() -> Questions:
    return made()


def write(questions: Questions, rows: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Write rows by their question, and give the ids."""
    texts = {question_id(text): text for text in rows}
    questions.write({id_: rows[text] for id_, text in texts.items()}, texts)
    return list(texts)


ROW = {"said": "x"}


# --- What a question is known by ------------------------------------------------------------------


@given(st.text(), st.sampled_from([" ", "\n", "\t \u00a0"]))
def test_a_question_is_known_whatever_its_white_space(text: str, space: str) -> None:
    parts = text.split()
    assert question_id(space.join(["", *parts, ""])) == question_id(" ".join(parts))
    assert question_id(text) == question_id(text.replace("\ud800", "\ufffd"))
    assert question_id(f"{text}x") != question_id(f"{text}y")


def test_a_question_is_known_in_every_form_but_not_in_another_case() -> None:
    assert question_id("Ren\u00e9e?") == question_id("Rene\u0301e?")
    assert question_id("Ren\u00e9e?") != question_id("ren\u00e9e?")
    assert question_id("a b") != question_id("ab")


# --- What is said of each -------------------------------------------------------------------------


def test_rows_are_written_beside_each_other_and_taken_away(questions: Questions) -> None:
    one, other = write(questions, {"1 0 | p": {"a": "1", "b": "2"}, "0 1 | q": {"a": "3"}})
    write(questions, {"1 0 | p": {"b": "4", "c": "5"}})
    assert questions.read([one, other, "none"]) == {
        one: {"a": "1", "b": "4", "c": "5"},
        other: {"a": "3"},
    }
    gone = dict.fromkeys(["a", "c", "not there"])
    questions.amend({one: {**gone, "b": "5"}, other: {"a": None}, "none": {"a": "6"}})
    assert questions.read([one, other, "none"]) == {one: {"b": "5"}, other: {}}
    assert len(questions) == 2
    questions.amend({one: {}})
    questions.delete([one, "none"])
    questions.delete([])
    assert questions.read([one, other]) == {other: {}}
    assert questions.all_ids() == [other]


def test_more_are_read_and_written_than_one_request_takes(questions: Questions) -> None:
    ids = write(questions, {f"1 {at} | {at}": {"at": str(at)} for at in range(450)})
    assert {row["at"] for row in questions.read(ids).values()} == set(map(str, range(450)))
    assert questions.all_ids() == questions.ids().tolist() == sorted(ids)
    assert questions.stored_vectors(ids[:3]).keys() == set(ids[:3])
    questions.amend({id_: {"at": None} for id_ in ids[:300]})
    assert sum(row == {} for row in questions.read(ids).values()) == 300
    questions.delete(ids[:300])
    assert questions.all_ids() == sorted(ids[300:])


def test_all_ids_are_those_that_are_there_now(tmp_path: Path) -> None:
    first, second = made(tmp_path), made(tmp_path)
    (one,) = write(first, {"1 0 | p": ROW})
    assert first.all_ids() == second.all_ids() == [one]
    (other,) = write(second, {"0 1 | q": ROW})
    second.delete([one])
    assert first.all_ids() == [other]  # as many as before
    first.chroma.close()
    second.chroma.close()


# --- What is said of the whole --------------------------------------------------------------------


def test_the_first_claim_decides(tmp_path: Path) -> None:
    first, second = made(tmp_path), made(tmp_path)
    before = first.metadata()
    assert first.claim({"who": "one", "how": "so"}) == {**before, "who": "one", "how": "so"}
    assert second.claim({"who": "two"})["who"] == "one"
    assert second.claim({"who": "two", "more": "x"}) == first.metadata()
    second.say({"who": "two"})
    assert first.metadata() == {**before, "who": "two", "how": "so"}
    first.chroma.close()
    second.chroma.close()


def test_of_threads_that_claim_at_once_one_decides(questions: Questions) -> None:
    start = threading.Barrier(6)

    def claim(who: int) -> str:
        start.wait()
        return questions.claim({"who": str(who)})["who"]

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(claim, range(6)))) == 1


# --- Likeness -------------------------------------------------------------------------------------


@pytest.fixture
def counted(questions: Questions, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The searches that are made."""
    made: list[dict[str, Any]] = []
    query = questions.collection.query

    def told(**options: Any) -> Any:
        made.append(options)
        return query(**options)

    monkeypatch.setattr(questions.collection, "query", told)
    return made


VECTORS = st.lists(
    st.tuples(st.integers(-5, 5), st.integers(-5, 5)).filter(any), min_size=0, max_size=40
)


@settings(max_examples=25)  # each fills a collection
@given(VECTORS, st.integers(1, 12))
def test_all_come_from_the_nearest_on_as_by_brute_force(
    vectors: list[tuple[int, int]], first: int
) -> None:
    questions = made()
    rows = {f"{x} {y} | {at}": {"at": str(at)} for at, (x, y) in enumerate(vectors)}
    ids = write(questions, rows)
    asked = np.array([3.0, 1.0], np.float32)
    found = list(questions.by_nearness(asked, first))
    cosines = {
        id_: (3 * x + y) / (np.hypot(3, 1) * np.hypot(x, y))
        for id_, (x, y) in zip(ids, vectors, strict=True)
    }
    assert {id_: dict(row) for id_, _, row in found} == dict(zip(ids, rows.values(), strict=True))
    assert len(found) == len(ids)
    for id_, cosine, _ in found:
        assert cosine == pytest.approx(cosines[id_], abs=1e-5)
    told = [cosine for _, cosine, _ in found]
    assert told == sorted(told, reverse=True)


def test_who_stops_early_pays_for_no_more(
    questions: Questions, counted: list[dict[str, Any]]
) -> None:
    write(questions, {f"1 {at / 100} | {at}": {"at": str(at)} for at in range(300)})
    asked = np.array([1, 0], np.float32)

    def take(count: int) -> list[str]:
        return [row["at"] for _, _, row in islice(questions.by_nearness(asked, 10), count)]

    for count, widths in [
        (10, [11]),
        (11, [11, 44]),
        (100, [11, 44, 176]),
        (500, [11, 44, 176, 704]),
    ]:
        counted.clear()
        assert take(count) == list(map(str, range(min(count, 300))))
        assert [options["n_results"] for options in counted] == widths
        # What a wide search finds is read as it is needed.
        assert ["metadatas" in options["include"] for options in counted] == [
            at == 0 for at in range(len(widths))
        ]


def test_equal_ones_come_in_one_order_wherever_a_request_ends() -> None:
    first, second = made(), made()
    texts = [f"1 {at // 7} | {at}" for at in range(70)]  # seven of each vector
    write(first, dict.fromkeys(texts, ROW))
    write(second, dict.fromkeys(reversed(texts), ROW))
    asked = np.array([1, 0], np.float32)
    whole = [id_ for id_, _, _ in first.by_nearness(asked, 70)]
    assert sorted(whole) == first.all_ids()
    for many in range(1, 30):
        for questions in (first, second):
            found = questions.by_nearness(asked, many)
            assert [id_ for id_, _, _ in islice(found, many)] == whole[:many]


def test_what_is_deleted_in_between_is_left_out(questions: Questions) -> None:
    ids = write(questions, {f"1 {at / 100} | {at}": ROW for at in range(60)})
    found = questions.by_nearness(np.array([1, 0], np.float32), 5)
    near = [next(found)[0] for _ in range(5)]
    read = questions.read
    questions.read = lambda wanted: read([id_ for id_ in wanted if id_ != ids[30]])  # type: ignore[method-assign]  # of this object only
    near += [id_ for id_, _, _ in found]
    assert near == [id_ for id_ in ids if id_ != ids[30]]


def test_of_an_empty_collection_nothing_is_near(questions: Questions) -> None:
    assert list(questions.by_nearness(np.array([1, 0], np.float32), 5)) == []


def test_a_vector_of_another_length_is_told(questions: Questions) -> None:
    write(questions, {"1 0 | q": ROW})
    uses: list[Callable[[], Any]] = [
        lambda: list(questions.by_nearness(np.array([1], np.float32), 5)),
        lambda: write(questions, {"1 0 0 | r": ROW}),
    ]
    for use in uses:
        with pytest.raises(DemurError, match=r"cannot be used: .*dimension of 2"):
            use()
