"""Test a collection of questions in Chroma: its rows, its metadata and its nearest questions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
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
    """Write rows by their questions, and return the ids."""
    texts = {question_id(text): text for text in rows}
    questions.write({id_: rows[text] for id_, text in texts.items()}, texts)
    return list(texts)


ROW = {"said": "x"}


# --- The identity of a question -------------------------------------------------------------------


@given(st.text(), st.sampled_from([" ", "\n", "\t \u00a0"]))
def test_a_question_is_known_whatever_its_white_space(text: str, space: str) -> None:
    parts = text.split()
    assert question_id(space.join(["", *parts, ""])) == question_id(" ".join(parts))
    assert question_id(text) == question_id(text.replace("\ud800", "\ufffd"))
    assert question_id(f"{text}x") != question_id(f"{text}y")
    assert question_id("Ren\u00e9e?") == question_id("Rene\u0301e?") != question_id("ren\u00e9e?")
    assert question_id("a b") != question_id("ab")


# --- Rows of questions ----------------------------------------------------------------------------


def test_rows_are_written_beside_each_other_and_taken_away(questions: Questions) -> None:
    one, other = write(questions, {"1 0 | p": {"a": "1", "b": "2"}, "0 1 | q": {"a": "3"}})
    write(questions, {"1 0 | p": {"b": "4", "c": "5"}})
    assert questions.read([one, other, "none"]) == {
        one: {"a": "1", "b": "4", "c": "5"},
        other: {"a": "3"},
    }
    assert len(questions) == 2
    assert questions.where({"a": "3"}) == {other: {"a": "3"}}
    questions.delete([one, "none"])
    questions.delete([])
    assert questions.read([one, other]) == {other: {"a": "3"}}
    assert questions.all_ids() == [other]


def test_more_are_read_and_written_than_one_request_takes(questions: Questions) -> None:
    ids = write(questions, {f"1 {at} | {at}": {"at": str(at)} for at in range(450)})
    assert {row["at"] for row in questions.read(ids).values()} == set(map(str, range(450)))
    assert questions.all_ids() == questions.ids().tolist() == sorted(ids)
    assert questions.stored_vectors(ids[:3]).keys() == set(ids[:3])
    questions.delete(ids[:300])
    assert questions.all_ids() == sorted(ids[300:])


def test_all_ids_are_those_that_are_there_now(tmp_path: Path) -> None:
    first, second = made(tmp_path), made(tmp_path)
    (one,) = write(first, {"1 0 | p": ROW})
    assert first.all_ids() == second.all_ids() == [one]
    (other,) = write(second, {"0 1 | q": ROW})
    second.delete([one])
    assert first.all_ids() == [other]  # The number is the same as before.
    first.chroma.close()
    second.chroma.close()


# --- Metadata of the collection -------------------------------------------------------------------


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


# --- Nearest questions ----------------------------------------------------------------------------


def test_a_vector_of_another_length_is_told(questions: Questions) -> None:
    write(questions, {"1 0 | q": ROW})
    uses: list[Callable[[], Any]] = [
        lambda: questions.nearest({"x": "1 | p"}, 5, 1.0),
        lambda: write(questions, {"1 0 0 | r": ROW}),
    ]
    for use in uses:
        with pytest.raises(DemurError, match=r"cannot be used: .*dimension of 2"):
            use()
