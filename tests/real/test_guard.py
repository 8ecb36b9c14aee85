"""Test the guard with a real model that answers, judges and corrects."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate

from demur import CitationSupport, Cite, Guard, RefChecker

pytestmark = pytest.mark.real

TEXT = "The Louvre, in Paris, opened as a museum in 1793."
QUESTION = "When did the Louvre open as a museum?"
WRONG, RIGHT = "The Louvre opened as a museum in 1851.", "1793"


@pytest.mark.smoke
def test_a_wrong_answer_is_repaired_from_the_documents(model: BaseChatModel) -> None:
    def chain(given: dict[str, str]) -> dict[str, Any]:
        return {"answer": WRONG, "context": [TEXT]}

    guard = Guard(chain, RefChecker(model), model=model)
    found = guard.with_trace().invoke({"input": QUESTION})
    assert found.trace.attempts[0].verdict == "failed", found.trace
    assert found.trace.outcome == "recovered", found.trace
    assert RIGHT in found.output["answer"]
    assert found.trace.usage.calls >= 3  # two judgements and the repair
    assert found.trace.usage.input_tokens > 100


def test_a_wrong_value_is_repaired_with_the_text_beside_it(model: BaseChatModel) -> None:
    wrong = {"answer": WRONG, "year": 1851}
    guard = Guard(lambda given: wrong, RefChecker(model), model=model, contexts=lambda _: [TEXT])
    found = guard.with_trace().invoke({"input": QUESTION})
    (first,) = found.trace.attempts[0].evaluations
    assert {c.path for c in first.claims if c.label != "Entailment"} == {"$.answer", "$.year"}
    assert found.trace.outcome == "recovered", found.trace
    assert found.output["year"] == 1793
    assert RIGHT in found.output["answer"]


def test_a_supported_answer_of_a_real_chain_passes(model: BaseChatModel) -> None:
    prompt = ChatPromptTemplate.from_template(
        "{context}\n\nAnswer in one short sentence: {question}"
    )
    guard = Guard(prompt | model, RefChecker(model), model=model)
    found = guard.with_trace().invoke({"question": QUESTION, "context": TEXT})
    assert found.trace.outcome in ("passed", "recovered"), found.trace
    assert RIGHT in found.output.text
    assert found.trace.attempts[0].contexts[0].page_content == TEXT


@pytest.mark.smoke
def test_a_failing_sentence_is_taken_out_and_the_others_are_cited_for(model: BaseChatModel) -> None:
    said = "The Louvre is in Paris. The Louvre was built by Antoni Gaudí in 1926."
    guard = Guard(
        lambda given: {"answer": said, "context": [TEXT]},
        RefChecker(model),
        on_fail="strip",
        on_pass=Cite(),
    )
    found = guard.with_trace().invoke({"input": "Where is the Louvre?"})
    assert found.trace.outcome == "trimmed", found.trace
    assert found.output["answer"] == "The Louvre is in Paris [1]."
    assert found.output["citations"][0]["quote"] == TEXT


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("said", "label"),
    [
        ("The Louvre opened as a museum in 1793 [1].", "supported"),
        ("The Louvre opened as a museum in 1793 [2].", "unsupported"),
    ],
)
def test_a_citation_of_the_wrong_document_is_found(
    model: BaseChatModel, said: str, label: str
) -> None:
    other = "The ferry to the northern islands sails at noon from the old harbour."
    found = CitationSupport(RefChecker(model)).invoke({"answer": said, "contexts": [TEXT, other]})
    assert found.label == label, found


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("Your name is Ann Miller. The Louvre opened as a museum in 1793.", True),
        ("Your name is Ann Smith.", False),
        # The question presupposes this, which is no support.
        ("The Louvre has 12 towers.", False),
    ],
)
def test_a_conversation_supports_what_was_said_in_it(
    model: BaseChatModel, said: str, passes: bool
) -> None:
    talk = [
        ("user", "Hello! My name is Ann Miller."),
        ("assistant", "Hello! What can I do for you?"),
        ("user", "When did the Louvre open as a museum? And why has it got 12 towers?"),
        ("assistant", "It opened in 1851. Your name is Ann Smith."),
        ("user", "And what was my name again?"),
    ]
    chain = {"answer": said, "context": [TEXT]}
    guard = Guard(lambda given: chain, RefChecker(model), on_fail="abstain", conversation=True)
    found = guard.with_trace().invoke({"messages": talk})
    assert (found.trace.outcome == "passed") is passes, found.trace
