"""Sentence embeddings: what is done around the model, and the model itself where it is here."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
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
    """A tokenizer of one token a word, and a session whose states are the tokens' ids."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def encode_batch(self, texts: list[str]) -> list[Any]:
        return [SimpleNamespace(ids=[len(word) for word in text.split()]) for text in texts]

    def run(self, names: None, inputs: dict[str, Any]) -> list[Any]:
        mask = inputs["attention_mask"]
        assert (inputs["input_ids"][mask == 0] == 0).all()
        self.batches.append(mask.sum(axis=1).tolist())
        ids = inputs["input_ids"].astype(np.float32)
        # What the padding would contribute must not count.
        return [np.stack([np.where(mask, ids, 99.0), np.where(mask, 1.0, 99.0)], axis=-1)]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    pytest.importorskip("onnxruntime")
    both = Recorder()
    monkeypatch.setattr(embeddings, "find_fetched", lambda manifest: Path(manifest.file))
    monkeypatch.setattr(embeddings, "_load", lambda *files: (both, both))
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


def test_a_file_that_the_runtime_cannot_load_is_said(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    tokenizers = pytest.importorskip("tokenizers")
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a")).save(
        str(tmp_path / "tokenizer.json")
    )
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(LocalModelError, match=r"ONNX Runtime could not load .*model\.onnx"):
        embeddings._load(tmp_path / "tokenizer.json", tmp_path / "model.onnx")


# --- With the real files -----------------------------------------------------------------------


@pytest.fixture
def minilm() -> MiniLM:
    try:
        return MiniLM()
    except (LocalModelError, MissingExtraError) as error:
        pytest.skip(f"no sentence embeddings: {error}")


@pytest.mark.real
def test_its_similarities_are_those_of_the_official_weights(minilm: MiniLM) -> None:
    """Of all-MiniLM-L6-v2 itself, by sentence-transformers: 0.6715 and 0.1687."""
    asked, fitting, other = map(np.array, minilm.embed_documents([ASKED, FITTING, OTHER]))
    assert asked.shape == (384,)
    assert asked @ asked == pytest.approx(1, abs=1e-5)
    assert asked @ fitting == pytest.approx(0.6715, abs=0.01)
    assert asked @ other == pytest.approx(0.1687, abs=0.01)


@pytest.mark.real
def test_a_vector_is_the_same_alone_among_others_and_in_threads(minilm: MiniLM) -> None:
    texts = [ASKED, "", "\ud800", FITTING * 40, OTHER]
    together = minilm.embed_documents(texts)
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(pickle.loads(pickle.dumps(minilm)).embed_query, texts))
    assert np.array(alone) == pytest.approx(np.array(together), abs=1e-5)


@pytest.mark.real
def test_what_is_behind_the_first_256_tokens_is_not_read(minilm: MiniLM) -> None:
    long = "copy " * 254  # with the marks for begin and end, as many as it reads
    first, second = minilm.embed_documents([long, long + OTHER])
    assert first == pytest.approx(second, abs=1e-5)
    shorter, different = minilm.embed_documents(["copy " * 200, "copy " * 200 + OTHER])
    assert np.array(shorter) @ np.array(different) < 0.99
