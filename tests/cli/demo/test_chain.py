"""Test the demonstration's chain and guard with a scripted model."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from demur.cli.demo.chain import guarded, rag_chain
from support.fakes import ScriptedModel, isolated

QUESTION = "How do I pick elements?"


class Queries(BaseRetriever):
    """Retrieve a document that quotes the query, and record the queries."""

    asked: list[str] = Field(default_factory=list)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.asked.append(query)
        return [Document(page_content=f"found for: {query}", metadata={"title": "m.f"})]


def model(answers: Sequence[str], labels: Sequence[str] = ()) -> ScriptedModel:
    """Return a model that gives these answers, one claim each, and these labels in order."""
    given, judged = iter(answers), iter(labels)

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage in ("chain", "repair"):
            return next(given)
        if stage == "joint":
            return f"1. {next(judged)}"
        subject, verb, what = isolated("answer", messages).rstrip(".").split(" ", 2)
        return f'("{subject}", "{verb}", "{what}")'

    return ScriptedModel(script=script)


def test_the_chain_answers_from_what_it_finds() -> None:
    chat, retriever = model(["sample picks elements."]), Queries()
    answer = rag_chain(chat, retriever).invoke(QUESTION)
    assert answer == "sample picks elements."
    assert retriever.asked == [QUESTION]
    prompt = chat.requests[0][-1].content
    assert f"found for: {QUESTION}" in prompt
    assert f"Question: {QUESTION}" in prompt


def test_a_claim_that_is_nowhere_is_searched_for() -> None:
    answers = ["sample picks elements.", "sample picks all elements."]
    chat, retriever = model(answers, ["Neutral", "Entailment"]), Queries()
    found = guarded(chat, retriever).with_trace().invoke(QUESTION)
    assert found.trace.outcome == "recovered"
    # The order in which the passages are checked, and so which one has the label, is not fixed.
    assert found.output in ("sample picks all elements [1].", "sample picks all elements [2].")
    assert sorted(retriever.asked) == sorted([QUESTION, QUESTION, "sample picks elements"])
    first, second = found.trace.attempts
    assert (first.question, second.recovery, second.origin) == (QUESTION, "retrieve", "chain")
    assert [one.page_content for one in second.contexts] == [
        f"found for: {QUESTION}",
        "found for: sample picks elements",
    ]
