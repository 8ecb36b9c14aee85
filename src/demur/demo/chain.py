"""The chain of the demonstration, as anyone would write it with LangChain, and its guard."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from demur import Abstain, Guard, RefChecker, Regenerate
from demur.guard.feedback import Feedback

LONGEST_ANSWER = 60
"""Tokens of an answer."""

PROMPT = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "You answer questions about Python's standard library from its documentation. Reply "
            "with one short, complete sentence: facts in plain text, no code.",
        ),
        ("human", "Documentation:\n{context}\n\nQuestion: {question}"),
    ]
)


def rag_chain(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[dict[str, str], str]:
    """Retrieval-augmented generation, from a `question` and what to `search` for to an answer."""
    context = itemgetter("search") | retriever | joined
    answer = PROMPT | model.bind(max_tokens=LONGEST_ANSWER) | StrOutputParser()
    return RunnablePassthrough.assign(context=context) | answer


def joined(documents: Sequence[Document]) -> str:
    """The passages as one text."""
    return "\n\n".join(document.page_content for document in documents)


def search_for_claims(given: dict[str, str], feedback: Feedback) -> dict[str, str]:
    """The same question with a search for the claims that failed.

    What a model says from memory names the thing that the question only describes.
    """
    return {**given, "search": "\n".join(feedback.queries)}


def guarded(
    chain: Runnable[dict[str, str], str], model: BaseChatModel
) -> Guard[dict[str, str], str]:
    """The chain, each answer checked: one that fails is given anew once, or else refused."""
    return Guard(chain, RefChecker(model), on_fail=[Regenerate(search_for_claims), Abstain()])
