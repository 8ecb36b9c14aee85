"""Messages that say another text, or nothing beside their text."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from langchain_core.messages import BaseMessage

_KEPT = ("id", "name", "type", "role", "tool_call_id", "usage_metadata")
"""What a message keeps that is worded anew: nothing that may hold the old text."""
_MARK = "demur"
"""Where in a message's `response_metadata` it says what a guard did."""


def reworded(message: BaseMessage, text: str, mark: Mapping[str, Any] | None) -> BaseMessage:
    """A message of the same kind and id with another text, and with nothing of the old one."""
    kept = {key: value for key in _KEPT if (value := getattr(message, key, None))}
    if mark is not None:
        kept["response_metadata"] = {_MARK: dict(mark)}
    kinds = [kind for kind in type(message).__mro__ if issubclass(kind, BaseMessage)]
    for kind in kinds:
        known = {key: value for key, value in kept.items() if key in kind.model_fields}
        with suppress(Exception):  # a class of the user's, which needs more than is kept
            return kind(content=text, **known)
    raise AssertionError  # a BaseMessage needs no more


def bare(message: BaseMessage) -> BaseMessage:
    """A message without blocks that are no text, and without what stands beside its text."""
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
    """A message that says in its `response_metadata` what a guard did."""
    metadata = {**message.response_metadata, _MARK: dict(mark)}
    return message.model_copy(update={"response_metadata": metadata})
