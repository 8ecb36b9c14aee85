"""Read numbers in words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from demur.evaluators.refchecker.quantities.atoms import Quantity, number, ratio, stated
from demur.evaluators.refchecker.quantities.numbers import (
    decade,
    following,
    in_title,
    measured,
    nth,
)
from demur.evaluators.refchecker.quantities.words import (
    CARDINALS,
    DECADES,
    IMPLIED,
    LARGE,
    LETTERS,
    ORDINALS,
    PARTS,
    ROMAN,
)

_AND_A_HALF = re.compile(r" and a half\b", re.IGNORECASE)
_OF = re.compile(r" of\b", re.IGNORECASE)
_VAGUE = (0, 1, 2)
"""Words for these numbers may count things that the evidence names one by one, or count nothing."""


def in_words(text: str, token: re.Match[str]) -> Iterator[Quantity]:
    """Yield the quantity that begins with a word, if there is one."""
    start, end = token.span()
    written, word = token.group(), token.group().lower()
    if word in DECADES:
        yield decade(start, end, DECADES[word])
    elif word in ("half", "a", "an"):
        yield from _with_article(text, start, end, word)
    elif word in CARDINALS or word in ORDINALS:
        yield _number(text, start)
    if value := IMPLIED.get(word):
        yield Quantity(start, end, [], [number(value)])
    if value := ROMAN.get(written) or (written.istitle() and CARDINALS.get(word)):
        yield Quantity(start, end, [], in_title(value))


def _with_article(text: str, start: int, end: int, word: str) -> Iterator[Quantity]:
    """Yield the quantity of "half a million", "a dozen", "a third of", "half of" and the like."""
    half = word == "half"
    after, stop = following(text, end)
    if half and after in ("a", "an"):
        after, stop = following(text, stop)
        end = stop - len(after) - 1
    if after in LARGE and after not in LETTERS:
        yield measured(text, start, end, [(0.5, 0.01) if half else (1, 1)])
    elif half:
        share = stated(start, end, [[ratio(0.5)]])
        yield share if after in ("of", "the") else share._replace(readings=[])
    elif after in PARTS and _OF.match(text, stop):
        yield stated(start, stop, [[ratio(1 / PARTS[after])]])


def _number(text: str, start: int) -> Quantity:
    """Return the number whose first word begins at `start`."""
    value, step, ordinal, end = _value(text, start)
    if ordinal:
        return nth(text, start, end, value, vague=value == 1)
    part, after = following(text, end)
    below = PARTS.get(part, 0)
    if value < below and (value > 1) == part.endswith("s"):
        return stated(start, after, [[ratio(value / below)]], number(value))
    if half := _AND_A_HALF.match(text, end):
        value, step, end = value + 0.5, 0.1, half.end()
    return measured(text, start, end, [(value, step)], vague=value in _VAGUE)


def _value(text: str, end: int) -> tuple[float, float, bool, int]:
    """Return a number, the place value of its last word, whether it is ordinal, and its end."""
    total, step, ordinal = 0.0, 1.0, False
    current: float | None = None
    word, after = following(text, end)
    while not ordinal:
        value = CARDINALS.get(word, ORDINALS.get(word))
        if value is not None:
            joined = _joined(current, value)
            if joined is None:
                break
            current, step, ordinal = joined, 1.0, word in ORDINALS
        elif current is None or word not in LARGE or word in LETTERS:
            break
        elif word == "hundred":
            if current >= 100:
                break
            current *= 100
        else:
            total, current = total + current * LARGE[word], None
            step = LARGE[word] if LARGE[word] >= 1e6 else 1.0
        end, large = after, word in LARGE
        word, after = following(text, end)
        if large and word == "and":
            word, after = following(text, after)
            if word not in CARDINALS:
                break
    return total + (current or 0), step, ordinal, end


def _joined(current: float | None, value: int) -> float | None:
    """Join a number word to the words before it; return None if it begins another number."""
    if current is None:
        return value
    units = current % 100 >= 20 and current % 10 == 0 and 0 < value < 10
    if units or (current >= 100 and current % 100 == 0 and 0 < value < 100):
        return current + value
    # For a year: nineteen eighty-four, twenty ten.
    return current * 100 + value if 10 < current < 22 and value >= 10 else None
