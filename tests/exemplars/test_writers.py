"""Names under which stores write: never shared by two that live, and used again."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from demur.exemplars.writers import Writer
from demur.storage import Questions
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


@pytest.mark.slow
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
    first.close()
    first.close()
    assert _taken(questions) == ["2"]
    assert Writer(questions).name() == "1"
    assert first.name() == "3"  # it is asked again: as if it were new


@pytest.mark.slow
def test_a_name_is_given_back_at_the_end_of_the_process(server: str, served: str) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from support.vectors import Told\n"
        "from demur import ExampleStore\n"
        "store = ExampleStore(sys.argv[2], collection=sys.argv[3], embedding=Told())\n"
        "store.add('q', ['a'], [1])\n"
        "names = store._questions.chroma.client.get_collection(\n"
        "    f'{sys.argv[3]}-writers', embedding_function=None)\n"
        "print(names.get(include=[])['ids'])"
    )
    tests = str(Path(__file__).parents[1])
    run = [sys.executable, "-c", code, tests, server, served]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert told.strip() == "['1']"
    import chromadb

    url = urlsplit(server)
    client = chromadb.HttpClient(str(url.hostname), url.port or 8000)
    left = client.get_collection(f"{served}-writers", embedding_function=None)
    assert left.get(include=[])["ids"] == []


def test_a_client_of_the_users_is_shared_by_whoever_has_it() -> None:
    import chromadb

    client = chromadb.EphemeralClient()
    name = f"test-{uuid.uuid4().hex}"
    writers = [Writer(_questions(None, client, name)) for _ in range(2)]
    assert [writer.name() for writer in writers] == ["1", "2"]


def test_a_process_that_was_forked_does_not_give_its_parent_s_name_back(
    server: str, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = _questions(server, name=served)
    writer = Writer(questions)
    assert writer.name() == "1"
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    writer.close()
    monkeypatch.undo()
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
    writer.close()
    monkeypatch.undo()
    assert _taken(questions) == ["1"]
