"""Edit an answer in a copy of the output that holds it.

A text or a message gets other words, and data becomes other data of the same form. What the chain
put beside an answer that is replaced is emptied.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.load.serializable import Serializable
from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from demur.errors import DemurError
from demur.shapes.data import NoSuchForm, form_of, in_the_form_of, parsed, without_values
from demur.shapes.finding import ANSWER_KEYS, text_of
from demur.shapes.readers import kind_of
from demur.shapes.rewording import bare, marked, reworded

CITATIONS = "citations"
"""The key under which an output, or the mark of a message, holds the citations of the answer."""


class _Put(Protocol):
    def __call__(self, value: Any, *, clear: bool) -> Any:
        """Return the output with `value` in the answer's place.

        With `clear`, what stands beside the answer is emptied. The result is None if a pydantic
        class does not allow that.
        """
        ...


@dataclass(frozen=True)
class Answer:
    """Represent an answer in an output, and edit it in a copy of the output."""

    output: Any
    value: Any
    """The value that is judged: a string, a message, or data."""
    _edited: Any = None
    """The value that edits start from: `value`, or the output if a function computed `value`."""
    _put: _Put | None = None
    """The function that edits the output; None if nothing can take the answer's place."""
    _beside: bool = False
    """Whether the output can hold other keys beside the answer's."""

    @property
    def text(self) -> str:
        """Return all that the answer says: its text, and its tool calls' arguments as JSON."""
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
        """Return whether a text in the output is all that is judged."""
        return self._put is not None and text_of(self._edited) == self.text

    @property
    def takes_text(self) -> bool:
        """Return whether a text, such as a refusal, can take the answer's place."""
        return self._put is not None and self.reworded("") is not None

    @property
    def takes_repair(self) -> bool:
        """Return whether another answer of the same form can take the answer's place."""
        return self._put is not None and self._put(self._edited, clear=True) is not None

    @property
    def form(self) -> str | None:
        """Return the form of a structured answer, for a model that writes another, else None."""
        text = text_of(self._edited)
        return form_of(self._edited if text is None else text)

    def reworded(self, text: str, mark: Mapping[str, Any] | None = None) -> Any:
        """Return the output with a text in the answer's place, if the answer `takes_text`.

        What the chain put beside the answer is emptied. A message keeps its id and loses what
        belonged to the old text. It gets `mark` in its `response_metadata["demur"]`.
        """
        assert self._put is not None
        edited = _with_text(self._edited, text, mark)
        return None if edited is None else self._put(edited, clear=True)

    def noted(self, note: str, mark: Mapping[str, Any] | None = None) -> Any:
        """Return the output with a note after the answer, if the answer `takes_text`.

        The rest of the output does not change.
        """
        assert self._put is not None
        said = text_of(self._edited)
        if said is None:
            said = str(fields_of(self._edited)[_slot(self._edited) or ""])
        noted = _with_text(self._edited, f"{said}{note}", mark, clear=False)
        return self._put(noted, clear=False)

    def repaired(self, reply: str) -> Any:
        """Return the output with a model's reply in the answer's place, if it `takes_repair`.

        What the chain put beside the answer is emptied.

        Raises:
            NoSuchForm: The answer is structured, and the reply has another form.
        """
        assert self._put is not None
        text = text_of(self._edited)
        if text is None:
            return self._put(in_the_form_of(self._edited, reply), clear=True)
        return self.reworded(reply if parsed(text) is None else in_the_form_of(text, reply))

    def as_passed(self, mark: Mapping[str, Any] | None = None) -> Any:
        """Return the output as the guard returns it if the answer passed.

        A message loses what is not judged: blocks other than text, what a text block holds beside
        its text (citations), and `additional_kwargs`, where providers put reasoning, refusals and
        the like. It gets `mark`, if there is one, in its `response_metadata["demur"]`.
        """
        if self._put is None:
            return self.output
        passed = self._edited
        if isinstance(passed, BaseMessage):
            passed = bare(passed) if mark is None else marked(bare(passed), mark)
        return self._put(passed, clear=False)

    def cited(self, content: str | list[dict[str, Any]] | None, mark: Mapping[str, Any]) -> Any:
        """Return the output as the guard returns it if the answer passed, with its citations.

        A mapping that holds the answer under a key gets them under `citations`. A message gets them
        in its `response_metadata["demur"]`.

        Args:
            content: The new content of an answer that `is_text`; None if it does not change. Only
                a message can hold blocks.
            mark: The mark of a message, with the `citations`.

        Raises:
            DemurError: The content is blocks, and the answer is not a message.
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
        """Return the output without some values of a structured answer, if it `takes_repair`.

        What the chain put beside the answer is emptied.

        Args:
            values: The offsets of the values in the answer's `text`, as (start, end).

        Raises:
            NoSuchForm: The answer's class does not allow that, or more is judged than its text.
        """
        assert self._put is not None
        text = text_of(self._edited)
        if text is not None and text != self.text:
            raise NoSuchForm("what is judged is not its text alone")
        if text is not None:
            return self.reworded(without_values(text, text, values))
        return self._put(without_values(self._edited, self.text, values), clear=True)


def whole(output: Any) -> Answer:
    """Return an answer that is the whole output."""
    return Answer(output, output, output, lambda value, clear: value)


def under(output: Any, keys: Sequence[str], beside: Iterable[str]) -> Answer:
    """Return an answer that stands under one key, or the same answer under several."""
    fields = fields_of(output)
    first, *further = keys

    def put(value: Any, *, clear: bool) -> Any:
        emptied = {key: _emptied(fields[key]) for key in beside} if clear else {}
        same = {key: _saying(text_of(value), fields[key]) for key in further}
        changed = _changed(output, {**emptied, **same, first: value})
        return _allowed(changed, emptied) if clear else changed

    return Answer(output, fields[first], fields[first], put, isinstance(output, MutableMapping))


def _saying(text: str | None, value: str | BaseMessage) -> str | BaseMessage:
    """Return a text or a message that says `text`, and nothing that is not judged."""
    if text is None or isinstance(value, str):
        return text or ""
    return bare(value) if text == text_of(value) else reworded(value, text, None)


def _with_text(value: Any, text: str, mark: Any, *, clear: bool = True) -> Any:
    """Return a value with another text in it, or None if it has no place for a text."""
    if isinstance(value, str):
        return text
    if isinstance(value, BaseMessage):
        return reworded(value, text, mark)
    slot = _slot(value)
    if slot is None:
        return None
    others = {key: one for key, one in fields_of(value).items() if key != slot and clear}
    emptied = {key: _emptied(one) for key, one in others.items()}
    changed = _changed(value, {**emptied, slot: text})
    return _allowed(changed, emptied) if clear else changed


def _slot(value: Any) -> str | None:
    """Return the key under which data holds its text, or None."""
    fields = fields_of(value)
    return next((key for key in ANSWER_KEYS if isinstance(fields.get(key), str)), None)


def _changed(output: Any, changes: Mapping[str, Any]) -> Any:
    fields = fields_of(output)
    if all(fields[key] is value for key, value in changes.items()):
        return output
    if isinstance(output, BaseModel):
        return output.model_copy(update=dict(changes))
    changed = copy.copy(output) if isinstance(output, MutableMapping) else dict(output)
    changed.update(changes)
    return changed


def _allowed(changed: Any, emptied: Iterable[str]) -> Any:
    """Return the changed value if its pydantic class allows it, else None.

    If need be, emptied fields get their defaults. A value of another kind is returned unchanged.
    """
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
    """Return an empty value in place of one that was not judged; a list or a mapping stays one."""
    if isinstance(value, list):
        return []
    return {} if isinstance(value, Mapping) else None


def fields_of(value: Any) -> Mapping[str, Any]:
    """Return the values under the keys of a mapping, or in the fields of a pydantic object."""
    if isinstance(value, Mapping):
        return value
    is_data = isinstance(value, BaseModel) and not isinstance(value, Serializable)
    return dict(value) if is_data else {}
