"""What an agent's messages say: the question, the sources, and which of them is an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

from demur.guard import Feedback
from demur.guard.messages import last_written

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


def calls_tools(message: AIMessage) -> bool:
    """Whether a message is a step on the way to an answer. An agent ends with a garbled call."""
    return bool(message.tool_calls)


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
