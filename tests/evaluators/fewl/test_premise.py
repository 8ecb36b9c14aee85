"""Test which text of a pair is the premise, and what each order misses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from support.fewl import QUESTION, fewl, store

SAMPLE = {
    "question": QUESTION,
    "answer": "Ada did.",
    "metadata": {"correct": ["It was Ada."], "incorrect": ["Bo, perhaps."]},
}
NEIGHBORS = [
    ("0 1 | who built the bridge?", ["Cyrus built it.", "Di built it."]),
    ("0.6 0.8 | who dug the well?", ["Ed dug it.", "Flo dug it."]),
]


def longer(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Score a pair by the length of its premise relative to its hypothesis."""
    return [len(premise) / (len(premise) + 2 * len(hypothesis)) for premise, hypothesis in pairs]


def turned(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Score a pair by the length of its hypothesis relative to its premise."""
    return longer([(hypothesis, premise) for premise, hypothesis in pairs])


@pytest.mark.parametrize("weighting", ["expertise", "uniform", "ideal"])
def test_the_reference_may_be_the_premise(weighting: str) -> None:
    def details(similarity: Any, premise: str) -> Any:
        options = {"neighbors": store(*NEIGHBORS), "penalty": True, "weighting": weighting}
        found = fewl(similarity=similarity, premise=premise, **options).invoke(SAMPLE)
        assert found.score is not None
        return {name: term for name, term in found.details.items() if name != "usage_by_stage"}

    assert details(longer, "answer") == details(turned, "reference")
    assert details(turned, "answer") == details(longer, "reference")
    terms = ["similarities", "penalties"]
    if weighting != "uniform":
        terms.append("expertise")
    first, second = details(longer, "answer"), details(longer, "reference")
    assert all(first[term] != second[term] for term in terms)
