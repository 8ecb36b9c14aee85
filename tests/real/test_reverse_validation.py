"""Reverse Validation on the real local model: what it knows well, and what is made up of it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableBranch, RunnableLambda

from demur import Guard, RefChecker, ReverseValidation, Sample

pytestmark = pytest.mark.real

SHAKESPEARE = "William Shakespeare was an English playwright who wrote Hamlet and Romeo and Juliet."
PARIS = "Paris is the capital of France. The Eiffel Tower stands there."
MADE_UP = "Paris is the capital of Japan. It is the largest city of Asia."


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


def test_a_mismatch_has_the_answer_given_again_from_documents(model: BaseChatModel) -> None:
    check: RunnableBranch[Any, Any] = RunnableBranch(
        (_has_documents, RefChecker(model)), ReverseValidation(model)
    )
    guard = Guard(
        RunnableLambda(lambda asked: MADE_UP),
        check,
        model=model,
        retriever=RunnableLambda(lambda query: [Document(PARIS)]),
    )
    found = guard.with_trace().invoke("What is Paris?")
    first, *later = found.trace.attempts
    assert [str(one.failure) for one in first.evaluations] == ["mismatch"]
    assert later[0].recovery == "retrieve"
    assert later[0].contexts == (Document(PARIS),)
    assert "Japan" not in found.output


def _has_documents(sample: Sample) -> bool:
    return bool(sample.contexts)
