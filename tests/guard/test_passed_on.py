"""Test that chains which return their input do not return the feedback that a guard added to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from demur import Evaluation, Guard, Regenerate, Sample
from demur.guard import Feedback

QUESTION, WRONG, RIGHT = "How tall is the tower?", "It is 97 metres tall.", "It is 84 metres tall."
FOUND = Document("The tower is 84 metres tall.")


def judge(sample: Sample) -> Evaluation:
    passed = sample.answer == RIGHT
    return Evaluation(name="judge", passed=passed, explanation=f"Nobody says: {sample.answer}")


def answers() -> Callable[[Any], str]:
    said = iter([WRONG, RIGHT])
    return lambda given: next(said)


def told(question: str, feedback: Feedback) -> str:
    assert WRONG in feedback.text
    return f"{question}\n{feedback.text}"


def heard(way: str, guard: Guard[Any, Any], given: Any) -> tuple[Any, str]:
    """Return the output of a call, and everything that a client sees of the call."""

    async def events() -> list[Any]:
        seen = guard.astream_events(given, version="v2", exclude_tags=["nostream"])
        return [event async for event in seen]

    if way == "invoke":
        output = guard.invoke(given)
        return output, repr(output)
    if way == "events":
        seen = asyncio.run(events())
        return seen[-1]["data"]["output"], repr(seen)
    chunks = list(guard.stream(given))
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    return total, repr(chunks)


def guarded(chain: Runnable[Any, Any], tell: Any) -> Guard[Any, Any]:
    return Guard(chain, RunnableLambda(judge), on_fail=Regenerate(tell))


@pytest.mark.parametrize("way", ["invoke", "stream", "events"])
def test_a_key_of_the_input_is_passed_on_as_it_was_given(way: str) -> None:
    chain: Any = RunnablePassthrough.assign(answer=answers(), again=itemgetter("input"))

    def tell(given: Any, why: Feedback) -> Any:
        told_of = {"input": told(given["input"], why), "problems": why.text, "retries": 1}
        return {**given, **told_of}

    output, seen = heard(way, guarded(chain, tell), {"input": QUESTION, "language": "en"})
    assert output == {
        "input": QUESTION,
        "language": "en",
        "answer": RIGHT,
        "again": QUESTION,
        "retries": 1,
    }
    assert "97 metres" not in seen


def test_an_input_that_is_a_text_is_passed_on_as_it_was_given() -> None:
    chain: Any = {"question": RunnablePassthrough()} | RunnablePassthrough.assign(answer=answers())
    output = guarded(chain, told).invoke(QUESTION)
    assert output == {"question": QUESTION, "answer": RIGHT}


def test_an_input_that_is_passed_on_as_a_whole_is_the_given_one() -> None:
    chain: Any = {"given": RunnablePassthrough(), "answer": RunnableLambda(answers())}
    guard = guarded(
        RunnablePassthrough() | chain, lambda given, why: {"input": told(given["input"], why)}
    )
    output = guard.invoke({"input": QUESTION})
    assert output == {"given": {"input": QUESTION}, "answer": RIGHT}


def test_messages_that_tell_of_the_answer_are_left_out() -> None:
    say = answers()

    def state(given: Any) -> Any:  # A graph gives messages ids.
        asked = [one.model_copy(update={"id": str(at)}) for at, one in enumerate(given["messages"])]
        answer = say(given)
        return {"messages": [*asked, AIMessage(answer)], "answer": answer}

    def tell(given: Any, why: Feedback) -> Any:
        return {"messages": [*given["messages"], HumanMessage(told("Again.", why))]}

    guard = guarded(RunnableLambda(state), tell)
    output = guard.invoke({"messages": [HumanMessage(QUESTION)]})
    assert [one.content for one in output["messages"]] == [QUESTION, RIGHT]


def test_a_message_that_was_worded_anew_is_the_given_one() -> None:
    chain: Any = RunnablePassthrough.assign(answer=answers())
    history = [HumanMessage("Hello."), AIMessage("Hello!")]

    def tell(given: Any, why: Feedback) -> Any:
        return {"messages": [*given["messages"][:-1], HumanMessage(told(QUESTION, why))]}

    given = [*history, HumanMessage(QUESTION)]
    output = guarded(chain, tell).invoke({"messages": given})
    assert output["messages"] == given


def test_documents_that_were_found_stay() -> None:
    chain: Any = RunnablePassthrough.assign(answer=answers())
    guard = guarded(chain, lambda given, why: {**given, "context": [*given["context"], FOUND]})
    output = guard.invoke({"input": QUESTION, "context": [Document("Lund")]})
    assert output["context"] == [Document("Lund"), FOUND]


def test_a_context_that_tells_of_the_answer_is_the_given_one() -> None:
    chain: Any = RunnablePassthrough.assign(answer=answers())
    guard = guarded(chain, lambda given, why: {**given, "context": told("Lund", why)})
    assert guard.invoke({"input": QUESTION, "context": "Lund"})["context"] == "Lund"


def test_a_text_that_happens_to_be_one_of_the_feedback_stays() -> None:
    chain: Any = RunnablePassthrough.assign(answer=answers(), supported=lambda given: "yes")
    guard = guarded(chain, lambda given, why: {**given, "retry": "yes", "notes": ["yes"]})
    assert guard.invoke({"input": QUESTION}) == {
        "input": QUESTION,
        "answer": RIGHT,
        "supported": "yes",
    }


def test_what_the_chain_makes_itself_stays() -> None:
    numbers = np.arange(3)
    chain: Any = RunnablePassthrough.assign(
        answer=answers(), numbers=lambda given: numbers, tries=lambda given: given["try"]
    )
    guard = guarded(chain, lambda given, why: {**given, "try": 2})
    output = guard.invoke({"input": QUESTION, "try": 1})
    assert output["numbers"] is numbers
    assert output["tries"] == 2
