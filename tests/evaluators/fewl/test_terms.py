"""Test which pairs are compared, and that each similarity lands in its place."""

from __future__ import annotations

import numpy as np
import pytest

from demur.evaluators.fewl import terms
from demur.evaluators.fewl.formula import Normalization
from demur.evaluators.fewl.terms import Similarities, Texts

TEXTS = Texts(
    answer="y",
    reference_answers=("h1", "h2"),
    corrected=("c1", "c2", "c3"),
    wrong=("w1", "w2"),
    neighbors=(("a1", "a2"), ("b1", "b2"), ("only",), ("d1", "d2", "d3")),
)


def test_each_similarity_comes_to_its_place() -> None:
    pairs = TEXTS.pairs()
    assert len(pairs) == 2 * 3 + 2 * 2 + 2 + 2 * 4
    where = {pair: at for at, pair in enumerate(pairs)}
    found = TEXTS.read(np.arange(len(pairs), dtype=float))
    for i, reference in enumerate(TEXTS.reference_answers):
        assert found.answer[i] == where["y", reference]
        for k, text in enumerate(TEXTS.corrected):
            assert found.corrected[i, k] == where[reference, text]
        for k, text in enumerate(TEXTS.wrong):
            assert found.wrong[i, k] == where[reference, text]
    said_by_each = [["a1", "b1", "only", "d1"], ["a2", "b2", "only", "d2"]]
    assert [[pairs[int(at)][1] for at in row] for row in found.neighbors] == said_by_each


def test_truthfulness_and_laziness_keep_their_scale() -> None:
    found = Similarities(
        np.array([[1.0], [0.0]]),
        np.array([[0.0], [0.0]]),
        np.array([0.8, 0.2]),
        np.array([[0.3], [0.5]]),
    )
    names: tuple[Normalization, ...] = ("paper", "mean_one")
    for normalization in names:
        scored = terms.score(found, found.expertise, normalization=normalization)
        share = np.e / (np.e + 1)
        assert scored.truthfulness == pytest.approx(0.8 * share + 0.2 * (1 - share))
        assert scored.laziness == pytest.approx(0.4)
