"""Test Reverse Validation with the real local model, on a known entity and a made-up answer."""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

from demur import ReverseValidation

pytestmark = pytest.mark.real

SHAKESPEARE = "William Shakespeare was an English playwright who wrote Hamlet and Romeo and Juliet."
PARIS = "Paris is the capital of France. The Eiffel Tower stands there."
MADE_UP = "Paris is the capital of Japan. It is the largest city of Asia."


@pytest.mark.smoke
def test_a_right_answer_leads_back_and_a_made_up_one_does_not(model: BaseChatModel) -> None:
    check = ReverseValidation(model, variant="qg")
    right = check.invoke({"answer": SHAKESPEARE, "metadata": {"entity": "William Shakespeare"}})
    assert right.label == "factual", right
    wrong = check.invoke({"question": "What is Paris?", "answer": MADE_UP})
    assert wrong.label == "non-factual", wrong
    assert (wrong.details["entity"], wrong.details["entity_source"]) == ("Paris", "question")
    assert "shakespeare" not in str(right.details["query"]).lower()
    assert "paris" not in str(wrong.details["query"]).lower()
    assert (right.usage.calls, wrong.usage.calls) == (2, 2)


def test_a_list_of_requirements_leads_back_with_a_percentage(model: BaseChatModel) -> None:
    check = ReverseValidation(model, variant="em", threshold=0)
    found = check.invoke({"answer": PARIS, "metadata": {"entity": "Paris"}})
    assert found.label == "factual", found
    assert str(found.details["query"]).startswith("1. ")
    assert found.details["percentage"] is not None
    assert found.usage.calls == 2
