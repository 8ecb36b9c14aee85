"""Where the answer stands in a chain's output, and how another takes its place.

An answer is a text (a string, a message) or data (a pydantic object, a mapping or a list of plain
values), which is judged as its JSON. What cannot be told from the outside is said by a reader.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Protocol
from uuid import UUID

from langchain_core.load.serializable import Serializable
from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from demur.errors import DemurError
from demur.shapes.data import NoSuchForm, form_of, in_the_form_of, parsed, without_values
from demur.shapes.finding import (
    CONTEXT_KEYS,
    Reader,
    find_question,
    kind_of,
    read,
    text_of,
)
from demur.shapes.passed_on import alike
from demur.shapes.rewording import bare, marked, reworded

ANSWER_KEYS = ("answer", "output", "result", "response")
CITATIONS = "citations"
"""The key of an output, and of what a message says, that has what the answer rests on."""
_DEEPEST = 32


class Own(str):
    """A key that an integration of demur's puts beside an answer: its value always stays."""

    __slots__ = ()


class _Put(Protocol):
    def __call__(self, value: Any, *, clear: bool) -> Any:
        """The output with this in the answer's place.

        With `clear` what stands beside it is emptied, and None comes of it where a class does not
        allow that.
        """
        ...


@dataclass(frozen=True)
class Answer:
    """An answer in an output. What is edited is a copy of the output."""

    output: Any
    value: Any
    """What is judged: a string, a message, or data."""
    _edited: Any = None
    """What another answer is made of: the value, or the output where a function found that."""
    _put: _Put | None = None
    """None where nothing can take the answer's place."""
    _beside: bool = False
    """Whether more can stand beside it, under keys of its own."""

    @property
    def text(self) -> str:
        """All that the answer says: its text, and as JSON what it calls tools with."""
        text = text_of(self.value)
        if text is None:
            return to_json(self.value, fallback=str).decode()
        calls = (
            to_json(call["args"], fallback=str).decode()
            for kind in ("tool_calls", "invalid_tool_calls")
            for call in getattr(self.value, kind, ())
            if call["args"]
        )
        return "\n".join(said for said in (text, *calls) if said)

    @property
    def is_text(self) -> bool:
        """Whether what is judged is a text that stands in the output, and nothing beside it."""
        return self._put is not None and text_of(self._edited) == self.text

    @property
    def takes_text(self) -> bool:
        """Whether a text, such as a refusal, can stand in its place."""
        return self._put is not None and self.reworded("") is not None

    @property
    def takes_repair(self) -> bool:
        """Whether another answer of its form can stand in its place."""
        return self._put is not None and self._put(self._edited, clear=True) is not None

    @property
    def form(self) -> str | None:
        """How it is built if it is structured, for a model that writes another; else None."""
        text = text_of(self._edited)
        return form_of(self._edited if text is None else text)

    def reworded(self, text: str, mark: Mapping[str, Any] | None = None) -> Any:
        """The output with a text in the answer's place, if it `takes_text`.

        What the chain made beside the answer is emptied. A message keeps its id and loses what
        belonged to the old text; it has `mark` in its `response_metadata["demur"]`.
        """
        assert self._put is not None
        edited = _with_text(self._edited, text, mark)
        return None if edited is None else self._put(edited, clear=True)

    def noted(self, note: str, mark: Mapping[str, Any] | None = None) -> Any:
        """The output with a note after the answer, if it `takes_text`, and all else as it is."""
        assert self._put is not None
        said = text_of(self._edited)
        if said is None:
            said = str(_fields_of(self._edited)[_slot(self._edited) or ""])
        noted = _with_text(self._edited, f"{said}{note}", mark, clear=False)
        return self._put(noted, clear=False)

    def repaired(self, reply: str) -> Any:
        """The output with a model's reply in the answer's place, if it `takes_repair`.

        What the chain made beside the answer is emptied.

        Raises:
            NoSuchForm: The answer is structured, and the reply has another form.
        """
        assert self._put is not None
        text = text_of(self._edited)
        if text is None:
            return self._put(in_the_form_of(self._edited, reply), clear=True)
        return self.reworded(reply if parsed(text) is None else in_the_form_of(text, reply))

    def as_passed(self, mark: Mapping[str, Any] | None = None) -> Any:
        """The output as it leaves when the answer passed.

        A message loses what is not judged: blocks that are no text, what a text's block holds
        beside it (citations), and `additional_kwargs`, where providers put reasoning, refusals and
        the like. With a `mark` it has that in its `response_metadata["demur"]`.
        """
        if self._put is None:
            return self.output
        passed = self._edited
        if isinstance(passed, BaseMessage):
            passed = bare(passed) if mark is None else marked(bare(passed), mark)
        return self._put(passed, clear=False)

    def cited(self, content: str | list[dict[str, Any]] | None, mark: Mapping[str, Any]) -> Any:
        """The output as it leaves when the answer passed, with citations.

        A mapping that holds the answer under a key has them under `citations`, a message in its
        `response_metadata["demur"]`.

        Args:
            content: What an answer that `is_text` becomes; None for one that stays as it is. Blocks
                take a message.
            mark: What a message says, with the `citations`.

        Raises:
            DemurError: There are blocks, and the answer is no message.
        """
        if self._put is None:
            return self.output
        value = self._edited
        if isinstance(content, list) and not isinstance(value, BaseMessage):
            raise DemurError(
                f"Cite('blocks') found {kind_of(value)}: only a message holds content blocks. Have "
                "the chain return its model's message, or choose another form, such as "
                "Cite('numbers')"
            )
        if isinstance(value, BaseMessage):
            value = bare(value)
            if content not in (None, str(value.text)):
                value = value.model_copy(update={"content": content})
            value = marked(value, mark)
        elif content is not None:
            value = content
        output = self._put(value, clear=False)
        if self._beside and isinstance(output, MutableMapping):
            output = output if output is not self.output else copy.copy(output)
            output[CITATIONS] = mark[CITATIONS]
        return output

    def without(self, values: Iterable[tuple[int, int]]) -> Any:
        """The output without some values of a structured answer, if it `takes_repair`.

        What the chain made beside the answer is emptied.

        Args:
            values: Where they stand in the answer's `text`.

        Raises:
            NoSuchForm: The answer's class does not allow that.
        """
        assert self._put is not None
        text = text_of(self._edited)
        if text is not None and text != self.text:
            raise NoSuchForm("what is judged is not its text alone")
        if text is not None:
            return self.reworded(without_values(text, text, values))
        return self._put(without_values(self._edited, self.text, values), clear=True)


