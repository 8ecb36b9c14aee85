"""Read messages: what was written last, what tools returned, and what the user said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.prompt_values import PromptValue

from demur._text import replace_surrogates
from demur.errors import DemurError
from demur.shapes.finding import as_documents, as_fields
from demur.shapes.forms import as_messages
from demur.shapes.readers import Reader, kind_of, read

_USER, _TURN, _TOOL = "user", "turn", "tool"


def last_written(messages: Sequence[BaseMessage]) -> AIMessage | None:
    """Return the last message that the model wrote, or None."""
    return next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)


def this_turn(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return the messages after the user's last one, or all messages if there is none."""
    for at in range(len(messages) - 1, -1, -1):
        if isinstance(messages[at], HumanMessage):
            return messages[at + 1 :]
    return messages


def sources(messages: Sequence[BaseMessage]) -> tuple[Document, ...]:
    """Return what tools returned in this turn, or in the whole conversation if that is nothing."""
    found = tool_results(messages)
    last = sum(isinstance(message, HumanMessage) for message in messages)
    return tuple(one for one in found if one.metadata[_TURN] == last) or found


def tool_results(messages: Sequence[BaseMessage]) -> tuple[Document, ...]:
    """Return what tools returned, with `tool`, `tool_call_id` and `turn` in the metadata.

    A tool's artifact counts if it is documents (`response_format="content_and_artifact"`), also
    as they dump themselves. Otherwise its text counts. The message of a failed tool is not a
    source. Turns count from 1, by the user's messages.
    """
    sources: list[Document] = []
    turn = 0
    for message in messages:
        turn += isinstance(message, HumanMessage)
        if not isinstance(message, ToolMessage) or message.status == "error":
            continue
        name, id_ = message.name, replace_surrogates(message.tool_call_id)
        about = {_TOOL: name and replace_surrogates(name), "tool_call_id": id_, _TURN: turn}
        if documents := _documents(message.artifact):
            sources += (
                document.model_copy(update={"metadata": {**document.metadata, **about}})
                for document in documents
            )
        elif str(message.text).strip():
            sources.append(Document(str(message.text), metadata=about))
    return tuple(sources)


def _documents(artifact: Any) -> tuple[Document, ...]:
    held = artifact if isinstance(artifact, Sequence) else [artifact]
    dumped = all(
        isinstance(one, Document) or (isinstance(one, Mapping) and "page_content" in one)
        for one in held
    )
    return (as_documents([*held]) or ()) if dumped else ()


def find_messages(input: Any, reader: Reader | None = None) -> list[BaseMessage]:
    """Return the messages of a conversation in a chain's input.

    The input itself may be the messages. In a mapping, a pydantic model or a dataclass, all lists
    of messages count, under any key. Single messages come after those in lists. A history that is a
    string is not read, since it does not show who said what.

    Raises:
        DemurError: `reader` was given, and the value that it finds is not messages.
    """
    if reader is not None:
        value = read(reader, input, "conversation")
        messages = _messages_in(value)
        if value and not messages:
            raise DemurError(
                f"conversation= found {kind_of(value)}, expected messages (a list of them)"
            )
        return messages
    input = as_fields(input)
    values = [*input.values()] if isinstance(input, Mapping) else [input]
    lone = [value for value in values if isinstance(value, BaseMessage)]
    listed = [value for value in values if not isinstance(value, BaseMessage)]
    return [message for value in (*listed, *lone) for message in _messages_in(value)]


def prompt_messages(prompt: Any) -> list[BaseMessage]:
    """Return a prompt, in any form that LangChain's chat models take, as messages.

    Raises:
        DemurError: The value is not a prompt.
    """
    if isinstance(prompt, PromptValue):
        return prompt.to_messages()
    if isinstance(prompt, str) and prompt:
        return [HumanMessage(prompt)]
    messages = as_messages(prompt) if isinstance(prompt, Sequence) and prompt else []
    if not messages:
        raise DemurError(f"expected a prompt, which is a text or messages, got {kind_of(prompt)}")
    return messages


def said_by_user(text: str, turn: int) -> Document:
    """Return what the user said as a document, for `is_users`. Turns count from 1."""
    return Document(text, metadata={"source": _USER, _TURN: turn})


def is_users(document: Document) -> bool:
    """Return whether a document holds what the user said in a conversation."""
    metadata = document.metadata
    said = metadata.get("source") == _USER and isinstance(metadata.get(_TURN), int)
    return said and _TOOL not in metadata


def _messages_in(value: Any) -> list[BaseMessage]:
    if isinstance(value, PromptValue):
        return value.to_messages()
    if isinstance(value, BaseMessage):
        return [value]
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    return as_messages(value) if listed else []
