"""Take a text that must not leave out of every value beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Send

from demur import DemurError

CLEARED: Any = object()
"""The mark in place of a value that held the text and could not stay."""

_SHORT = 12
"""An answer of fewer characters, such as "B", is searched for as whole words, because it is part of
many words."""


def swapped(value: Any, old: str, answer: AIMessage | str | None) -> Any:
    """Return a value without the text `old`.

    A string, or a message of the model, that is exactly this text becomes `answer`, if there is
    one. Mappings, lists and messages lose the parts that have the text. Any other value that has
    it, such as a longer string, a document or a pydantic model, becomes `CLEARED` as a whole.
    """
    if not holds(value, old):
        return value
    is_text = isinstance(value, (str, AIMessage)) and _folded(text_of(value)) == _folded(old)
    if is_text and answer is not None:
        return _in_place_of(value, answer)
    if isinstance(value, BaseMessage):
        return _without(value, old)
    if isinstance(value, Mapping):
        pairs = ((key, swapped(one, old, answer)) for key, one in value.items())
        return {key: one for key, one in pairs if one is not CLEARED and not holds(key, old)}
    if isinstance(value, list):
        return [one for one in (swapped(v, old, answer) for v in value) if one is not CLEARED]
    return CLEARED


def sent_on(goto: Any, old: str, answer: AIMessage | str | None) -> Any:
    """Return where a `Command` goes, without the text `old` in what it sends there.

    Raises:
        DemurError: The text cannot be taken out.
    """
    if isinstance(goto, (list, tuple)):
        return [sent_on(one, old, answer) for one in goto]
    if not isinstance(goto, Send):
        return goto
    sent = swapped(goto.arg, old, answer)
    if sent is CLEARED:
        raise DemurError(
            f"the guarded node sends a rejected answer on to {goto.node!r}, and demur cannot take "
            f"it out of a {type(goto.arg).__name__}: send a mapping"
        )
    return Send(goto.node, sent)


def holds(value: Any, text: str) -> bool:
    """Return whether a text is anywhere in a value, ignoring spacing and case."""
    wanted = _wanted(text)
    return wanted is not None and any(wanted.search(_folded(one)) for one in _texts(value, set()))


@lru_cache(maxsize=16)
def _wanted(text: str) -> re.Pattern[str] | None:
    folded = _folded(text)
    if not folded:
        return None
    found = re.escape(folded)
    return re.compile(rf"(?<![^\W_]){found}(?![^\W_])" if len(folded) < _SHORT else found)


def _in_place_of(value: str | AIMessage, answer: AIMessage | str) -> AIMessage | str:
    if isinstance(value, str):
        return text_of(answer)
    if isinstance(answer, AIMessage) and answer.id == value.id:
        return answer
    return AIMessage(text_of(answer), id=value.id, name=value.name)


def _without(message: BaseMessage, old: str) -> BaseMessage:
    """Return the message without the text `old`.

    Calls of tools lose only the arguments that have the text, so that the calls and their results
    still belong together.
    """
    changes: dict[str, Any] = {}
    for name, value in _fields(message):
        if name == "tool_calls":
            changes[name] = [{**one, "args": swapped(one["args"], old, None)} for one in value]
        elif holds(value, old):
            kept = swapped(value, old, None)
            changes[name] = kept if kept is not CLEARED else "" if name == "content" else None
    return message.model_copy(update=changes)


def _fields(value: BaseMessage | Document) -> list[tuple[str, Any]]:
    return [(name, one) for name, one in vars(value).items() if name not in ("id", "type")]


def _texts(value: Any, seen: set[int]) -> Iterator[str]:
    """Yield all texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
        return
    if value is None or isinstance(value, (bool, int, float, type)) or id(value) in seen:
        return
    seen.add(id(value))
    parts: Iterable[Any]
    if isinstance(value, Mapping):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = value
    elif isinstance(value, BaseMessage):
        parts = [str(value.text), *(one for _, one in _fields(value))]
    elif isinstance(value, Document):
        parts = [one for _, one in _fields(value)]
    elif isinstance(value, (bytes, bytearray)):
        parts = [value.decode(errors="replace")]
    else:
        parts = [*vars(value).values()] if hasattr(value, "__dict__") else [repr(value)]
    for part in parts:
        yield from _texts(part, seen)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def text_of(answer: AIMessage | str) -> str:
    """Return the text of an answer."""
    return answer if isinstance(answer, str) else str(answer.text)
