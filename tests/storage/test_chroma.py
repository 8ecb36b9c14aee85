"""Test opening and searching a real Chroma in memory, in folders and on a server."""

from __future__ import annotations

import sys
import textwrap
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from demur.errors import DemurError, MissingExtraError
from demur.storage import Chroma, chroma
from demur.storage.chroma import nearest, open_client
from support.spawned import Spawned

pytest.importorskip("chromadb")
pytest.importorskip("filelock")


def name() -> str:
    return f"test-{uuid.uuid4().hex}"


def add(collection: Any, vectors: dict[str, list[float]]) -> None:
    metadatas = [{"of": id_} for id_ in vectors]
    collection.upsert(list(vectors), embeddings=list(vectors.values()), metadatas=metadatas)


def test_a_folder_keeps_what_is_in_it(tmp_path: Path) -> None:
    opened = open_client(tmp_path / "new" / "folder", "a test")
    add(opened.collection("abc", "k", "e"), {"x": [1, 0]})
    opened.close()
    again = open_client(str(tmp_path / "new" / "folder"), "a test")
    assert again.collection("abc", "k", "e").count() == 1
    again.close()


@pytest.mark.slow
def test_a_folder_belongs_to_one_process_until_it_is_closed(tmp_path: Path) -> None:
    """Count the entries of a collection in another process, before and after it is closed."""
    code = """
        import os, sys, time
        from demur import DemurError
        from demur.storage.chroma import open_client
        try:
            open_client(sys.argv[1], "a test").collection("abc", "k", "e")
        except DemurError as error:
            print(error, flush=True)
        while not os.path.exists(sys.argv[2]):
            time.sleep(0.01)
        print(open_client(sys.argv[1], "a test").collection("abc", "k", "e").count())
    """
    folder = tmp_path / "store"
    first, second = open_client(folder, "a test"), open_client(folder, "a test")
    add(first.collection("abc", "k", "e"), {"x": [1, 0]})
    first.close()
    first.close()  # This does not close the second client.
    with pytest.raises(DemurError, match="was closed here: open it again"):
        first.collection("abc", "k", "e")
    process = Spawned(textwrap.dedent(code), tmp_path, folder, tmp_path / "closed")
    process.printed(1)
    assert f"{folder} is in use by another process" in process.out
    assert f"chroma run --path {folder}" in process.out
    assert second.collection("abc", "k", "e").count() == 1
    second.close()
    (tmp_path / "closed").touch()
    assert process.end() == 0, process.err
    assert process.out.splitlines()[-1] == "1"


def test_memory_goes_with_clients_that_the_user_makes_and_these_are_left_open() -> None:
    import chromadb

    before = chromadb.EphemeralClient()
    opened = open_client(None, "a test")
    after = chromadb.EphemeralClient()
    opened.collection(shared := name(), "k", "e")
    for client in (before, after):
        assert client.get_collection(shared, embedding_function=None).metadata["demur"] == "k"
    used = open_client(before, "a test")
    used.close()
    assert used.collection(name(), "k", "e").count() == 0
    assert used.client is before


def test_other_vectors_and_other_kinds_are_refused() -> None:
    opened = open_client(None, "a test")
    opened.collection(taken := name(), "answers-1", "model one")
    with pytest.raises(ValueError, match=r"with another embedding model: model one, and .* two"):
        opened.collection(taken, "answers-1", "model two")
    with pytest.raises(ValueError, match=r"holds something else \(answers-1, where examples-1"):
        opened.collection(taken, "examples-1", "model one")
    opened.client.create_collection(foreign := name(), embedding_function=None)
    with pytest.raises(ValueError, match="nothing of demur"):
        opened.collection(foreign, "answers-1", "model one")


