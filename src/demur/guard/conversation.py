"""Find what a conversation adds to an answer's sources, and the facts among its instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from demur._text import sentences
from demur.evaluators import only_asks, tells_fact
from demur.shapes import (
    Reader,
    distinct,
    find_messages,
    said_by_user,
    tool_results,
    under_context_keys,
)


def conversation_of(
    input: Any, question: str | None, reader: Reader | None
) -> tuple[Document, ...]:
    """Return the documents that a conversation adds to an answer's contexts.

    These are the documents in the input, the results of tools in all turns, and the user's
    statements in each turn. The assistant's messages are no source, since they may be wrong.

    Args:
        input: The input of the guard.
        question: The user's latest message, which some inputs do not have among their messages.
        reader: Where the messages are in the input; None: see `find_messages`.

    Raises:
        DemurError: `reader` finds no messages.
    """
    messages = find_messages(input, reader)
    documents = under_context_keys(input)
    return distinct([*documents, *tool_results(messages), *_said(messages, question)])


def facts_of(input: Any, instructions: str | None) -> tuple[Document, ...]:
    """Return the facts in the system messages of a call, as one document.

    A system message also orders ("Say that we are open on Sundays"), and what it orders is no
    evidence. So only sentences that tell something count.

    Args:
        input: The input of the guard, which may have system messages.
        instructions: The system message that the chain gave its model, if it is known.
    """
    found = [str(one.text) for one in find_messages(input) if isinstance(one, SystemMessage)]
    told = dict.fromkeys([*found, instructions or ""])
    facts = [
        text[start:end].strip()
        for text in told
        for start, end in sentences(text)
        if tells_fact(text[start:end])
    ]
    return (Document("\n".join(dict.fromkeys(facts))),) if facts else ()


def _said(messages: Sequence[BaseMessage], question: str | None) -> list[Document]:
    """Return the user's statements in each turn, one document for each message.

    Sentences that only ask are left out. A question such as "Why is the tower 31 metres tall?"
    takes something for granted, and would support an answer that repeats it.
    """
    texts = [str(message.text) for message in messages if _is_users(message)]
    if question is not None and texts[-1:] != [question]:
        texts.append(question)
    stated = ((turn, _statements(text)) for turn, text in enumerate(texts, start=1))
    return [said_by_user(text, turn) for turn, text in stated if text]


def _is_users(message: BaseMessage) -> bool:
    # LangChain's summary of a conversation is a human message too, but a model wrote it.
    return isinstance(message, HumanMessage) and "lc_source" not in message.additional_kwargs


def _statements(text: str) -> str:
    """Return a text without the sentences that only ask."""
    kept, end = "", 0
    for start, stop in sentences(text):
        if only_asks(text[start:stop]):
            kept, end = kept + text[end:start], stop
    return (kept + text[end:]).strip()
