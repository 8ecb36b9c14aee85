"""Find the answer in a chain's output.

An answer is a text (a string or a message) or data (a pydantic object, a mapping or a list of plain
values). Data is judged as its JSON. If the output does not show where the answer is, a reader says
so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from langchain_core.load.serializable import Serializable
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from demur.errors import DemurError
from demur.shapes.answer_edits import Answer, fields_of, under, whole
from demur.shapes.finding import ANSWER_KEYS, CONTEXT_KEYS, Own, find_question, text_of
from demur.shapes.passed_on import alike
from demur.shapes.readers import Reader, kind_of, read

_DEEPEST = 32
_WRITTEN = (str, int, float, Enum, date, time, timedelta, Decimal, UUID)
"""The types that JSON has, or that it holds as a text."""


def find_answer(
    output: Any,
    reader: Reader | None = None,
    given: Any = None,
    kept: Collection[str] = CONTEXT_KEYS,
) -> Answer:
    """Return the answer in a chain's output.

    A string or a message is an answer. So is data: a pydantic object, a list or a mapping of plain
    values. If a mapping holds anything else, such as sources or the chain's own input, the answer
    is the text or data under one of `ANSWER_KEYS`.

    Args:
        output: The chain's output.
        reader: Where the answer is, if the user says so: a key, a field, or a function of the
            output.
        given: The chain's input. A value that repeats it is not an answer.
        kept: The keys of a mapping that hold sources.

    Raises:
        DemurError: There is no answer, or more than one. The message names what was seen.
    """
    if reader is not None:
        return _read(output, reader, given, kept)
    if text_of(output) is not None or (isinstance(output, list) and output and _is_plain(output)):
        return whole(output)
    fields = fields_of(output)
    made = {key: value for key, value in fields.items() if not _is_given(key, value, given)}
    said = {key: value for key, value in made.items() if not _is_nothing(value)}
    texts = [key for key in ANSWER_KEYS if text_of(said.get(key)) is not None]
    one_text = set(said) <= set(texts) and len({text_of(said[key]) for key in texts}) == 1
    composed = len(made) < len(fields) or any(key in kept for key in made)
    if said and not composed and not one_text and all(map(_is_plain, said.values())):
        return whole(output)
    # An empty text alone is an answer, too: a model may say nothing.
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
    return under(output, keys, beside)


def stays(key: str, value: Any, given: Any, kept: Collection[str]) -> bool:
    """Return whether a value under a key of an output is a source or the chain's own input."""
    return key in kept or _is_given(key, value, given)


def _read(output: Any, reader: Reader, given: Any, kept: Collection[str]) -> Answer:
    value = read(reader, output, "answer")
    if text_of(value) is None and not _is_data(value):
        raise DemurError(
            f"answer= found {kind_of(value)}, expected a string, a message, or data: a pydantic "
            "object, a mapping or a list of plain values"
        )
    if callable(reader):
        # A function's result has no place in the output. Only an output that is a text can change.
        if text_of(output) is None:
            return Answer(output, value)
        return replace(whole(output), value=value)
    fields = fields_of(output)
    beside = [key for key in fields if key != reader and not stays(key, fields[key], given, kept)]
    return under(output, [reader], beside)


def _is_given(key: str, value: Any, given: Any) -> bool:
    """Return whether the value comes from the chain's input, or from demur itself."""
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
    messages = fields_of(output).get("messages")
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


def _is_nothing(value: Any) -> bool:
    """Return whether a value is None or empty."""
    return value is None or (isinstance(value, str | list | tuple | Mapping) and not value)


def _is_plain(value: Any, depth: int = 0) -> bool:
    if value is None or isinstance(value, _WRITTEN):
        return True
    if depth > _DEEPEST:
        return False
    if isinstance(value, list | tuple | set | frozenset):
        return all(_is_plain(one, depth + 1) for one in value)
    is_data = isinstance(value, Mapping | BaseModel) and not isinstance(value, Serializable)
    return is_data and all(_is_plain(one, depth + 1) for one in fields_of(value).values())


def _is_data(value: Any) -> bool:
    structured = isinstance(value, list | Mapping | BaseModel) and not _is_nothing(value)
    return structured and _is_plain(value)


def _differs(value: Any, answer: Any) -> bool:
    """Return whether a value says something other than this answer."""
    if text_of(answer) is None or text_of(value) is None:
        return value is not answer and not _is_nothing(value)
    return text_of(value) not in ("", text_of(answer))
