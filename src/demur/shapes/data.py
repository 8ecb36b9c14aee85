"""Describe the form of answers that are data, and make another answer of that form from a reply."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from demur._text import Path, places


class NoSuchForm(ValueError):  # noqa: N818  # the name says what is wrong with the value
    """Report that a value does not have the form of the answer that it is to replace."""


def form_of(value: Any) -> str | None:
    """Return the form that another answer must have, as JSON.

    Args:
        value: A text, a pydantic object, a mapping or a list.

    Returns:
        The JSON Schema of a pydantic object; otherwise the kind of each value. None for a text that
        is not a JSON object or list.
    """
    if isinstance(value, str):
        data = parsed(value)
        return None if data is None else form_of(data)
    if isinstance(value, BaseModel):
        return f"JSON Schema: {json.dumps(type(value).model_json_schema(), ensure_ascii=False)}"
    return json.dumps(_kinds(_as_json(value)), ensure_ascii=False)


def parsed(text: str) -> Any:
    """Return the object or list in a JSON text, with or without a code fence, else None."""
    text = _unfenced(text.strip())
    return None if places(text) is None else json.loads(text)


def _unfenced(text: str) -> str:
    first, _, rest = text.partition("\n")
    fenced = first.strip().lower() in ("```", "```json") and rest.endswith("```")
    return rest[:-3] if fenced else text


def in_the_form_of(value: Any, reply: str) -> Any:
    """Return a model's reply as another value of the same kind.

    Args:
        value: The value whose form the reply must have. The class of a pydantic object validates
            the reply. For a mapping, the reply has the same keys, with values of the same kinds.
            For a list, each entry of the reply has the form of an entry of the list. For a JSON
            text, the result is a JSON text, too.
        reply: JSON, with or without a code fence.

    Raises:
        NoSuchForm: The reply has another form. The message does not quote it.
    """
    data = parsed(reply)
    if data is None:
        raise NoSuchForm("the reply is no JSON object and no list")
    if isinstance(value, str):
        return json.dumps(in_the_form_of(parsed(value), reply), ensure_ascii=False)
    if isinstance(value, BaseModel):
        try:
            found = type(value).model_validate_json(json.dumps(data))
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, wrong["loc"])) or "the object"
            raise NoSuchForm(f"{where}: {wrong['type']}") from None
        return value.model_copy(update=dict(found))
    if not _has_form(data, _as_json(value)):
        raise NoSuchForm("the reply has other keys, or values of another kind")
    return data


def without_values(value: Any, text: str, spans: Iterable[tuple[int, int]]) -> Any:
    """Return a structured answer without some of its values.

    Each value becomes None, or is removed if it is an entry of a list. If the class of a pydantic
    object does not allow that, the value that holds it is taken out instead.

    Args:
        value: A pydantic object, a mapping, a list, or a JSON text.
        text: The JSON of `value`.
        spans: The offsets of the values in `text`, as (start, end).

    Raises:
        NoSuchForm: The class allows neither a value nor any value that holds it to be taken out.
    """
    held = places(text) or ()
    left = json.loads(text)
    for start, end in spans:
        path = next((p.path for p in held if p.start <= start and end <= p.end), ())
        left = _without(value, left, path)
    return _rebuilt(value, _pruned(left))


def _without(value: Any, data: Any, path: Path) -> Any:
    """Return the data without the innermost value on a path that may be taken out."""
    for length in range(len(path), 0, -1):
        *above, last = path[:length]
        changed = copy.deepcopy(data)
        holder = changed
        for step in above:
            holder = holder[step]
            if holder is None or holder is _GONE:
                return data  # it was taken out with the value that held it
        holder[last] = _GONE if isinstance(holder, list) else None
        try:
            _rebuilt(value, _pruned(changed))
        except NoSuchForm:
            continue
        return changed
    raise NoSuchForm("nothing of it may be left out")


class _Gone:
    """Stand for an entry of a list that is taken out, so that others keep their places."""

    def __deepcopy__(self, memo: Any) -> _Gone:
        return self


_GONE = _Gone()


def _pruned(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _pruned(one) for key, one in data.items()}
    if isinstance(data, list):
        return [_pruned(one) for one in data if one is not _GONE]
    return data


def _rebuilt(value: Any, data: Any) -> Any:
    """Return data as a value of the same kind as `value`."""
    if isinstance(value, str):
        return json.dumps(data, ensure_ascii=False)
    return in_the_form_of(value, json.dumps(data)) if isinstance(value, BaseModel) else data


def _as_json(value: Any) -> Any:
    return from_json(to_json(value, fallback=str))


def _kinds(value: Any) -> Any:
    """Return a value in which the name of its kind replaces each text and number."""
    if isinstance(value, Mapping):
        return {key: _kinds(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_kinds(one) for one in value[:1]]
    return _kind(value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    return "number" if isinstance(value, int | float) else "text"


def _has_form(value: Any, model: Any) -> bool:
    """Return whether a value has the form of `model`; a null in either of them fits anything."""
    if value is None or model is None:
        return True
    if isinstance(model, Mapping):
        return (
            isinstance(value, Mapping)
            and value.keys() == model.keys()
            and all(_has_form(value[key], one) for key, one in model.items())
        )
    if isinstance(model, list):
        return isinstance(value, list) and (
            not model or all(any(_has_form(one, other) for other in model) for one in value)
        )
    is_one = not isinstance(value, Mapping | list)
    return is_one and _kind(value) == _kind(model)
