"""Names under which stores write: never shared by two that live, and used again."""

from __future__ import annotations

import gc
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from demur.exemplars.writers import Writer
from demur.models.questions import Questions
from support.vectors import Told

pytest.importorskip("chromadb")
pytest.importorskip("filelock")


def _questions(path: str | Path | None, client: object = None, name: str = "shared") -> Questions:
    return Questions(path, client, name, Told(), "k", "a test")


def _taken(questions: Questions) -> list[str]:
    collection = questions.chroma.client.get_collection(
        f"{questions.name}-writers", embedding_function=None
    )
    return sorted(collection.get(include=[])["ids"])


@pytest.fixture
def served(server: str) -> str:
    """A collection's name that no other test has."""
    return f"test-{uuid.uuid4().hex}"


def test_who_is_alone_needs_no_claim(tmp_path: Path) -> None:
    for questions in (_questions(None), _questions(tmp_path)):
        assert Writer(questions).name() == "1"
        assert not [
            one
            for one in questions.chroma.client.list_collections()
            if one.name == f"{questions.name}-writers"
        ]


def test_those_that_claim_at_once_get_different_names(server: str, served: str) -> None:
    places = [_questions(server, name=served) for _ in range(6)]
    writers = [Writer(questions) for questions in places]
    with ThreadPoolExecutor(6) as pool:
        names = list(pool.map(Writer.name, writers))
    assert sorted(names) == ["1", "2", "3", "4", "5", "6"]
    assert [writer.name() for writer in writers] == names  # it stays
    assert _taken(places[0]) == sorted(names)


def test_a_name_is_given_back_and_used_again(server: str, served: str) -> None:
    questions = _questions(server, name=served)
    first, second = Writer(questions), Writer(questions)
    assert (first.name(), second.name()) == ("1", "2")
    del first
    gc.collect()
    assert _taken(questions) == ["2"]
    assert Writer(questions).name() == "1"


def test_a_client_of_the_users_is_shared_by_whoever_has_it() -> None:
    import chromadb

    client = chromadb.EphemeralClient()
    name = f"test-{uuid.uuid4().hex}"
    writers = [Writer(_questions(None, client, name)) for _ in range(2)]
    assert [writer.name() for writer in writers] == ["1", "2"]


def test_a_process_that_was_forked_has_a_name_of_its_own_and_gives_no_other_back(
    server: str, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = _questions(server, name=served)
    writer = Writer(questions)
    assert writer.name() == "1"
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    assert writer.name() == "2"
    del writer
    gc.collect()
    assert _taken(questions) == ["1"]


def test_a_server_that_went_away_stops_nobody_from_ending(
    server: str, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = _questions(server, name=served)
    writer = Writer(questions)
    writer.name()

    def gone(*arguments: object, **options: object) -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(type(questions.collection), "delete", gone)
    del writer
    gc.collect()
    monkeypatch.undo()
    assert _taken(questions) == ["1"]
