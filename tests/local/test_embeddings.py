"""Test what demur does around the model of sentence embeddings."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from demur.errors import LocalModelError, MissingExtraError
from demur.local import MiniLM, embeddings
from demur.local.embeddings import mean_direction

ASKED = "How do I copy a file?"
FITTING = "Copy data and metadata. Return the file's destination."
OTHER = "Return the sine of x."


class Recorder:
    """Stand in for a tokenizer of words and for a session whose states are the tokens' ids."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def encode_batch(self, texts: list[str]) -> list[Any]:
        return [SimpleNamespace(ids=[len(word) for word in text.split()]) for text in texts]

    def run(self, names: None, inputs: dict[str, Any]) -> list[Any]:
        mask = inputs["attention_mask"]
        assert (inputs["input_ids"][mask == 0] == 0).all()
        self.batches.append(mask.sum(axis=1).tolist())
        ids = inputs["input_ids"].astype(np.float32)
        # The states of the padding must not count.
        return [np.stack([np.where(mask, ids, 99.0), np.where(mask, 1.0, 99.0)], axis=-1)]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    pytest.importorskip("onnxruntime")
    both = Recorder()
    monkeypatch.setattr(embeddings, "find_fetched", lambda manifest: Path(manifest.file))
    monkeypatch.setattr(embeddings, "loaded", lambda *files: (both, both))
    return both


def test_the_mean_is_over_the_tokens_alone_and_has_length_one() -> None:
    states = np.array([[[3.0, 0.0], [0.0, 3.0], [50.0, 9.0]], [[0.0, 2.0]] * 3], np.float32)
    found = mean_direction(states, np.array([[1, 1, 0], [1, 1, 1]]))
    assert found == pytest.approx(np.array([[0.5**0.5, 0.5**0.5], [0.0, 1.0]]))


def test_texts_of_a_length_are_computed_together_and_come_back_in_their_order(
    recorder: Recorder,
) -> None:
    texts = ["a a a", "bb", "ccc c c c", "dd dd", "eee"]
    vectors = MiniLM(batch_size=2).embed_documents(texts)
    assert recorder.batches == [[1, 1], [2, 3], [4]]
    means = [1.0, 2.0, 1.5, 2.0, 3.0]
    assert [x / y for x, y in vectors] == pytest.approx(means)
    assert MiniLM().embed_query("eee") == pytest.approx(vectors[-1])
    assert MiniLM().embed_documents([]) == []


def test_a_size_that_is_no_size_is_refused() -> None:
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        MiniLM(batch_size=0)


def test_without_the_files_it_says_how_to_fetch_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("DEMUR_MODELS", str(tmp_path))
    with pytest.raises(LocalModelError, match="Run: demur models pull") as failed:
        MiniLM()
    assert "GGUF" not in str(failed.value)


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_without_its_packages_it_names_the_extra(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'demur\[chroma\]'"):
        MiniLM()
