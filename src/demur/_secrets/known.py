"""Know which values are secret: those of models and their clients, and those of the environment."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from types import ModuleType

from pydantic import BaseModel, SecretBytes, SecretStr

from demur._secrets.names import is_secret_name

_MOST_OBJECTS = 5_000
_MOST_VALUES = 1_000
_HOLD_NOTHING = (type, ModuleType, int, float, type(None))
_SHORTEST = 8
_SHORT_WORDS = re.compile(r"(?=.{1,15}$)[A-Za-z]+(?:[-_ ][A-Za-z]+)*")
_SCHEME = re.compile(r"(?:bearer|basic|token)\s+", re.IGNORECASE)

_learnt: dict[str, None] = {}  # the newest is last; each step is atomic, so no lock is needed


def learn(*owners: object) -> None:
    """Remember the secret values in models, evaluators and guards, as `secrets_in` finds them.

    The process keeps the 1,000 values that it met for the first time most recently.
    """
    for value in secrets_in(owners):
        _learnt.setdefault(value)
    for value in list(_learnt)[:-_MOST_VALUES]:
        _learnt.pop(value, None)


def known_secrets() -> frozenset[str]:
    """Return the secrets that were learnt, and the environment's values whose names say "secret".

    A variable that was seen once is remembered, so the old value of a changed key still counts.
    """
    learn({name: os.environ.get(name, "") for name in os.environ if is_secret_name(name)})
    return frozenset(_learnt)


def secrets_in(owner: object) -> frozenset[str]:
    """Return the secret values in an object and in everything that it holds.

    A value is secret if it is a pydantic `SecretStr`, or a text under a name that says so. Such a
    name is an attribute's, a mapping entry's, or the first item of a tuple, as headers have it. The
    nearest objects are looked at first, and at most 5,000 of them. Nothing is called on the way.

    Three kinds of values are left out: paths, values of fewer than 8 characters, and words of fewer
    than 16 letters. A password "postgres" cannot be told from the word.
    """
    found: set[str] = set()
    seen: dict[int, object] = {}  # keeps the objects alive, so that no id is used twice
    queue: deque[tuple[str, object]] = deque([("", owner)])
    while queue and len(seen) < _MOST_OBJECTS:
        name, value = queue.popleft()
        if isinstance(value, (SecretStr, SecretBytes)):
            name, value = "secret", value.get_secret_value()
        if isinstance(value, (str, bytes)):
            if is_secret_name(name):
                found.add(_SCHEME.sub("", _text(value).strip(), count=1))
        elif id(value) not in seen and not isinstance(value, _HOLD_NOTHING):
            seen[id(value)] = value
            queue.extend(islice(_held(name, value), _MOST_OBJECTS))
    return frozenset(filter(_tells, found))


def _held(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the values that an object holds, each with the name that it is held under."""
    if isinstance(value, dict):
        yield from ((key, held) for key, held in [*value.items()] if isinstance(key, str))
        said = value.get("name", value.get("key"))
        if isinstance(said, str):  # {"name": "Authorization", "value": ...}
            yield said, value.get("value")
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((name, held) for held in [*value])
        # A pair, or as httpx has it: (b"Authorization", b"authorization", b"...").
        first = next(iter(value), None)
        if isinstance(first, bytes) or (isinstance(first, str) and len(value) == 2):
            yield _text(first), [*value][-1]
    else:
        fields = [getattr(value, "__dict__", None)]
        if isinstance(value, BaseModel):
            fields += [value.__pydantic_private__, value.__pydantic_extra__]
        for held in fields:
            yield from [*held.items()] if isinstance(held, dict) else ()


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


def _tells(value: str) -> bool:
    return (
        len(value) >= _SHORTEST
        and not _SHORT_WORDS.fullmatch(value)
        and not os.path.isabs(value)
        and not value.startswith(("~", "./"))
    )
