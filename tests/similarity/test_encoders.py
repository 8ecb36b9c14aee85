"""Test how classifiers of pairs are loaded, with real, tiny models that have random weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demur import DemurError
from demur.similarity import encoders, resolve_similarity, weights_fingerprint
from demur.similarity.encoders import load_cross_encoder, load_hhem
from support.tiny import WITH_TORCH, tiny_bi_encoder, tiny_cross_encoder, tiny_pair_model

PAIRS = [("oslo is old", "oslo is in norway"), ("it", "old"), ("", "oslo .")]

pytestmark = WITH_TORCH


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Any]]:
    """Yield a folder in the form of HHEM's, and the T5 in it; redirect the copies of its code."""
    with pytest.MonkeyPatch.context() as patch:
        copies = tmp_path_factory.mktemp("copies")
        patch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(copies))
        patch.syspath_prepend(copies)
        folder = tmp_path_factory.mktemp("tiny")
        yield folder, tiny_pair_model(folder)


def expected(model: Any, folder: Path) -> list[float]:
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "base")
    texts = [f"{premise} is {hypothesis}" for premise, hypothesis in PAIRS]
    with torch.no_grad():
        logits = model(**tokenizer(texts, return_tensors="pt", padding=True)).logits
    found: list[float] = logits[:, 0].softmax(-1)[:, 1].tolist()
    return found


def test_hhem_scores_by_the_weights_that_were_saved_and_names_its_commit(
    published: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, model = published
    wanted = expected(model, folder)
    assert max(wanted) - min(wanted) > 0.1
    monkeypatch.setattr("demur.similarity.resolving._named", {})
    monkeypatch.setattr(
        "demur.similarity.resolving.load_hhem", lambda: load_hhem(str(folder), None)
    )
    similarity = resolve_similarity("hhem")
    assert similarity.scores(PAIRS) == pytest.approx(wanted, abs=1e-5)
    assert similarity.fingerprint.endswith(f"@{encoders.HHEM_2_1}")


def test_weights_that_do_not_fit_the_code_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "code"))
        patch.syspath_prepend(tmp_path / "code")
        folder = tmp_path / "lacking"
        tiny_pair_model(folder)
        weights = load_file(folder / "model.safetensors")
        del weights["inner.classifier.weight"]
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(DemurError, match=r"inner\.classifier\.weight.*random numbers"):
            load_hhem(str(folder), None)


def test_a_bi_encoder_is_not_given_a_random_classifier(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"those of BertModel.*SentenceTransformer\("):
        load_cross_encoder(tiny_bi_encoder(tmp_path))


def test_a_fingerprint_knows_weights_from_others_of_their_shape(tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    folder = tiny_cross_encoder(tmp_path, ["consistent"])
    one, same, other = (CrossEncoder(folder) for _ in range(3))
    other.model.classifier.weight.data += 0.01
    assert weights_fingerprint(one) == weights_fingerprint(same) != weights_fingerprint(other)
