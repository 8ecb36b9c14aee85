"""The chain of the demonstration and its guard, with replies in place of a model."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from demur.demo.chain import guarded, rag_chain
from support.fakes import ScriptedModel

TRIPLET = '("sample", "picks", "elements")'
GIVEN = {"question": "How do I pick elements?", "search": "How do I pick elements?"}


class Queries(BaseRetriever):
    """Finds the query itself; keeps what it was asked."""

    asked: list[str] = Field(default_factory=list)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.asked.append(query)
        return [Document(page_content=f"found for: {query}", metadata={"title": "m.f"})]


def model(answers: Sequence[str], labels: Sequence[str] = ()) -> ScriptedModel:
    """Gives these answers, of which each states one thing, labelled in turn."""
    given, judged = iter(answers), iter(labels)

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "chain":
            return next(given)
        return TRIPLET if stage == "extraction" else f"1. {next(judged)}"

    return ScriptedModel(script=script)


def test_the_chain_answers_from_what_it_searched_for() -> None:
    chat, retriever = model(["sample picks elements."]), Queries()
    answer = rag_chain(chat, retriever).invoke({"question": "Which?", "search": "elements"})
    assert answer == "sample picks elements."
    assert retriever.asked == ["elements"]
    prompt = chat.requests[0][-1].content
    assert "found for: elements" in prompt
    assert "Question: Which?" in prompt


def test_an_answer_that_fails_is_given_anew_from_a_search_for_its_claims() -> None:
    answers = ["sample picks elements.", "sample picks all elements."]
    chat, retriever = model(answers, ["Neutral", "Entailment"]), Queries()
    found = guarded(rag_chain(chat, retriever), chat).with_trace().invoke(GIVEN)
    assert found.trace.outcome == "recovered"
    assert found.output == answers[1]
    assert retriever.asked == [GIVEN["question"], "sample picks elements"]
    assert found.trace.attempts[0].question == GIVEN["question"]
    (passage,) = found.trace.attempts[1].contexts
    assert passage.page_content == "found for: sample picks elements"


def test_after_a_second_failure_it_refuses() -> None:
    answers = ["sample picks elements.", "sample picks all elements."]
    chat = model(answers, ["Neutral", "Contradiction"])
    found = guarded(rag_chain(chat, Queries()), chat).with_trace().invoke(GIVEN)
    assert found.trace.outcome == "abstained"
    assert len(found.trace.attempts) == 2
    assert "sample" not in found.output
