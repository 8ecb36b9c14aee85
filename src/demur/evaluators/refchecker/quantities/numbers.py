"""Read numbers in digits, and the words after a number."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from demur.evaluators.refchecker.quantities.atoms import (
    Atom,
    Quantity,
    exact,
    number,
    ratio,
    span,
    stated,
)
from demur.evaluators.refchecker.quantities.dates import is_hour, time_of_day
from demur.evaluators.refchecker.quantities.words import LARGE, LETTERS, PERCENT, UNITS

Values = list[tuple[float, float]]
"""The possible values of a number, each with the place value of its last digit."""

_LONGEST = 15
"""The most digits that a float keeps apart. Longer numbers are compared as written."""
_RUN = re.compile(r"\d+")
_LETTERS = re.compile(r"[A-Za-z]+")
_SIGN = "千천万萬만億亿억兆조%"
# No word that follows a number is longer.
_NEXT = re.compile(rf"[ -]?([{_SIGN}]|[^\W\d_]{{1,20}})")
_SHARED = re.compile(r" ?(?:-|to|and|or) ?\d[\d.,]{0,20}")
_PLURAL = re.compile(r"'?s\b")
_PER_CENT = re.compile(r" per cent\b", re.IGNORECASE)
_SHORT_YEAR = re.compile(r"[-/](\d{2})(?![\w-])")
_ORDINAL = frozenset(("st", "nd", "rd", "th"))
_ATTACHED = UNITS.keys() | LARGE.keys() | PERCENT | {"x"}
_HEDGE = re.compile(
    r"(?:\b(?:about|around|approximately|roughly|nearly|almost|some|circa"
    r"|(?P<over>(?:more|greater|longer|older|larger) than|over|above|at least|exceed(?:s|ed|ing))"
    r"|(?P<under>(?:less|fewer|smaller|younger) than|under|below|at most|up to))"
    r" (?:an? |the |[$€£] ?)?|~ ?)$",
    re.IGNORECASE,
)
_REACH = 24


def in_name(text: str, token: re.Match[str]) -> Iterator[Quantity]:
    """Yield the digits within a name: they state nothing, but may explain those of a claim."""
    values = [float(run[:_LONGEST]) for run in _RUN.findall(token.group())]
    yield Quantity(*token.span(), [], [atom for value in values for atom in in_title(value)])


def in_fraction(text: str, token: re.Match[str]) -> Iterator[Quantity]:
    """Yield fractions such as 2/3 and 2 1/2, which may also be two numbers."""
    *whole, above, below = map(int, _RUN.findall(token.group()))
    parts = [number(value) for value in (*whole, above, below)]
    values: Values = []
    if 0 < above < below:
        values.append((sum(whole) + above / below, 0.1 if whole else 0.01))
    yield measured(text, *token.span(), values, parts)


def in_digits(text: str, token: re.Match[str]) -> Iterator[Quantity]:
    """Yield numbers in digits, each with all ways to read it."""
    start, end = token.span()
    digits = token.group().lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ$€£¥₹₩ ")
    tail = _LETTERS.match(text, end)
    after = tail.group().lower() if tail else ""
    plain = digits.isdecimal() and len(digits) < 5
    values, parts = _values(digits)
    if plain and len(digits) < 3 and is_hour(text, end):
        end, times = time_of_day(text, end, [int(digits)])
        hour = exact("hour", int(digits))
        yield Quantity(
            start, end, [*([time] for time in times), [hour]], [*times, number(hour.value)]
        )
    elif plain and digits.endswith("0") and (plural := _PLURAL.match(text, end)):
        yield decade(start, plural.end(), int(digits))
    elif not values:
        yield stated(start, end, [[exact(f"as {digits}", 0)], *([parts] if parts else [])])
    elif after in _ORDINAL:
        yield nth(text, start, end + 2, values[0][0], vague=False)
    elif len(after) == 1 and after not in _ATTACHED:  # 3D, 5G
        yield Quantity(start, end + len(after), [], [number(value) for value, _ in values])
    else:
        quantity = measured(text, start, end, values, parts)
        yield quantity._replace(
            evidence=[*quantity.evidence, *(exact("nth", value) for value, _ in values)]
        )
        if len(digits) == 4 and plain and (short := _SHORT_YEAR.match(text, end)):
            year = number(int(digits[:2] + short[1]))
            yield stated(*short.span(1), [[year], [number(int(short[1]))]])


def _values(digits: str) -> tuple[Values, list[Atom]]:
    """Return a number's possible values, and its parts if they may be numbers of their own."""
    added = 0.0 if digits[-1].isdecimal() else unicodedata.numeric(digits[-1])
    pieces, signs = _RUN.findall(digits), re.findall(r"[.,' ]", digits)
    if not pieces:
        return [(added, 0.1)], []
    if added:
        return [(float("".join(pieces)) + added, 0.1)], []
    if sum(map(len, pieces)) > _LONGEST:
        return [], []
    if len(pieces) == 1:
        return [(float(digits), 10.0 ** -len(pieces[0]) if signs else 1.0)], []
    values: Values = []
    between = all(len(piece) in (2, 3) for piece in pieces[1:-1])
    grouped = between and len(pieces[-1]) == 3 and len({*signs}) == 1 and len(pieces[0]) <= 3
    if grouped and pieces[0].strip("0"):
        values.append((float("".join(pieces)), 1.0))
    apart = between and signs[-1] in ".," and signs[-1] not in signs[:-1]
    # 4,000 is not four: nobody writes thousandths that end with a zero.
    if apart and len({*signs[:-1]}) < 2 and not (grouped and pieces[-1].endswith("0")):
        decimal = f"{''.join(pieces[:-1])}.{pieces[-1]}"
        values.append((float(decimal), 10.0 ** -len(pieces[-1])))
    # For 12 300 and a list without spaces, but not for 12,300.
    listed = " " in signs or ("," in signs and not grouped)
    return values, [number(float(piece)) for piece in pieces] if listed else []


