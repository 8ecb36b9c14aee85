"""Test FEWL with the real local model and embeddings on two easy questions."""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

from demur import FEWL
from demur.evaluators import NeighborStore

pytestmark = pytest.mark.real

QUESTION, OTHER = "What is the capital of France?", "Who wrote Romeo and Juliet?"


@pytest.mark.smoke
def test_right_answers_score_above_wrong_ones(model: BaseChatModel) -> None:
    store = NeighborStore()
    fewl = FEWL(model, n_answers=2, n_wrong=2, min_pairs=1, penalty=True, neighbors=store)
    store.add(OTHER, ["William Shakespeare wrote it.", "It is by Shakespeare."])
    fitted = fewl.fit([QUESTION])
    assert (fitted.done, fitted.failed, fitted.usage.calls) == (1, (), 1)

    right, wrong = (
        fewl.invoke({"question": QUESTION, "answer": answer})
        for answer in ("It is Paris.", "It is Marseille.")
    )

    assert right.details["pairs_used"] >= 1  # Small models write bad pairs, but some are usable.
    assert [one.details["neighbors_used"] for one in (right, wrong)] == [1, 1]
    assert (right.usage.calls, wrong.usage.calls) == (1, 0)
    assert right.score is not None
    assert wrong.score is not None
    assert right.score > wrong.score
