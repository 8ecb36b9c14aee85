"""Damage files of JSON lines and of SQLite, as a failing disk or another program would.

The same seed gives the same damage.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

_RAW = {
    "@deep": "[" * 10_000 + "]" * 10_000,
    "@deeper": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "@open": "[" * 100_000,
    "@digits": "9" * 5_000,
    "@surrogate": r'"\ud800"',
    "@twice": r'"\u0000\udc00\ud83d"',
}
"""Raw JSON that no Python value is written as, by the placeholder that it replaces."""
_ODD: tuple[Any, ...] = (
    *_RAW,
    *(None, True, False, 0, 1, -1, 3, 10**12, 2**63, -(2**63) - 1, 10**40, 0.5, -1.5, 1e308),
    *(float("nan"), float("inf"), float("-inf"), "", "x", "\x1b[31m", "0001-01-01T00:00:00+14:00"),
    *("9999-12-31T23:59:59-14:00", [], {}, [None], [[]], {"self": 1}, {"page_content": None}),
    *({"metadata": {}}, {"page_content": "x", "self": 1, "cls": 2}, [{"type": "Document"}]),
)


def damaged_line(line: bytes, chance: random.Random) -> bytes:
    """Return a damaged line of JSON, without a line break in it or at its end."""
    ways = [_flipped, _cut, _inserted, *[_mutated] * 5]
    return chance.choice(ways)(line.rstrip(b"\n"), chance).replace(b"\n", b" ")


def damaged_bytes(whole: bytes, chance: random.Random) -> bytes:
    """Return a damaged file: some bytes are changed, a stretch is zeros, or the end is missing."""
    raw = bytearray(whole)
    way = chance.randrange(3)
    at = chance.randrange(len(raw))
    if way == 0:
        for _ in range(chance.choice([1, 3, 30, 300])):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
    elif way == 1:
        size = min(chance.choice([16, 512, 4096, 20_000]), len(raw) - at)
        raw[at : at + size] = bytes(size)
    else:
        del raw[at:]
    return bytes(raw)


def _flipped(line: bytes, chance: random.Random) -> bytes:
    raw = bytearray(line)
    for _ in range(chance.choice([1, 1, 5])):
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    return bytes(raw)


def _cut(line: bytes, chance: random.Random) -> bytes:
    begin, end = sorted(chance.randrange(len(line)) for _ in range(2))
    return line[:begin] + line[end:] if chance.random() < 0.5 else line[:begin]


def _inserted(line: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(line))
    what = chance.choice(
        [b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"[" * 20_000, b"{", b"\xef\xbb\xbf"]
    )
    return line[:at] + what + line[at:]


def _mutated(line: bytes, chance: random.Random) -> bytes:
    value = json.loads(line)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        value = _with_one_other(value, chance)
    text = json.dumps(value)
    for name, raw in _RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode()


def _with_one_other(value: Any, chance: random.Random) -> Any:
    value = copy.deepcopy(value)
    places = [*_places(value)]
    if not places:
        return chance.choice(_ODD)
    held, key = chance.choice(places)
    way = chance.randrange(4)
    if way == 0:
        del held[key]
    elif way == 1 and isinstance(held[key], dict):
        held[key][chance.choice(["self", "cls", "", "id", "score", "x"])] = chance.choice(_ODD)
    elif way == 2:
        held[key] = chance.choice([[held[key]], {"a": held[key]}, str(held[key])])
    else:
        held[key] = chance.choice(_ODD)
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a value, as its container and the key or index in it."""
    if isinstance(value, dict):
        each: Any = value.items()
    elif isinstance(value, list):
        each = enumerate(value)
    else:
        return
    for key, held in each:
        yield value, key
        yield from _places(held)
