"""FEWL on the real local model and the real embeddings: two easy questions, with a margin."""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

from demur import FEWL
from demur.evaluators import NeighborStore

pytestmark = pytest.mark.real

CASES = [
    ("What is the capital of France?", "It is Paris.", "It is Marseille."),
    ("Who wrote Romeo and Juliet?", "William Shakespeare did.", "Charles Dickens did."),
]


def test_right_answers_score_above_wrong_ones(model: BaseChatModel) -> None:
    store = NeighborStore()
    fewl = FEWL(model, n_answers=2, n_wrong=2, min_pairs=1, penalty=True, neighbors=store)
    fitted = fewl.fit([question for question, _, _ in CASES])
    assert (fitted.done, fitted.failed) == (len(CASES), ())
    assert fitted.usage.calls == len(CASES)

    found = [[fewl.invoke({"question": q, "answer": a}) for a in (r, w)] for q, r, w in CASES]

    right = [pair[0].score or 0 for pair in found]
    wrong = [pair[1].score or 0 for pair in found]
    assert all(one.error is None for pair in found for one in pair)
    assert all(one.details["neighbors_used"] == 1 for pair in found for one in pair)
    # Small models write bad pairs, but some can be read.
    assert sum(pair[0].details["pairs_used"] for pair in found) >= 1
    assert [pair[1].usage.calls for pair in found] == [0] * len(CASES)
    assert sum(right) > sum(wrong)
