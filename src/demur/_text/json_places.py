"""Find the values of a JSON text, each with its path and its place in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Path = tuple[str | int, ...]
"""The keys and indices that lead from the outermost value to this one."""

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Place:
    """Describe a value that stands at `text[start:end]`."""

    path: Path
    start: int
    end: int
    value: Any
    """The value of a string, a number, true, false or null. For a list or an object it is None,
    because the parts have places of their own."""
    is_leaf: bool


@lru_cache(maxsize=64)  # each part of an evaluation asks for the places of the same answer
def places(text: str) -> tuple[Place, ...] | None:
    """Return the values of a JSON object or list, each inner value before the value that holds it.

    Returns:
        The places, or None if the text is neither a JSON object nor a JSON list.
    """
    begin = _after_space(text, 0)
    if text[begin : begin + 1] not in ("{", "["):
        return None
    try:
        json.loads(text)
        return tuple(_read(text, begin, ()))
    except (ValueError, RecursionError):
        return None


def path_of(text: str, start: int, end: int) -> str | None:
    """Return the path of the innermost value around `text[start:end]`, such as "$.items[0].price".

    Returns:
        The path, or None if the text is no JSON object or list, or if no value holds the range.
    """
    for place in places(text) or ():
        if place.start <= start and end <= place.end:
            return written(place.path)
    return None


def written(path: Sequence[str | int]) -> str:
    """Return a path in the form of JSONPath (RFC 9535)."""
    return "$" + "".join(map(_step, path))


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _NAME.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


def _read(text: str, start: int, path: Path) -> Iterator[Place]:
    """Yield the places of the value that begins at `start`; its own place comes last."""
    if text[start] not in "{[":
        value, end = _DECODER.raw_decode(text, start)
        yield Place(path, start, end, value, True)
        return
    at, index = _after_space(text, start + 1), 0
    while text[at] not in "}]":
        step: str | int = index
        if text[start] == "{":
            step, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        last: Place | None = None
        for last in _read(text, at, (*path, step)):
            yield last
        assert last is not None  # every value yields at least its own place, and yields it last
        at, index = _after_space(text, last.end), index + 1
        at = _after_space(text, at + 1) if text[at] == "," else at
    yield Place(path, start, at + 1, None, False)


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at
