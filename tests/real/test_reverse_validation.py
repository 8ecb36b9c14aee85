"""Reverse Validation on the real local model: what it knows well, and what is made up of it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableBranch, RunnableLambda

from demur import Guard, RefChecker, ReverseValidation, Sample

pytestmark = pytest.mark.real

# What is asked, what it is about, a right answer and a made-up one.
CASES = [
    (
        "Who was William Shakespeare?",
        "William Shakespeare",
        "William Shakespeare was an English playwright who wrote Hamlet and Romeo and Juliet.",
        "William Shakespeare was a Chilean painter who discovered penicillin in 1928.",
    ),
    (
        "What is Paris?",
        "Paris",
        "Paris is the capital of France. The Eiffel Tower stands there.",
        "Paris is the capital of Japan. It is the largest city of Asia.",
    ),
]


def test_right_answers_lead_back_and_made_up_ones_do_not(model: BaseChatModel) -> None:
    check = ReverseValidation(model, variant="qg")
    for question, entity, true, false in CASES:
        passed = check.invoke({"answer": true, "metadata": {"entity": entity}})
        failed = check.invoke({"question": question, "answer": false})  # it finds the entity itself
        assert (passed.label, failed.label) == ("factual", "non-factual"), (passed, failed)
        assert (failed.details["entity"], failed.details["entity_source"]) == (entity, "question")
        assert (passed.usage.calls, failed.usage.calls) == (2, 2)
        for found in (passed, failed):
            assert entity.lower() not in str(found.details["query"]).lower()


def test_a_list_of_requirements_leads_back_with_a_percentage(model: BaseChatModel) -> None:
    _, entity, true, _ = CASES[0]
    check = ReverseValidation(model, variant="em", threshold=0)
    found = check.invoke({"answer": true, "metadata": {"entity": entity}})
    assert found.label == "factual", found
    assert str(found.details["query"]).startswith("1. ")
    assert found.details["percentage"] is not None
    assert found.usage.calls == 2


def test_a_mismatch_has_the_answer_given_again_from_documents(model: BaseChatModel) -> None:
    question, _, true, false = CASES[1]
    check: RunnableBranch[Any, Any] = RunnableBranch(
        (_has_documents, RefChecker(model)), ReverseValidation(model)
    )
    guard = Guard(
        RunnableLambda(lambda asked: false),
        check,
        model=model,
        retriever=RunnableLambda(lambda query: [Document(true)]),
    )
    found = guard.with_trace().invoke(question)
    first, *later = found.trace.attempts
    assert [str(one.failure) for one in first.evaluations] == ["mismatch"]
    assert later[0].recovery == "retrieve"
    assert later[0].contexts == (Document(true),)
    assert "Japan" not in found.output


def _has_documents(sample: Sample) -> bool:
    return bool(sample.contexts)
