"""Test NLI by a real, tiny cross-encoder with random weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from demur import RefChecker, Sample
from demur.schema import ClaimLabel
from demur.similarity import NLI, load_nli
from support.fakes import scripted
from support.tiny import WITH_TORCH, tiny_cross_encoder

SAMPLE = Sample(
    answer="Oslo is in Norway. Oslo is old.",
    contexts=["Oslo lies in Norway. " * 200, "It was founded a long time ago."],
)
TRIPLETS = '("Oslo", "is in", "Norway")\n("Oslo", "is", "old")'

pytestmark = WITH_TORCH


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_cross_encoder(
        tmp_path_factory.mktemp("nli"), ["CONTRADICTION", "entailment", "neutral"]
    )


def test_probabilities_are_the_models_own_by_the_names_of_its_classes(folder: str) -> None:
    from sentence_transformers import CrossEncoder
    from torch.nn import Softmax

    pairs = [("oslo is old", "oslo is in norway"), ("oslo", "old"), ("oslo", "old")]
    expected = CrossEncoder(folder).predict(pairs, activation_fn=Softmax(dim=-1))
    found = load_nli(folder).predict(pairs)
    order = [ClaimLabel.CONTRADICTION, ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL]
    for given, wanted in zip(found, expected, strict=True):
        assert [given[label] for label in order] == pytest.approx(list(wanted), abs=1e-5)
        assert sum(given.values()) == pytest.approx(1)


def test_refchecker_labels_by_it_in_one_pass_and_in_windows(folder: str) -> None:
    model = scripted(TRIPLETS)
    evaluator = RefChecker(model, checker=folder)
    found = evaluator.invoke(SAMPLE)
    assert found.details["checker"] == "nli"
    assert found.details["windows"] > 2
    assert model.stages == ["extraction"]
    assert found.error is None
    for claim in found.claims:
        assert claim.label is max(claim.probabilities, key=claim.probabilities.__getitem__)


def test_a_model_with_other_classes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="three-way NLI"):
        RefChecker(scripted(""), checker=tiny_cross_encoder(tmp_path, ["a", "b", "c"]))


class FakeEncoder:
    """Stand in for a cross-encoder, with a function for its scores."""

    def __init__(self, score: Callable[[int], Any]) -> None:
        classes = {0: "entailment", 1: "neutral", 2: "contradiction"}
        self.model = SimpleNamespace(config=SimpleNamespace(id2label=classes))
        self.scored = 0
        self._score = score

    def predict(self, pairs: Any, **options: Any) -> Any:
        self.scored += len(pairs)
        return self._score(len(pairs))


def test_equal_pairs_are_scored_once() -> None:
    encoder = FakeEncoder(lambda count: np.tile([0.5, 0.3, 0.2], (count, 1)))
    found = NLI(encoder).predict([("a", "b"), ("c", "d"), ("a", "b")])
    assert encoder.scored == 2
    expected = {
        ClaimLabel.ENTAILMENT: 0.5,
        ClaimLabel.NEUTRAL: 0.3,
        ClaimLabel.CONTRADICTION: 0.2,
    }
    assert found[0] == found[2] == expected
