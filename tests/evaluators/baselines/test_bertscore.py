"""Test BERTScore with a tiny real encoder whose weights the test makes itself."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from demur import DemurError
from demur.evaluators.baselines import bertscore
from demur.evaluators.baselines.bertscore import BERTScore, load_bertscore
from support.tiny import WITH_TORCH, tiny_bi_encoder

TEXTS = ["oslo is in norway .", "it is old", "oslo lies in norway . it was founded long ago ."]
PAIRS = [(first, second) for first in TEXTS for second in TEXTS]

pytestmark = WITH_TORCH


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_bi_encoder(tmp_path_factory.mktemp("bertscore"))


def vectors(folder: str, text: str, layer: int) -> np.ndarray:
    """Return the unit vectors of a text's words, read alone: without padding and without a mask."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        states = model.eval()(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
    rows = states.hidden_states[layer][0, 1:-1].numpy()
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("layer", [1, 2])
def test_it_is_the_papers_f1_in_whatever_company(
    layer: int, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(bertscore._LAYERS, folder, layer)
    found = BERTScore(folder)(PAIRS)
    alone = {text: vectors(folder, text, layer) for text in TEXTS}
    for score, (first, second) in zip(found, PAIRS, strict=True):
        cosines = alone[first] @ alone[second].T
        recall, precision = cosines.max(axis=0).mean(), cosines.max(axis=1).mean()
        assert score == pytest.approx(2 * recall * precision / (recall + precision), abs=1e-5)


def test_without_words_nothing_is_alike_and_a_long_text_is_cut(folder: str) -> None:
    asked = [("", "norway"), ("", ""), ("oslo is old . " * 400, "oslo")]
    *nothing, cut = load_bertscore(folder).scores(asked).tolist()
    assert nothing == [0, 0]
    assert 0 < cut <= 1


def test_the_last_layer_is_compared_unless_the_paper_chose_another(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = load_bertscore(folder)
    assert load_bertscore(folder) is last
    load_bertscore.cache_clear()
    monkeypatch.setitem(bertscore._LAYERS, folder, 2)
    second = load_bertscore(folder)
    load_bertscore.cache_clear()
    monkeypatch.setitem(bertscore._LAYERS, folder, 1)
    first = load_bertscore(folder)
    load_bertscore.cache_clear()
    assert last.scores(PAIRS).tolist() == second.scores(PAIRS).tolist()
    assert last.scores(PAIRS).tolist() != first.scores(PAIRS).tolist()
    assert last.fingerprint == second.fingerprint != first.fingerprint


def test_it_can_be_pickled(folder: str) -> None:
    score = load_bertscore(folder)
    assert pickle.loads(pickle.dumps(score)).scores(PAIRS).tolist() == score.scores(PAIRS).tolist()


def test_a_missing_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(DemurError, match=r"cannot be loaded.*Give a folder"):
        load_bertscore(str(tmp_path))
