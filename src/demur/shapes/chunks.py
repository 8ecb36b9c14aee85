"""Read and write an answer in the chunks that a chain streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, BaseMessageChunk
from langchain_core.runnables.utils import AddableDict

from demur.shapes.finding import ANSWER_KEYS, text_of
from demur.shapes.readers import Reader


@dataclass(frozen=True)
class Form:
    """Describe what holds the pieces of an answer: strings or messages, alone or under a key."""

    key: str | None = None
    message: bool = False
    id: str | None = None
    """The id of the message."""

    def chunk(self, text: str, annotations: Sequence[Any] | None = None) -> Any:
        """Return a piece of the answer as a chunk.

        With annotations, the piece of a message is a content block.
        """
        value: Any = text
        if self.message:
            content: Any = text if annotations is None else _block(text, annotations)
            value = AIMessageChunk(content=content, id=self.id)
        return value if self.key is None else AddableDict({self.key: value})


@dataclass(frozen=True)
class Part:
    """Hold what one chunk contains."""

    text: str = ""
    """The piece of the answer."""
    form: Form | None = None
    """The form of the piece; None if the chunk holds nothing of the answer."""
    others: AddableDict = field(default_factory=AddableDict)
    """The values under other keys."""


def read_chunk(chunk: Any, reader: Reader | None) -> Part | None:
    """Return what a chunk holds, or None if it does not show which part is the answer."""
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
    """Return whether a piece continues the answer of the pieces before it."""
    if form is None or earlier is None:
        return True
    return (form.key, form.message) == (earlier.key, earlier.message)


def added(total: Any, chunk: Any) -> Any:
    """Return the sum of chunks as LangChain computes it, or the last chunk if they do not add up.

    Plain mappings do not add up: `JsonOutputParser` streams each one longer than the one before.
    `AddableDict`s add up, key by key: parallel steps stream their outputs in them.
    """
    if isinstance(chunk, BaseMessage) and not isinstance(chunk, BaseMessageChunk):
        return chunk  # two whole messages would add up to a prompt
    if isinstance(total, AddableDict) and isinstance(chunk, AddableDict) and _adds_up(chunk):
        fresh = {
            key: value for key, value in chunk.items() if value is not None or key not in total
        }
        known = {key for key in fresh if total.get(key) is not None}
        sums = {k: added(total[k], v) if k in known else v for k, v in fresh.items()}
        return AddableDict({**total, **sums})
    try:
        return total + chunk
    except TypeError:
        return chunk


def streamed_in(output: Any, form: Form | None) -> str:
    """Return the text of the answer in an output that was streamed in this form."""
    if form is None:
        return ""
    under = form.key is not None and isinstance(output, Mapping)
    return text_of(output.get(form.key) if under else output) or ""


def others_in(output: Any, form: Form | None) -> dict[str, Any]:
    """Return what an output holds beside the answer that is streamed in this form."""
    if not isinstance(output, Mapping):
        return {}
    key = None if form is None else form.key
    return {name: value for name, value in output.items() if name != key}


def last_chunks(
    output: Any, form: Form | None, text: str, others: Mapping[str, Any]
) -> Iterator[Any]:
    """Yield what is still to be streamed of an output: the end of its answer, and other keys.

    The last chunk of a message also has what the message holds beside its text.
    """
    if not isinstance(output, Mapping):
        value = output if form is None else _last_value(output, form, text)
        if value is not None:
            yield value
        return
    rest = AddableDict(others)
    if form is not None and form.key is not None and form.key in output:
        value = _last_value(output[form.key], form, text)
        if value is not None:
            rest[form.key] = value
    if rest:
        yield rest


def _last_value(value: Any, form: Form, text: str) -> Any:
    if isinstance(value, str):
        return text or None
    if not isinstance(value, AIMessage):
        return value
    if not isinstance(value, AIMessageChunk):
        value = AIMessageChunk(**value.model_dump(exclude={"type"}))
    annotated = [part for part in value.content if isinstance(part, dict) and "annotations" in part]
    gone = len(str(value.text)) - len(text)  # the text that was streamed, with its annotations
    rest = [one for part in annotated for one in part["annotations"] if one["start_index"] >= gone]
    content: Any = _block(text, rest) if annotated else text
    changes = {
        "content": content,
        "id": form.id or value.id,
        "chunk_position": "last",
    }
    return value.model_copy(update=changes)


def _block(text: str, annotations: Sequence[Any]) -> list[str | dict[Any, Any]]:
    return [{"type": "text", "text": text, "annotations": [*annotations], "index": 0}]


def _form(value: Any, key: str | None) -> Form | None:
    if isinstance(value, str):
        return Form(key)
    # A whole message is no chunk: two of them do not add up to one.
    return Form(key, True, value.id) if isinstance(value, AIMessageChunk) else None


def _keys(chunk: Mapping[Any, Any], reader: Reader | None) -> list[str]:
    keys = ANSWER_KEYS if reader is None else (reader,)
    return [key for key in keys if isinstance(key, str) and key in chunk]


def _adds_up(chunk: Mapping[Any, Any]) -> bool:
    """Return whether a mapping is one piece of the output.

    Plain mappings and the states of a graph are not: the last of them is the whole output.
    """
    return getattr(type(chunk), "__add__", None) is AddableDict.__add__
