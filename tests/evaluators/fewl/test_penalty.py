"""Test when the penalty is in force, and what a threshold means without it."""

from __future__ import annotations

from typing import Any

import pytest

from demur import Threshold
from demur.similarity import Similarity
from support.fewl import QUESTION, fewl, half, model, store
from support.vectors import Told

SAMPLE = {"question": QUESTION, "answer": "Ada did."}
NEIGHBORS = [
    ("0 1 | who built the bridge?", ["Cy built it.", "Di built it."]),
    ("0.6 0.8 | who dug the well?", ["Ed dug it.", "Flo dug it."]),
]
COSINES = {
    "a name": "cosine",
    "embeddings": Told(),
    "a similarity": Similarity(half, "cosine", "cosine:mine"),
}


@pytest.mark.parametrize("similarity", COSINES.values(), ids=COSINES)
def test_by_default_cosine_has_no_penalty(similarity: Any) -> None:
    given = fewl(similarity=similarity, neighbors=store(*NEIGHBORS), penalty="auto")
    assert given.needs_neighbors is False
    assert fewl(similarity=similarity, penalty=True).needs_neighbors is True
    assert "penalty=False" in given.fingerprints["formula"]
    assert given.fingerprints == fewl(similarity=similarity, penalty=False).fingerprints
    assert given.fingerprints != fewl(similarity=similarity, penalty=True).fingerprints


@pytest.mark.parametrize("similarity", ["rouge", half], ids=["a name", "a function"])
def test_by_default_another_similarity_has_the_penalty(similarity: Any) -> None:
    given = fewl(similarity=similarity, neighbors=store(*NEIGHBORS), penalty="auto")
    assert given.needs_neighbors is True
    assert fewl(similarity=similarity, penalty=False).needs_neighbors is False
    assert "penalty=True" in given.fingerprints["formula"]
    found = given.invoke(SAMPLE)
    assert found.details["penalty"] is True
    assert found.details["neighbors_used"] == 2
    assert found.details["penalties"] is not None


def test_a_threshold_is_not_applied_to_a_score_without_its_penalty() -> None:
    asked = model()
    options = {"penalty": True, "k_neighbors": 2, "threshold": 0.1}
    given = fewl(asked, neighbors=store(), **options)
    found = given.invoke(SAMPLE)
    assert found.undetermined
    assert (found.score, found.label, found.passed) == (None, None, None)
    assert "no neighbouring question was found" in (found.error or "")
    assert "fit() other questions first, or penalty=False" in (found.error or "")
    bound = Threshold(
        on_abstain="pass",
        value=0.1,
        method="percentile",
        percentile=50,
        samples=2,
        passed=1,
        fingerprints=given.fingerprints,
    )
    assert given.model_copy(update={"threshold": bound}).invoke(SAMPLE).error == found.error
    # The question itself is in the store by now, but it is not its own neighbour.
    # Two calls run side by side, in any order.
    assert sorted(asked.stages) == ["pairs", "reference"]
    # Nor is a paraphrase of it.
    alike = store(("0.9 0.1 | who set light to the tower?", ["Gus.", "Hal."]))
    assert fewl(neighbors=alike, **options).invoke(SAMPLE).error == found.error
    # A mean over fewer neighbours than wanted has the same scale, and so has a penalty of zero.
    for some in (NEIGHBORS[:1], NEIGHBORS):
        decided = fewl(neighbors=store(*some), **{**options, "threshold": -1}).invoke(SAMPLE)
        assert decided.passed is True
    assert fewl(neighbors=store(), threshold=0.1).invoke(SAMPLE).passed is True


def test_a_question_scored_before_is_the_neighbour_of_the_next() -> None:
    given = fewl(penalty=True, threshold=-1)
    assert given.invoke({**SAMPLE, "question": "0 1 | who dug the well?"}).undetermined
    assert given.invoke(SAMPLE).passed is True
