"""How an answer stands in the chunks that a chain streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, BaseMessageChunk
from langchain_core.runnables.utils import AddableDict

from demur.shapes.answers import ANSWER_KEYS
from demur.shapes.finding import Reader, text_of


@dataclass(frozen=True)
class Form:
    """What pieces of an answer are put into: a string or a message, by itself or under a key."""

    key: str | None = None
    message: bool = False
    id: str | None = None
    """The message's."""

    def chunk(self, text: str, annotations: Sequence[Any] | None = None) -> Any:
        """A piece of the answer as a chunk; with annotations, of a message as a content block."""
        value: Any = text
        if self.message:
            content: Any = text if annotations is None else _block(text, annotations)
            value = AIMessageChunk(content=content, id=self.id)
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

    Plain mappings do not, and `JsonOutputParser` streams one longer than the other. `AddableDict`s
    do, key by key: parallel steps stream their outputs in them.
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
    """The text in an output that was streamed in this form."""
    if form is None:
        return ""
    under = form.key is not None and isinstance(output, Mapping)
    return text_of(output.get(form.key) if under else output) or ""


def others_in(output: Any, form: Form | None) -> dict[str, Any]:
    """What an output holds beside what is streamed in this form."""
    if not isinstance(output, Mapping):
        return {}
    key = None if form is None else form.key
    return {name: value for name, value in output.items() if name != key}


def last_chunks(
    output: Any, form: Form | None, text: str, others: Mapping[str, Any]
) -> Iterator[Any]:
    """What is still to be streamed of an output: the end of its answer, and other keys.

    A message's last chunk has all that the message holds beside its text and that leaves.
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
    gone = len(str(value.text)) - len(text)  # with it, its annotations have left
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
    """Whether a mapping is a piece of one; of plain ones, and of a graph's states, the last is."""
    return getattr(type(chunk), "__add__", None) is AddableDict.__add__
