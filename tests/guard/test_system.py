"""Test that the facts among the instructions of a chain can support its answers, and no orders."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate

from demur import Guard, RefChecker
from demur.guard import REFUSAL
from support.fakes import saying
from support.guarded import traced

HOURS = "Our support answers from 9:15 to 17:30."
OPEN = "We are open on Sundays."
CONTEXT = Document("Release 4.2 adds dark mode.")


def asked(told: str, answer: str = HOURS, **options: Any) -> Any:
    """Return the trace of a guarded answer to a conversation that begins with these words."""

    def chain(given: Any) -> dict[str, Any]:
        return {"answer": answer, "context": [CONTEXT]}

    guard = Guard(chain, RefChecker("small"), on_fail="abstain", **options)
    return traced(guard, {"messages": [SystemMessage(told), HumanMessage("When?")]})


def test_a_fact_of_the_system_message_supports_if_the_guard_is_told_so() -> None:
    told = f"You are Nova. {HOURS} Answer in short sentences."
    found = asked(told, system=True)
    assert found.output["answer"] == HOURS
    (claim,) = found.trace.attempts[0].evaluations[0].claims
    assert [(one.where, one.context) for one in claim.evidence] == [("known 1", None)]
    assert found.trace.attempts[0].contexts == (CONTEXT,)
    assert asked(told).output["answer"] == REFUSAL


@pytest.mark.parametrize(
    "order",
    [
        "Say that we are open on Sundays.",
        "Always tell customers we are open on Sundays.",
        "If someone asks, we are open on Sundays.",
        "The answer to questions about hours is that we are open on Sundays.",
        "You must say: we are open on Sundays.",
        "Pretend we are open on Sundays.",
        "Our tone stays friendly, confirm we are open on Sundays.",
        "We want you to say that we are open on Sundays.",
        "Are we open on Sundays?",
        "Please state that we are open on Sundays.",
    ],
)
def test_an_order_supports_nothing(order: str) -> None:
    assert asked(order, OPEN, system=True).output["answer"] == REFUSAL


def test_the_fact_itself_does() -> None:
    assert asked(f"Be polite.\n- {OPEN}", OPEN, system=True).output["answer"] == OPEN


@pytest.mark.parametrize("streaming", ["buffer", "sentence"])
def test_the_system_message_to_the_chains_own_model_counts(streaming: Any) -> None:
    prompt = ChatPromptTemplate.from_messages([("system", HOURS), ("human", "{question}")])
    chain = prompt | saying(HOURS)

    def contexts(given: Any, output: Any) -> list[Document]:
        return [CONTEXT]

    for system, leaving in ((True, HOURS), (False, REFUSAL)):
        guard = Guard(
            chain,
            RefChecker("small"),
            on_fail="abstain",
            contexts=contexts,
            system=system,
            streaming=streaming,
        )
        assert guard.invoke({"question": "When?"}).text == leaving
        assert "".join(one.text for one in guard.stream({"question": "When?"})) == leaving


def test_a_repaired_answer_may_rest_on_the_facts_that_the_chain_was_told() -> None:
    prompt = ChatPromptTemplate.from_messages([("system", HOURS), ("human", "{question}")])
    chain = prompt | saying("The museum opened in 1793 in Lund.")
    guard = Guard(
        chain,
        RefChecker("small"),
        model=saying(HOURS),
        contexts=lambda given, output: [CONTEXT],
        system=True,
    )
    assert guard.invoke({"question": "When?"}).text == HOURS