def find_answer(
    output: Any,
    reader: Reader | None = None,
    given: Any = None,
    kept: Collection[str] = CONTEXT_KEYS,
) -> Answer:
    """The answer in a chain's output.

    A string or a message is one. So is data: a pydantic object, a list or a mapping of plain
    values. In a mapping with anything else, sources or the chain's own input besides, the answer is
    the text or data under one of `ANSWER_KEYS`.

    Args:
        output: The chain's.
        reader: Where the answer is, if that is said: a key or field, or a function of the output.
        given: The chain's input, of which nothing is an answer.
        kept: The keys of a mapping that hold sources.

    Raises:
        DemurError: There is none, or more than one; the message names what was seen.
    """
    if reader is not None:
        return _read(output, reader, given, kept)
    if text_of(output) is not None or (isinstance(output, list) and output and _is_plain(output)):
        return _whole(output)
    fields = _fields_of(output)
    made = {key: value for key, value in fields.items() if not _is_given(key, value, given)}
    said = {key: value for key, value in made.items() if not _is_nothing(value)}
    texts = [key for key in ANSWER_KEYS if text_of(said.get(key)) is not None]
    one_text = set(said) <= set(texts) and len({text_of(said[key]) for key in texts}) == 1
    composed = len(made) < len(fields) or any(key in kept for key in made)
    if said and not composed and not one_text and all(map(_is_plain, said.values())):
        return _whole(output)
    # Nothing but an empty text is an answer too: a model may say nothing.
    keys = texts or [key for key in ANSWER_KEYS if _is_data(said.get(key))][:1]
    keys = keys or [key for key in ANSWER_KEYS if text_of(made.get(key)) is not None]
    if not keys:
        raise _not_found(output)
    answer = fields[keys[0]]
    if rivals := [key for key in ANSWER_KEYS if _differs(said.get(key), answer)]:
        raise DemurError(
            f"the chain's output has several answers, under {keys[0]!r} and "
            f"{', '.join(map(repr, rivals))}, and only one would be judged: name its key with "
            "answer='key', or leave the others out"
        )
    beside = [key for key in made if key not in keys and key not in kept]
    return _under(output, keys, beside)


def stays(key: str, value: Any, given: Any, kept: Collection[str]) -> bool:
    """Whether what an output has under a key is sources or the chain's input, and no answer."""
    return key in kept or _is_given(key, value, given)


# --- Where it stands -----------------------------------------------------------------------------


def _read(output: Any, reader: Reader, given: Any, kept: Collection[str]) -> Answer:
    value = read(reader, output, "answer")
    if text_of(value) is None and not _is_data(value):
        raise DemurError(
            f"answer= found {kind_of(value)}, expected a string, a message, or data: a pydantic "
            "object, a mapping or a list of plain values"
        )
    if callable(reader):
        # What a function makes of an output can stand nowhere in it.
        whole = text_of(output) is not None
        return replace(_whole(output), value=value) if whole else Answer(output, value)
    fields = _fields_of(output)
    beside = [key for key in fields if key != reader and not stays(key, fields[key], given, kept)]
    return _under(output, [reader], beside)


def _whole(output: Any) -> Answer:
    return Answer(output, output, output, lambda value, clear: value)


def _under(output: Any, keys: Sequence[str], beside: Iterable[str]) -> Answer:
    """An answer under one key, or the same under several."""
    fields = _fields_of(output)
    first, *further = keys

    def put(value: Any, *, clear: bool) -> Any:
        emptied = {key: _emptied(fields[key]) for key in beside} if clear else {}
        same = {key: _saying(text_of(value), fields[key]) for key in further}
        changed = _changed(output, {**emptied, **same, first: value})
        return _allowed(changed, emptied) if clear else changed

    return Answer(output, fields[first], fields[first], put, isinstance(output, MutableMapping))


