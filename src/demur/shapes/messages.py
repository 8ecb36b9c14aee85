"""What an agent's messages say: what was written last, and what its tools returned."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage


def last_written(messages: Sequence[BaseMessage]) -> AIMessage | None:
    """The last message that the model wrote."""
    return next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)


def this_turn(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """What came after the user's last message; all of it where there is none."""
    for at in range(len(messages) - 1, -1, -1):
        if isinstance(messages[at], HumanMessage):
            return messages[at + 1 :]
    return messages


def sources(messages: Sequence[BaseMessage]) -> tuple[Document, ...]:
    """What tools returned in this turn; if there is nothing of it, in the whole conversation.

    A tool's artifact counts if it is documents (`response_format="content_and_artifact"`), else its
    text does. What a failed tool said is no source.
    """
    return _returned(this_turn(messages)) or _returned(messages)


def _returned(messages: Sequence[BaseMessage]) -> tuple[Document, ...]:
    sources: list[Document] = []
    for message in messages:
        if not isinstance(message, ToolMessage) or message.status == "error":
            continue
        artifact = message.artifact
        documents = [artifact] if isinstance(artifact, Document) else artifact
        if (
            isinstance(documents, Sequence)
            and documents
            and all(isinstance(document, Document) for document in documents)
        ):
            sources += documents
        elif str(message.text).strip():
            metadata = {"tool": message.name, "tool_call_id": message.tool_call_id}
            sources.append(Document(str(message.text), metadata=metadata))
    return tuple(sources)
