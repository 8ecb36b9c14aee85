"""What a conversation says beside an answer's own contexts: earlier sources, and the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage

from demur._text import sentences
from demur.evaluators import only_asks
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
    """What a conversation says, for an answer to be held against beside its own contexts.

    That is the documents in the input, what tools returned in all turns, and what the user stated
    in each. What the assistant said is no source: it may be wrong.

    Args:
        input: What the guard was given.
        question: What the user said last, which is not among the messages of some inputs.
        reader: Where the messages are in the input; None: see `find_messages`.

    Raises:
        DemurError: `reader` finds no messages.
    """
    messages = find_messages(input, reader)
    documents = under_context_keys(input)
    return distinct([*documents, *tool_results(messages), *_said(messages, question)])


def _said(messages: Sequence[BaseMessage], question: str | None) -> list[Document]:
    """What the user stated in each turn, one document a message.

    What a question takes for granted ("Why is the tower 31 metres tall?") would support an answer
    that repeats it, so sentences that only ask are left out.
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
    """A text without the sentences that only ask."""
    kept, end = "", 0
    for start, stop in sentences(text):
        if only_asks(text[start:stop]):
            kept, end = kept + text[end:start], stop
    return (kept + text[end:]).strip()
