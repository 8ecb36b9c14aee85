"""Give messages another text, and remove what stands beside their text."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from langchain_core.messages import BaseMessage

_KEPT = ("id", "name", "type", "role", "tool_call_id", "usage_metadata")
"""The fields that a message with another text keeps; none of them can hold the old text."""
_MARK = "demur"
"""The key of a message's `response_metadata` that says what a guard did."""


def reworded(message: BaseMessage, text: str, mark: Mapping[str, Any] | None) -> BaseMessage:
    """Return a message of the same kind and id with another text, and nothing of the old one."""
    kept = {key: value for key in _KEPT if (value := getattr(message, key, None))}
    if mark is not None:
        kept["response_metadata"] = {_MARK: dict(mark)}
    kinds = [kind for kind in type(message).__mro__ if issubclass(kind, BaseMessage)]
    for kind in kinds:
        known = {key: value for key, value in kept.items() if key in kind.model_fields}
        with suppress(Exception):  # a class of the user's may require further fields
            return kind(content=text, **known)
    raise AssertionError  # a BaseMessage requires no further fields


def bare(message: BaseMessage) -> BaseMessage:
    """Return a message without blocks other than text, and without what stands beside its text."""
    content = message.content
    if isinstance(content, list):
        content = [
            part if isinstance(part, str) else {"type": "text", "text": part["text"]}
            for part in content
            if isinstance(part, str) or part.get("type") == "text"
        ]
    if content == message.content and not any(message.additional_kwargs.values()):
        return message
    return message.model_copy(update={"content": content, "additional_kwargs": {}})


def marked(message: BaseMessage, mark: Mapping[str, Any]) -> BaseMessage:
    """Return a message whose `response_metadata` says what a guard did."""
    metadata = {**message.response_metadata, _MARK: dict(mark)}
    return message.model_copy(update={"response_metadata": metadata})
