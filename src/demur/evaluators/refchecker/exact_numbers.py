"""Compare the numbers of texts by value: in digits or words, rounded, and in other units.

In doubt, two numbers are the same.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

LONGEST = 200
"""A string of more characters is neither a number nor an identifier."""
_POWERS = {
    3: "k thousand tausend mille mil 千",
    4: "万 萬",
    6: "m mn mio million millions millionen millón millones",
    8: "億 亿",
    9: "b bn mrd billion billions milliarde milliarden milliard milliards",
    12: "trillion trillions billionen",
}
LARGE = {word: 10.0**power for power, words in _POWERS.items() for word in words.split()}
_IN_WORDS = re.compile(
    r"hundred|hundert|\bcent\b|\bcien|thousand|tausend|\bmil(?:le)?\b|milli[oó]n|milliard|[百千万萬億亿]",
    re.IGNORECASE,
)
_IN_TEXT = re.compile(r"(?<!\d)(?<!\d[.,])\d{1,3}(?:[ ']\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:([.,' ])\d{3})(?:\1\d{3})*")
_MEASURED = re.compile(r" ?(?:[%‰°€$£¥元円]|per ?cent|prozent|pour cent|por ciento)", re.IGNORECASE)
_NEXT = re.compile(r"[ -]?([千万萬億亿]|[^\W\d_]+)")
_SYMBOLS = {
    "m": {"mm": 1e-3, "cm": 1e-2, "m": 1, "km": 1e3},
    "g": {"µg": 1e-6, "mg": 1e-3, "g": 1, "kg": 1e3},
    "l": {"ml": 1e-3, "mL": 1e-3, "cl": 1e-2, "l": 1, "L": 1},
    "B": {"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
    | {"ko": 1e3, "Ko": 1e3, "Mo": 1e6, "Go": 1e9, "To": 1e12},
    "s": {"ms": 1e-3, "s": 1, "min": 60, "h": 3600},
    "W": {"W": 1, "kW": 1e3, "MW": 1e6},
    "Hz": {"Hz": 1, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
}
_UNITS = {name: (of, factor) for of, names in _SYMBOLS.items() for name, factor in names.items()}
"""The dimension of each unit, and its factor."""
DIMENSIONS = tuple(_SYMBOLS)
"""The dimensions, each named by a unit: "m" is length."""
_WORDS = {
    **dict.fromkeys(("mile", "miles"), ("m", 1609.344)),
    **dict.fromkeys(("foot", "feet", "ft"), ("m", 0.3048)),
    **dict.fromkeys(("inch", "inches"), ("m", 0.0254)),
    **dict.fromkeys(("pound", "pounds", "lb", "lbs"), ("g", 453.59237)),
}
_PREFIXES = {"mi": 1e-3, "ce": 1e-2, "ze": 1e-2, "ki": 1e3, "me": 1e6, "gi": 1e9}
_BASES = {
    **{"met": ("m", 1.0), "gra": ("g", 1.0), "lit": ("l", 1.0), "byt": ("B", 1.0)},
    **{"oct": ("B", 1.0), "sec": ("s", 1.0), "sek": ("s", 1.0), "seg": ("s", 1.0)},
    **{"min": ("s", 60.0), "hou": ("s", 3600.0), "stu": ("s", 3600.0), "heu": ("s", 3600.0)},
    "hor": ("s", 3600.0),
}
_UNIT_WORD = re.compile(
    r"(milli|mili|centi|zenti|kilo|mega|giga)?(?=met(?:er|re|ro)|gram|lit(?:er|re|ro)|byte|octet"
    r"|second|sekunde|segundo|minut|hour|stunde|heure|hora)(...)"
)
_UNIT = re.compile(r"[ -]?([A-Za-zµ\u00c0-\u04ff]+)(?![/²³])")


class _Reading(NamedTuple):
    """Hold a way to read a number."""

    value: float
    slack: float
    """By how much what it was rounded from may differ."""
    unit: tuple[str, float] | None
    """The dimension and the factor of the unit behind it, if that is known."""


class _Numbers:
    """Hold the numbers of a text, to find one that another may be."""

    def __init__(self, readings: Sequence[_Reading]) -> None:
        self._every = sorted(one.value for one in readings)
        self._measured: dict[str, tuple[list[float], list[float]]] = {}
        """For each dimension, the numbers in it, and the values of the others."""
        for of in {one.unit[0] for one in readings if one.unit}:
            inside = [
                (one.value, one.unit[1]) for one in readings if one.unit and one.unit[0] == of
            ]
            others = [one.value for one in readings if one.unit is None or one.unit[0] != of]
            self._measured[of] = (sorted(a * b for a, b in inside), sorted(others))

    def hold(self, one: _Reading) -> bool:
        """Return whether a number is one of these, perhaps rounded or in another unit."""
        if one.unit is None or one.unit[0] not in self._measured:
            return _within(self._every, one.value, one.slack)
        of, factor = one.unit
        inside, others = self._measured[of]
        return _within(inside, one.value * factor, one.slack * factor) or _within(
            others, one.value, one.slack
        )


def _within(ordered: Sequence[float], value: float, slack: float) -> bool:
    at = bisect_left(ordered, value - slack)
    return at < len(ordered) and ordered[at] <= value + slack


def has_value(text: str, start: int, end: int, texts: Sequence[str]) -> bool:
    """Return whether the number at `text[start:end]` may be one of the numbers of other texts."""
    readings = [*_readings(text[start:end], text, end)]
    return any(_numbers(other).hold(one) for other in texts for one in readings) or (
        text[end - 1] == "0" and any(map(_IN_WORDS.search, texts))
    )


def is_measured(claim: str, start: int, end: int) -> bool:
    """Return whether a number is a share, an amount of money, or has the symbol of a unit."""
    before, behind = claim[:start].rstrip()[-1:], _UNIT.match(claim, end)
    return (
        (before != "" and before in "€$£¥")
        or bool(_MEASURED.match(claim, end))
        or (behind is not None and behind[1] in _UNITS)
    )


def unit_of(text: str, end: int) -> tuple[str, float, int] | None:
    """Return the unit behind a number: its dimension, its factor, and where it ends; or None."""
    named = _UNIT.match(text, end)
    if named is None:
        return None
    if known := _UNITS.get(named[1]) or _WORDS.get(named[1].lower()):
        return (*known, named.end())
    plain = unicodedata.normalize("NFKD", named[1].lower()).encode("ascii", "ignore").decode()
    word = _UNIT_WORD.match(plain)
    if word is None:
        return None
    of, factor = _BASES[word[2]]
    return of, factor * _PREFIXES.get((word[1] or "")[:2], 1.0), named.end()


def _readings(said: str, text: str, end: int) -> Iterator[_Reading]:
    """Yield the ways to read a number: 1.234 is more than a thousand, or a little more than 1."""
    forms = [said.replace(",", ".").replace("'", "").replace(" ", "")]
    if _THOUSANDS.fullmatch(said):
        whole = "".join(filter(str.isdigit, said))
        forms = [whole, *(forms if said.count(said[-4]) == 1 and said[-4] in ".," else [])]
    elif said.count(".") + said.count(",") > 1:
        whole, _, decimals = re.sub(r"[.,](?=\d+$)", "|", said).partition("|")
        forms = [f"{''.join(filter(str.isdigit, whole))}.{decimals}"]
    following = _NEXT.match(text, end)
    factor = LARGE.get(following[1].lower(), 1.0) if following else 1.0
    unit = (found := unit_of(text, end)) and found[:2]
    for form in forms:
        whole, _, decimals = form.partition(".")
        zeros = len(form) - len(form.rstrip("0")) if form.isdigit() else 0
        # The zeros at the end of a whole number may be of a rounding, or of "more than".
        slack = min(10.0**zeros, 0.1 * float(form)) if zeros else 0.501 * 10.0 ** -len(decimals)
        yield _Reading(float(form), slack, unit)
        if factor > 1:
            yield _Reading(float(form) * factor, slack * factor, None)


@lru_cache(maxsize=256)
def _numbers(text: str) -> _Numbers:
    found = {
        reading
        for number in _IN_TEXT.finditer(text)
        if len(number.group()) <= LONGEST  # a longer one is no number that a float holds
        for reading in _readings(number.group(), text, number.end())
    }
    return _Numbers([*found])
