"""Test how names, models and functions are resolved to similarities."""

from __future__ import annotations

import functools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from demur.similarity import NLI, Pair, resolve_similarity
from demur.similarity import resolving as module
from support.tiny import tiny_bi_encoder, tiny_cross_encoder, with_torch

PAIRS = [("oslo is old", "oslo is in norway"), ("it", "old"), ("old", "it"), ("", "oslo .")]
NLI_CLASSES = ["contradiction", "entailment", "neutral"]


def half(pairs: list[Pair]) -> list[float]:
    return [0.5] * len(pairs)


class Half:
    def __call__(self, pairs: list[Pair]) -> list[float]:
        return half(pairs)


class Vectors(Embeddings):
    """Embed a text as its length and 1."""

    model = "lengths-1"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.mark.parametrize(
    ("function", "name", "ending"),
    [
        (half, "half", "test_resolving.half"),
        (Half(), "Half", "test_resolving.Half"),
        (functools.partial(half), "half", "test_resolving.half"),
    ],
    ids=["function", "object", "partial"],
)
def test_a_function_is_known_by_where_it_is_defined(function: Any, name: str, ending: str) -> None:
    found = resolve_similarity(function)
    assert found.scores(PAIRS).tolist() == [0.5] * 4
    assert found.name == name
    assert found.fingerprint.endswith(ending)


def test_embeddings_are_compared_by_their_cosine() -> None:
    found = resolve_similarity(Vectors())
    assert found.name == "cosine"
    assert "lengths-1" in found.fingerprint
    a, b = np.array([3.0, 1.0]), np.array([1.0, 1.0])
    expected = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert found.scores([("abc", "a"), ("a", "abc")]) == pytest.approx([expected] * 2, abs=1e-6)
    assert found.evaluated == 1


@pytest.mark.parametrize("name", ["rouge", "bleu"])
def test_a_name_is_the_same_similarity_everywhere_in_a_process(name: str) -> None:
    pytest.importorskip("sacrebleu")
    pytest.importorskip("rapidfuzz")
    found = resolve_similarity(name)
    assert resolve_similarity(name) is found
    assert pickle.loads(pickle.dumps(found)) is found
    assert found.name == name
    scores = found.scores([("oslo is old", "oslo is old"), ("oslo", "it")])
    assert scores == pytest.approx([1.0, 0.0])


def test_an_unknown_name_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r"unknown similarity .*'cosine', 'hhem', .*org/name"):
        resolve_similarity("hhem-3")


# --- Models of torch ---------------------------------------------------------------------------


@pytest.fixture
def one_output(tmp_path: Path) -> str:
    return tiny_cross_encoder(tmp_path, ["consistent"])


@pytest.fixture
def three_classes(tmp_path: Path) -> str:
    return tiny_cross_encoder(tmp_path, NLI_CLASSES)


@with_torch
@pytest.mark.parametrize(
    ("given", "activation"), [("name", "own"), ("path", "own"), ("object", "none")]
)
def test_a_cross_encoder_with_one_output(one_output: str, given: str, activation: str) -> None:
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity, Sigmoid

    encoder = CrossEncoder(one_output)
    expected = encoder.predict(PAIRS, activation_fn=Sigmoid())
    if activation == "none":
        encoder.activation_fn = Identity()
    similarity: Any = {"name": one_output, "path": Path(one_output), "object": encoder}[given]
    found = resolve_similarity(similarity)
    assert found.scores(PAIRS) == pytest.approx(expected, abs=1e-5)
    assert found.evaluated == 4
    assert found.fingerprint == resolve_similarity(CrossEncoder(one_output)).fingerprint
    if given != "object":
        assert resolve_similarity(one_output) is found
        assert pickle.loads(pickle.dumps(found)) is found


@with_torch
@pytest.mark.parametrize("given", ["name", "nli"])
def test_of_an_nli_model_it_is_the_probability_of_entailment(
    three_classes: str, given: str
) -> None:
    from sentence_transformers import CrossEncoder
    from torch.nn import Softmax

    encoder = CrossEncoder(three_classes)
    expected = encoder.predict(PAIRS, activation_fn=Softmax(dim=-1))[:, 1]
    similarity = three_classes if given == "name" else NLI(encoder)
    assert resolve_similarity(similarity).scores(PAIRS) == pytest.approx(expected, abs=1e-5)


@with_torch
def test_a_bi_encoder_given_as_an_object(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(tiny_bi_encoder(tmp_path))
    found = resolve_similarity(encoder)
    vectors = encoder.encode([text for pair in PAIRS for text in pair], normalize_embeddings=True)
    expected = [float(vectors[at] @ vectors[at + 1]) for at in range(0, len(vectors), 2)]
    assert found.scores(PAIRS) == pytest.approx(np.clip(expected, 0, 1), abs=1e-5)
    assert found.name == "cosine"


# --- The embedded model ------------------------------------------------------------------------


def test_cosine_is_of_the_embedded_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_named", {})
    monkeypatch.setattr(module, "MiniLM", Vectors)
    assert resolve_similarity("cosine").scores([("a", "a")]) == pytest.approx([1.0])