def _saying(text: str | None, value: str | BaseMessage) -> str | BaseMessage:
    """A text or message that says this, and nothing that is not judged."""
    if text is None or isinstance(value, str):
        return text or ""
    return bare(value) if text == text_of(value) else reworded(value, text, None)


def _changed(output: Any, changes: Mapping[str, Any]) -> Any:
    fields = _fields_of(output)
    if all(fields[key] is value for key, value in changes.items()):
        return output
    if isinstance(output, BaseModel):
        return output.model_copy(update=dict(changes))
    changed = copy.copy(output) if isinstance(output, MutableMapping) else dict(output)
    changed.update(changes)
    return changed


def _fields_of(value: Any) -> Mapping[str, Any]:
    """What stands under the keys of a mapping, or in the fields of a pydantic object."""
    if isinstance(value, Mapping):
        return value
    is_data = isinstance(value, BaseModel) and not isinstance(value, Serializable)
    return dict(value) if is_data else {}


def _is_given(key: str, value: Any, given: Any) -> bool:
    """Whether the chain has it from its input, or demur from itself."""
    if isinstance(key, Own):
        return True
    if key in ANSWER_KEYS or given is None:
        return False
    text = text_of(value)
    if text is not None and text == find_question(given):
        return True
    held = isinstance(given, Mapping) and key in given
    return alike(value, given) or (held and alike(value, given[key]))


def _not_found(output: Any) -> DemurError:
    messages = _fields_of(output).get("messages")
    if isinstance(messages, list) and any(isinstance(one, BaseMessage) for one in messages):
        return DemurError(
            "no answer can be found in the messages of an agent or a graph: guard an agent from "
            "the inside, with HallucinationMiddleware of langchain-demur; or have the last message "
            "judged, answer=lambda state: state['messages'][-1]"
        )
    return DemurError(
        f"no answer can be found in the chain's output, which is {kind_of(output)}. Expected a "
        f"string, a message, data, or a mapping with one of {', '.join(ANSWER_KEYS)}: name the key "
        "with answer='key', or give a function from the output to the answer"
    )


# --- What is in its place ------------------------------------------------------------------------


def _with_text(value: Any, text: str, mark: Any, *, clear: bool = True) -> Any:
    """A value with another text in it; None where it has no place for one."""
    if isinstance(value, str):
        return text
    if isinstance(value, BaseMessage):
        return reworded(value, text, mark)
    slot = _slot(value)
    if slot is None:
        return None
    others = {key: one for key, one in _fields_of(value).items() if key != slot and clear}
    emptied = {key: _emptied(one) for key, one in others.items()}
    changed = _changed(value, {**emptied, slot: text})
    return _allowed(changed, emptied) if clear else changed


def _slot(value: Any) -> str | None:
    """The key under which data holds its text."""
    fields = _fields_of(value)
    return next((key for key in ANSWER_KEYS if isinstance(fields.get(key), str)), None)


def _allowed(changed: Any, emptied: Iterable[str]) -> Any:
    """What was changed; of a pydantic object what its class allows, with defaults if need be."""
    if not isinstance(changed, BaseModel):
        return changed
    fields = type(changed).model_fields
    defaults = {
        name: fields[name].get_default(call_default_factory=True)
        for name in emptied
        if name in fields and not fields[name].is_required()
    }
    for one in (changed, changed.model_copy(update=defaults)):
        by_alias = {getattr(fields.get(k), "alias", None) or k: v for k, v in dict(one).items()}
        with suppress(ValidationError):
            return type(changed).model_validate(by_alias)
    return None


def _emptied(value: Any) -> Any:
    """What takes the place of what nobody has judged; a list stays one, for whoever reads it."""
    if isinstance(value, list):
        return []
    return {} if isinstance(value, Mapping) else None


def _is_nothing(value: Any) -> bool:
    """Whether something says nothing."""
    return value is None or (isinstance(value, str | list | tuple | Mapping) and not value)


_WRITTEN = (str, int, float, Enum, date, time, timedelta, Decimal, UUID)
"""What JSON has, or has as a text."""


def _is_plain(value: Any, depth: int = 0) -> bool:
    if value is None or isinstance(value, _WRITTEN):
        return True
    if depth > _DEEPEST:
        return False
    if isinstance(value, list | tuple | set | frozenset):
        return all(_is_plain(one, depth + 1) for one in value)
    is_data = isinstance(value, Mapping | BaseModel) and not isinstance(value, Serializable)
    return is_data and all(_is_plain(one, depth + 1) for one in _fields_of(value).values())


def _is_data(value: Any) -> bool:
    structured = isinstance(value, list | Mapping | BaseModel) and not _is_nothing(value)
    return structured and _is_plain(value)


def _differs(value: Any, answer: Any) -> bool:
    """Whether something says other than this answer."""
    if text_of(answer) is None or text_of(value) is None:
        return value is not answer and not _is_nothing(value)
    return text_of(value) not in ("", text_of(answer))
