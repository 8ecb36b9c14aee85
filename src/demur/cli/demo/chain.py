"""Build the chain of the demonstration, as you would write it with LangChain, and its guard."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from demur import Cite, Guard, RefChecker, Repair, Retrieve, widen

LONGEST_ANSWER = 60
"""The maximal number of tokens of an answer."""

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


def rag_chain(model: BaseChatModel, retriever: BaseRetriever) -> Runnable[str, str]:
    """Return a chain for retrieval-augmented generation, from a question to an answer."""
    found = {"context": retriever | joined, "question": RunnablePassthrough()}
    return found | PROMPT | model.bind(max_tokens=LONGEST_ANSWER) | StrOutputParser()


def joined(documents: Sequence[Document]) -> str:
    """Return the passages as one text."""
    return "\n\n".join(document.page_content for document in documents)


def guarded(model: BaseChatModel, retriever: BaseRetriever) -> Guard[str, str]:
    """Return the chain with a guard that checks each answer.

    If a claim is not in the passages, the chain's retriever searches again, and the chain answers
    again. If a passage contradicts a claim, the model answers again with that passage quoted. An
    answer that passes shows the passages that support it.
    """
    wide = widen(retriever, factor=1)
    policy = {"neutral": Retrieve(wide), "any": Repair(model)}
    return Guard(rag_chain(model, wide), RefChecker(model), on_fail=policy, on_pass=Cite())
