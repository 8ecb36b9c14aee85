"""What an agent's messages say: the question, the sources, and which of them is an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from demur.guard import Feedback

MARK = "demur"
"""The key of `response_metadata` under which demur writes."""

_RETRY = """\
Your answer was checked against the sources before it was sent, and it does not hold:
{problems}
It was not sent. Answer the question again, saying only what the sources support."""


def question_in(messages: Sequence[BaseMessage]) -> str | None:
    """What the user said last."""
    asked = [message for message in messages if isinstance(message, HumanMessage)]
    return str(asked[-1].text) if asked else None


def last_written(messages: Sequence[BaseMessage]) -> AIMessage | None:
    """The last message that the model wrote."""
    return next((one for one in reversed(messages) if isinstance(one, AIMessage)), None)


def calls_tools(message: AIMessage) -> bool:
    """Whether a message is a step on the way to an answer. An agent ends with a garbled call."""
    return bool(message.tool_calls)


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
    found: list[Document] = []
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
            found += documents
        elif str(message.text).strip():
            metadata = {"tool": message.name, "tool_call_id": message.tool_call_id}
            found.append(Document(str(message.text), metadata=metadata))
    return tuple(found)


def without_text(message: AIMessage) -> AIMessage:
    """A message without the text beside its tool calls, which nobody has checked."""
    content = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": ""})
    kept = [one for one in content if isinstance(one, dict) and one.get("type") != "text"]
    return message.model_copy(update={"content": kept})


def only_last_speaks(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Of several messages that the model wrote, only the last was judged."""
    last = last_written(messages)
    return [
        without_text(one) if isinstance(one, AIMessage) and one is not last else one
        for one in messages
    ]


def marked(message: AIMessage, mark: Mapping[str, Any]) -> AIMessage:
    """A copy of a message with something under demur's key in its `response_metadata`."""
    metadata = {**message.response_metadata, MARK: dict(mark)}
    return message.model_copy(update={"response_metadata": metadata})


def tell(messages: Sequence[AnyMessage], feedback: Feedback) -> list[AnyMessage]:
    """The messages, and after them what was wrong with the answer and what was found about it."""
    text = _RETRY.format(problems=feedback.text)
    if feedback.documents:
        found = "\n\n".join(document.page_content for document in feedback.documents)
        text = f"{text}\n\nFurther sources:\n{found}"
    return [*messages, HumanMessage(text)]
