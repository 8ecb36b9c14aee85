"""Test the demonstration's index with a real Chroma in a temporary folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from demur import DemurError, MissingExtraError
from demur.cli.demo import index
from demur.cli.demo.index import open_index


class Letters(Embeddings):
    """Embed texts by how often each letter occurs, and count the texts."""

    def __init__(self) -> None:
        self.texts = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += len(texts)
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        counts = [float(text.count(letter)) for letter in "abcdefghij"]
        return [count / (sum(counts) or 1.0) for count in counts]


PASSAGES = [
    Document(id=letter, page_content=letter * 3, metadata={"title": f"m.{letter}"})
    for letter in "abcdefghij"
]


def silent(done: int, total: int) -> None:
    pass


@pytest.fixture(autouse=True)
def _installed() -> None:
    pytest.importorskip("langchain_chroma")


def test_it_finds_what_is_nearest_with_text_and_title(tmp_path: Path) -> None:
    found = open_index(PASSAGES, Letters(), "letters", tmp_path, silent).similarity_search(
        "bbbc", k=2
    )
    assert [(one.page_content, one.metadata) for one in found] == [
        ("bbb", {"title": "m.b"}),
        ("ccc", {"title": "m.c"}),
    ]


def test_vectors_are_computed_once_and_an_interrupted_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_AT_ONCE", 4)

    def interrupt(done: int, total: int) -> None:
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_index(PASSAGES, Letters(), "letters", tmp_path, interrupt)
    reports: list[tuple[int, int]] = []
    letters = Letters()
    open_index(PASSAGES, letters, "letters", tmp_path, lambda *report: reports.append(report))
    assert letters.texts == 2
    assert reports == [(8, 10), (10, 10)]
    again = Letters()
    reports.clear()
    open_index(PASSAGES, again, "letters", tmp_path, lambda *report: reports.append(report))
    assert (again.texts, reports) == (0, [])
    # Other passages and other embeddings have a collection of their own.
    few = open_index(PASSAGES[:2], again, "letters", tmp_path, silent)
    assert len(few.get()["ids"]) == again.texts == 2
    open_index(PASSAGES, again, "other letters", tmp_path, silent)
    assert again.texts == 2 + len(PASSAGES)


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DemurError, match=r"file cannot be used: .*Delete the folder"):
        open_index(PASSAGES, Letters(), "letters", tmp_path / "file", silent)


@pytest.mark.parametrize("package", ["chromadb", "langchain_chroma"])
def test_without_a_package_it_names_the_extra(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'demur\[demo\]'"):
        open_index(PASSAGES, Letters(), "letters", tmp_path, silent)
