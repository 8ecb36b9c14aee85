"""How an answer stands in the chunks that a chain streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables.utils import AddableDict

from demur.shapes.finding import ANSWER_KEYS, Reader, answer_key, text_of


@dataclass(frozen=True)
class Form:
    """What pieces of an answer are put into: a string or a message, by itself or under a key."""

    key: str | None = None
    message: bool = False
    id: str | None = None
    """The message's."""

    def chunk(self, text: str) -> Any:
        """A piece of the answer as a chunk."""
        value = AIMessageChunk(content=text, id=self.id) if self.message else text
        return value if self.key is None else AddableDict({self.key: value})


@dataclass(frozen=True)
class Part:
    """What one chunk holds."""

    text: str = ""
    """Of the answer."""
    form: Form | None = None
    """None: the chunk does not speak of the answer."""
    others: AddableDict = field(default_factory=AddableDict)
    """The other keys."""


def read_chunk(chunk: Any, reader: Reader | None) -> Part | None:
    """What a chunk holds; None where a piece of an answer cannot be told from it."""
    if not isinstance(chunk, Mapping):
        form = _form(chunk, None) if reader is None else None
        return None if form is None else Part(text_of(chunk) or "", form)
    if callable(reader) or not _adds_up(chunk):
        return None
    key, *more = _keys(chunk, reader) or (None,)
    if more:
        return None
    others = AddableDict({name: value for name, value in chunk.items() if name != key})
    if key is None:
        return Part(others=others)
    form = _form(chunk[key], key)
    return None if form is None else Part(text_of(chunk[key]) or "", form, others)


def fits(form: Form | None, earlier: Form | None) -> bool:
    """Whether a piece goes on with the answer that the pieces before it began."""
    if form is None or earlier is None:
        return True
    return (form.key, form.message) == (earlier.key, earlier.message)


def added(total: Any, chunk: Any) -> Any:
    """Chunks put together as LangChain does it: of those that do not add up, the last.

    Plain mappings do not, and `JsonOutputParser` streams one longer than the other; `AddableDict`s
    do, and parallel steps stream their keys in them.
    """
    try:
        return total + chunk
    except TypeError:
        return chunk


def other_keys(output: Any, reader: Reader | None) -> dict[str, Any]:
    """What an output holds beside the answer."""
    if not isinstance(output, Mapping):
        return {}
    key = answer_key(output, reader)
    return {name: value for name, value in output.items() if name != key}


def last_chunks(
    output: Any, reader: Reader | None, form: Form | None, text: str, others: Mapping[str, Any]
) -> Iterator[Any]:
    """What is still to be streamed of an output: the end of its answer, and other keys.

    A message's last chunk has all that the message holds beside its text and that leaves.
    """
    if not isinstance(output, Mapping):
        value = _last_value(output, form, text)
        if value is not None:
            yield value
        return
    key = answer_key(output, reader)
    rest = AddableDict(others)
    if key is not None and (value := _last_value(output[key], form, text)) is not None:
        rest[key] = value
    if rest:
        yield rest


def _last_value(value: Any, form: Form | None, text: str) -> Any:
    if isinstance(value, str):
        return text or None
    if not isinstance(value, AIMessage):
        return value
    if not isinstance(value, AIMessageChunk):
        value = AIMessageChunk(**value.model_dump(exclude={"type"}))
    changes = {
        "content": text,
        "id": value.id if form is None or form.id is None else form.id,
        "chunk_position": "last",
    }
    return value.model_copy(update=changes)


def _form(value: Any, key: str | None) -> Form | None:
    if isinstance(value, str):
        return Form(key)
    # A whole message is no chunk: two of them do not add up to one.
    return Form(key, True, value.id) if isinstance(value, AIMessageChunk) else None


def _keys(chunk: Mapping[Any, Any], reader: Reader | None) -> list[str]:
    keys = ANSWER_KEYS if reader is None else (reader,)
    return [key for key in keys if isinstance(key, str) and key in chunk]


def _adds_up(chunk: Mapping[Any, Any]) -> bool:
    """Whether a mapping is a piece of one; of plain ones, and of a graph's states, the last is."""
    return getattr(type(chunk), "__add__", None) is AddableDict.__add__
