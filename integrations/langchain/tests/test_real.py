"""Test the decision model with the real local model as the judge."""

from __future__ import annotations

import pytest

from demur.errors import LocalModelError

pytestmark = pytest.mark.real

LOUVRE = "The Louvre, in Paris, opened as a museum in 1793."


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("The Louvre opened as a museum in 1793.", "Entailment"),
        ("The Louvre opened as a museum in 1851.", "Contradiction"),
    ],
)
def test_the_local_model_answers_and_counts_its_tokens(claim: str, label: str) -> None:
    pytest.importorskip("langchain_core.decisions")
    pytest.importorskip("xllamacpp", reason="the local runtime is not installed: demur[local]")
    from langchain_demur import ClaimDecisionModel

    try:
        model = ClaimDecisionModel("local")
    except LocalModelError as error:
        pytest.skip(f"the 1.5B model is not here: {error}")
    questions = {"label": model.LABEL, "supported": model.SUPPORTED}
    found = model.invoke({"state": {"reference": LOUVRE, "claim": claim}, "questions": questions})
    assert found.choices["label"].choice == label
    assert (found.nouls["supported"].noul >= 0.5) is (label == "Entailment")
    assert found.usage is not None
    assert found.usage["input_tokens"] > 0
