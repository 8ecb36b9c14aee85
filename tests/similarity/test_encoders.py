"""Test how classifiers of pairs are loaded, with real, tiny models that have random weights."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from demur import DemurError
from demur.similarity import (
    NAMED,
    NamedJudge,
    encoders,
    load_yes_no,
    resolve_similarity,
    weights_fingerprint,
)
from demur.similarity.encoders import load_cross_encoder
from support.tiny import WITH_TORCH, tiny_bi_encoder, tiny_cross_encoder, tiny_pair_model

PAIRS = [("oslo is old", "oslo is in norway"), ("it", "old"), ("", "oslo .")]

pytestmark = WITH_TORCH


def hhem_in(folder: Path) -> NamedJudge:
    """Return HHEM with the weights of a folder."""
    known = NAMED["hhem"]
    own = replace(known.judge, weights=str(folder), revision=None, base=str(folder / "base"))
    return replace(known, judge=own)


def expected(model: Any, folder: Path) -> list[float]:
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "base")
    asked = "<pad> Determine if the hypothesis is true given the premise?"
    texts = [f"{asked}\n\nPremise: {one}\n\nHypothesis: {other}" for one, other in PAIRS]
    with torch.no_grad():
        logits = model(**tokenizer(texts, return_tensors="pt", padding=True)).logits
    found: list[float] = logits[:, 0].softmax(-1)[:, 1].tolist()
    return found


def test_hhem_scores_by_the_weights_that_were_saved_and_names_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = expected(tiny_pair_model(tmp_path), tmp_path)
    assert max(wanted) - min(wanted) > 0.1
    monkeypatch.setattr("demur.similarity.resolving._named", {})
    monkeypatch.setattr("demur.similarity.resolving.NAMED", {"hhem": hhem_in(tmp_path)})
    similarity = resolve_similarity("hhem")
    assert similarity.scores(PAIRS) == pytest.approx(wanted, abs=1e-5)
    assert similarity.fingerprint.endswith(f"@{encoders.HHEM_2_1}")


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    tiny_pair_model(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["t5.classifier.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(DemurError, match=r"classifier\.weight.*random numbers"):
        load_yes_no(hhem_in(tmp_path).judge)


def test_a_bi_encoder_is_not_given_a_random_classifier(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"those of BertModel.*SentenceTransformer\("):
        load_cross_encoder(tiny_bi_encoder(tmp_path))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"HF_HUB_OFFLINE": "1"}, "OfflineModeIsEnabled"),
        ({"HF_ENDPOINT": "http://127.0.0.1:9"}, ""),
    ],
    ids=["offline", "nothing answers"],
)
def test_a_hub_that_does_not_answer_is_asked_once_and_before_torch_is_imported(
    settings: dict[str, str], why: str, tmp_path: Path
) -> None:
    script = (
        "import sys, logging; logging.basicConfig(level='WARNING')\n"
        "from demur import DemurError, RefChecker\n"
        "try: RefChecker('minicheck-roberta')\n"
        "except DemurError as error: print(error)\n"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    environment = {name: text for name, text in os.environ.items() if not name.startswith("HF_")}
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, "HF_HOME": str(tmp_path), **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    error, imported = run.stdout.splitlines()
    assert (
        "'lytang/MiniCheck-RoBERTa-Large' cannot be loaded: the Hugging Face hub does not" in error
    )
    assert why in error
    assert imported == "[]"
    assert "Retrying" not in run.stderr


def test_a_fingerprint_knows_weights_from_others_of_their_shape(tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    folder = tiny_cross_encoder(tmp_path, ["consistent"])
    one, same, other = (CrossEncoder(folder) for _ in range(3))
    other.model.classifier.weight.data += 0.01
    assert weights_fingerprint(one) == weights_fingerprint(same) != weights_fingerprint(other)
