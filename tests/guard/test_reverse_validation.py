"""Test a chain that answers from memory, checked by Reverse Validation, then from documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import convert_to_messages
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableBranch

from demur import Guard, RefChecker, Repair, Retrieve, ReverseValidation, Sample
from demur.guard import UNCHECKED
from support.fakes import ScriptedModel, isolated, stage_of
from support.openai_server import OpenAIServer, openai_server
from support.rag import QUESTION, RIGHT, WRONG, application, make_retriever

KNOWN = "The Amber Tower, 84 metres tall, stands in Lund."
LETTER = "Dear reader, many thanks for your kind words about our work."


def script(answer: str) -> Callable[[dict[str, Any], int], str]:
    """Return the script of a model that knows a tower of 84 metres and repairs correctly."""
    checks = application(RIGHT)

    def say(request: dict[str, Any], number: int) -> str:
        messages = convert_to_messages(request["messages"])
        stage = stage_of(messages)
        if stage == "chain":
            return answer
        if stage == "construction":
            if isolated("passage", messages) == LETTER:
                return "Entity: none"
            height = "84" if "84" in isolated("passage", messages) else "97"
            return (
                f"Entity: the Amber Tower\nQuestion: Which tower in Lund is {height} metres tall?"
            )
        if stage == "access":
            return "Amber Tower" if "84" in isolated("question", messages) else "unknown"
        return checks(request, number)

    return say


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[OpenAIServer]:
    with openai_server(script(request.param)) as running:
        yield running


def guarded(server: OpenAIServer, checker: BaseChatModel | None = None) -> Guard[Any, Any]:
    """Return the guard of docs/methods/reverse-validation.md; RefChecker asks `checker`."""
    model = server.model()
    chain = ChatPromptTemplate.from_template("{question}") | model | StrOutputParser()
    check: RunnableBranch[Any, Any] = RunnableBranch(
        (_has_documents, RefChecker(checker or model)), ReverseValidation(model)
    )
    search = Retrieve(make_retriever(), then=Repair(model))
    return Guard(chain, check, on_fail={"mismatch": search, "undetermined": search})


def dead() -> ScriptedModel:
    def script(stage: str, messages: Any) -> str:
        raise RuntimeError("out of order")

    return ScriptedModel(script=script)


def _has_documents(sample: Sample) -> bool:
    return bool(sample.contexts)


@pytest.mark.parametrize("server", [WRONG], indirect=True, ids=["wrong"])
def test_a_mismatch_has_documents_retrieved(server: OpenAIServer) -> None:
    found = guarded(server).with_trace().invoke({"question": QUESTION})
    assert (found.output, found.trace.outcome) == (RIGHT, "recovered")
    first, second = found.trace.attempts
    (mismatch,) = first.evaluations
    assert (mismatch.failure, mismatch.details["reply"]) == ("mismatch", "unknown")
    assert second.recovery == "retrieve"
    assert first.contexts == ()
    assert any("84 metres" in one.page_content for one in second.contexts)
    (checked,) = second.evaluations
    assert checked.name == "RefChecker"


@pytest.mark.parametrize("server", [WRONG, LETTER], indirect=True, ids=["wrong", "letter"])
def test_an_answer_that_refchecker_cannot_check_does_not_leave(server: OpenAIServer) -> None:
    found = guarded(server, dead()).with_trace().invoke({"question": QUESTION})
    assert (found.output, found.trace.outcome) == (UNCHECKED, "evaluator_failed")
    assert len(found.trace.attempts) == 2
