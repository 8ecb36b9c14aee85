"""Test which pairs are compared, and that each similarity lands in its place."""

from __future__ import annotations

import numpy as np

from demur.evaluators.fewl.terms import Texts

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