def decade(start: int, end: int, value: int) -> Quantity:
    """Make the quantity of the 1990s, the 90s or the 1800s."""
    first = value if value > 99 else 1900 + value
    last = first + (9 if first % 100 else 99)
    readings = [[span("era", first, last)], [span("", first, last)]]
    if value < 100:  # as in "in his thirties"
        readings.append([span("", value, value + 9)])
    return Quantity(start, end, readings, [exact("era", first)])


def following(text: str, end: int) -> tuple[str, int]:
    """Return the next word in lower case, and its end; an empty word if there is none."""
    word = _NEXT.match(text, end)
    return (word[1].lower(), word.end()) if word else ("", end)


def measured(
    text: str,
    start: int,
    end: int,
    values: Values,
    parts: list[Atom] | None = None,
    *,
    vague: bool = False,
) -> Quantity:
    """Make the quantity of a number with the words after it: millions, percent, a unit.

    Args:
        text: The text in which the number stands.
        start: The offset at which the number begins.
        end: The offset at which the number ends.
        values: The possible values of the number.
        parts: The numbers that it may be instead.
        vague: Whether the number states nothing without a unit.
    """
    readings = [parts] if parts else []
    word, after = following(text, end)
    while size := LARGE.get(word):
        scaled = _scaled(values, size)
        if word in LETTERS:
            if after == end + len(word):
                values, end = values + scaled, after
            break
        values, readings, end, vague = scaled, [], after, False
        word, after = following(text, end)
    else:
        if shared := _SHARED.match(text, end):
            values = values + _scaled(values, LARGE.get(following(text, shared.end())[0], 1))
    readings = [[number(value, step)] for value, step in values] + readings
    readings += [[ratio(value, step)] for value, step in values if 0 < value < 1]
    percent = _PER_CENT.match(text, end)
    if percent or word in PERCENT:
        end, vague = percent.end() if percent else after, False
        readings += [[ratio(value / 100, step / 100)] for value, step in values]
    elif word in UNITS:
        end, vague = after, vague and values[0][0] == 1
        kind, factor = UNITS[word]
        readings += [[number(value, step, kind=kind, factor=factor)] for value, step in values]
    hours = [exact("hour", value) for value, _ in values if 1 <= value <= 12]
    whole = stated(start, end, readings, *hours)
    return whole._replace(readings=[] if vague else _hedged(text, start, readings))


def in_title(value: float) -> list[Atom]:
    """Return the atoms of the 2 in "Part 2" and in "World War II": two, and second."""
    return [number(value), exact("nth", value)]


def nth(text: str, start: int, end: int, value: float, *, vague: bool) -> Quantity:
    """Make the quantity of an ordinal, which may count a century; a vague one states nothing."""
    readings, atoms = [[exact("nth", value)]], in_title(value)
    word, after = following(text, end)
    if word in ("century", "centuries"):
        era, end = int(value - 1) * 100, after
        readings += [[span("", era, era + 100)], [span("era", era, era + 99)]]
        atoms.append(exact("era", era))
    return Quantity(start, end, [] if vague else readings, atoms)


def _scaled(values: Values, size: int) -> Values:
    """Scale the values: thousands are taken as exact, millions as rounded."""
    return [(v * size, step * size if size >= 1e6 or step < 1 else 1) for v, step in values]


def _hedged(text: str, start: int, readings: list[list[Atom]]) -> list[list[Atom]]:
    """Let "about 100" accept 104, and "over 100" accept 140, since a hedged number is rounded."""
    hedge = _HEDGE.search(text[max(0, start - _REACH) : start])
    value = readings[0][0].value
    if not hedge or value % 10:
        return readings
    low, high = (1.0, 2.0) if hedge["over"] else (0.5, 1.0)
    if not hedge["over"] and not hedge["under"]:
        # The place value of the last digit that is not zero.
        step = next(10**power for power in range(_LONGEST, 0, -1) if value % 10**power == 0)
        slack = min(step / 2 / (value or 1), 0.1)
        low, high = 1 - slack, 1 + slack
    # If the number has a unit, only numbers with a unit are accepted.
    measures = [atom for atom, *_ in readings if atom.kind] or [atom for atom, *_ in readings]
    wider = [
        [
            measure._replace(
                low=min(measure.low, measure.value * low),
                high=max(measure.high, measure.value * high),
            )
        ]
        for measure in measures
    ]
    return readings + wider
