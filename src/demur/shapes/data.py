"""Answers that are data: how they are built, and another one of the same form from a reply."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from demur._json_places import Path, places


class NoSuchForm(ValueError):  # noqa: N818  # what was written, and not what went wrong
    """What a model wrote has not the form of the answer that it is to replace."""


def form_of(value: Any) -> str | None:
    """How another answer has to be built, as JSON: a schema, or each value's kind.

    Args:
        value: A text, a pydantic object, a mapping or a list.

    Returns:
        None for a text that is no JSON object or list.
    """
    if isinstance(value, str):
        data = parsed(value)
        return None if data is None else form_of(data)
    if isinstance(value, BaseModel):
        return f"JSON Schema: {json.dumps(type(value).model_json_schema(), ensure_ascii=False)}"
    return json.dumps(_kinds(_as_json(value)), ensure_ascii=False)


def parsed(text: str) -> Any:
    """The object or list that a text is the JSON of, in a fence or not; None for another text."""
    text = _unfenced(text.strip())
    return None if places(text) is None else json.loads(text)


def _unfenced(text: str) -> str:
    first, _, rest = text.partition("\n")
    fenced = first.strip().lower() in ("```", "```json") and rest.endswith("```")
    return rest[:-3] if fenced else text


def in_the_form_of(value: Any, reply: str) -> Any:
    """What a model wrote, as another value of the same kind.

    Args:
        value: A pydantic object, whose class validates the other; a mapping, of which the other has
            the keys with values of the same kinds; a list, whose entries have the form of one of
            its own; or a text that is JSON, and the other is one too.
        reply: JSON, in a fence or not.

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
    """A structured answer without some of its values.

    Each becomes None; one in a list goes. Where the class of a pydantic object does not allow that,
    the value that holds it goes in its place.

    Args:
        value: A pydantic object, a mapping, a list, or a text that is JSON.
        text: Its JSON.
        spans: Where the values stand in that.

    Raises:
        NoSuchForm: The class allows it for none of the values that hold one.
    """
    held = places(text) or ()
    left = json.loads(text)
    for start, end in spans:
        path = next((p.path for p in held if p.start <= start and end <= p.end), ())
        left = _without(value, left, path)
    return _rebuilt(value, _pruned(left))


def _without(value: Any, data: Any, path: Path) -> Any:
    """The data without the innermost of the values on a path that may go."""
    for length in range(len(path), 0, -1):
        *above, last = path[:length]
        changed = copy.deepcopy(data)
        holder = changed
        for step in above:
            holder = holder[step]
            if holder is None or holder is _GONE:
                return data  # it went with what held it
        holder[last] = _GONE if isinstance(holder, list) else None
        try:
            _rebuilt(value, _pruned(changed))
        except NoSuchForm:
            continue
        return changed
    raise NoSuchForm("nothing of it may be left out")


class _Gone:
    """Stands for an entry of a list that is taken out, so that others keep their places."""

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
    """Data as a value of the kind of another."""
    if isinstance(value, str):
        return json.dumps(data, ensure_ascii=False)
    return in_the_form_of(value, json.dumps(data)) if isinstance(value, BaseModel) else data


def _as_json(value: Any) -> Any:
    return from_json(to_json(value, fallback=str))


def _kinds(value: Any) -> Any:
    """A value with the name of its kind in the place of each text and number."""
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
    """Whether a value has the form of another; what is null in one of them may be anything."""
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