def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(DemurError, match=r"Chroma in memory cannot be used: .*3-512 characters"):
        open_client(None, "a test").collection("?", "k", "e")
    with pytest.raises(DemurError, match=r"Chroma in http://127\.0\.0\.1:9 cannot be used"):
        open_client("http://127.0.0.1:9", "a test")
    for url in ("http://", "http://me:secret@host:1", "http://host:1/deep", "http://host?x=1"):
        with pytest.raises(ValueError, match="expected a Chroma server's URL as http://host:port"):
            open_client(url, "a test")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DemurError, match=r"Chroma in .*file cannot be used: "):
        open_client(tmp_path / "file", "a test")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "chroma.sqlite3").write_text("no database" * 100)
    for _ in range(2):  # The failed attempt leaves the folder free.
        with pytest.raises(DemurError, match=r"Chroma in .*folder cannot be used: "):
            open_client(folder, "a test")


@pytest.mark.parametrize("package", ["chromadb", "filelock"])
def test_without_its_packages_it_names_the_extra(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"a test needs .*pip install 'demur\[chroma\]'"):
        open_client(None, "a test")


def test_a_vector_that_is_there_is_not_written_again(
    opened: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chroma, "AT_ONCE", 2)
    kept, asked = opened.collection(name(), "k", "e"), []

    def vectors_of(ids: list[str]) -> dict[str, Any]:
        asked.append(ids)
        return {id_: np.array([len(asked), 1], np.float32) for id_ in ids}

    opened.write(kept, {"a": {"said": "1", "more": "x"}, "b": {"said": "2"}}, vectors_of)
    opened.write(kept, {"b": {"said": "3"}, "c": {"said": "4"}, "a": {"said": "5"}}, vectors_of)
    opened.write(kept, {}, vectors_of)
    assert asked == [["a", "b"], ["c"]]
    found = kept.get(include=["metadatas", "embeddings"])
    assert dict(zip(found["ids"], found["metadatas"], strict=True)) == {
        "a": {"said": "5", "more": "x"},
        "b": {"said": "3"},
        "c": {"said": "4"},
    }
    first, *others = found["embeddings"]
    assert [np.allclose(first, other) for other in others] == [True, False]


# --- Nearest --------------------------------------------------------------------------------------


@pytest.fixture
def opened() -> Chroma:
    return open_client(None, "a test")


def test_nearest_are_those_of_brute_force(opened: Chroma) -> None:
    collection = opened.collection(name(), "k", "e")
    assert nearest(collection, {"q": np.ones(8, np.float32)}, 2, 0.8) == {"q": []}
    vectors = np.random.default_rng(5).normal(size=(200, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = {str(at): vector for at, vector in enumerate(vectors)}
    add(collection, {id_: (vector * 3).tolist() for id_, vector in rows.items()})
    found = nearest(collection, rows, 10, 0.8)
    cosines = vectors @ vectors.T
    right = 0
    for at, row in enumerate(cosines):
        under = [other for other in np.argsort(-row) if other != at and row[other] < 0.8]
        ranked = found[str(at)]
        right += len({id_ for id_, _ in ranked} & {str(other) for other in under[:10]})
        assert [score for _, score in ranked] == sorted((s for _, s in ranked), reverse=True)
        for id_, score in ranked:
            assert score == pytest.approx(row[int(id_)], abs=1e-5)
    assert right >= 0.98 * 10 * len(vectors)  # An approximate index may miss a few.


def test_it_asks_for_more_until_there_are_enough_under_the_ceiling(
    opened: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chroma, "_RESULTS", 40)  # Vectors are searched in parts.
    collection = opened.collection(name(), "k", "e")
    same = {f"same{at}": [1.0, at / 1000] for at in range(100)}
    add(collection, {**same, "far": [0, 1], "farther": [-1, 1]})
    vectors = {id_: np.array([1, 0], np.float32) for id_ in ("q", "r", "s")}
    found = nearest(collection, vectors, 2, 0.8)
    assert list(found) == ["q", "r", "s"]
    for ranked in found.values():
        assert ranked == [("far", pytest.approx(0)), ("farther", pytest.approx(-(0.5**0.5)))]
    assert [len(one) for one in nearest(collection, vectors, 200, 0.8).values()] == [2, 2, 2]
