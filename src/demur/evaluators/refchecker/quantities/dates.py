"""Read dates and times of day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from demur.evaluators.refchecker.quantities.atoms import Atom, Quantity, exact, number, stated
from demur.evaluators.refchecker.quantities.words import MONTHS

_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[A-Za-z]+")
_HALF_DAY = re.compile(r" ?(?:([ap])\.?m\b\.?|o'clock\b|uhr\b)", re.IGNORECASE)
_LEADING = re.compile(r"\b(?:in|since|until|by|during|early|late|mid|of)[ -]$", re.IGNORECASE)
_REACH = 8


def in_words(text: str, token: re.Match[str]) -> Iterator[Quantity]:
    """Yield dates whose month is a word; several days or months may share a month or a year."""
    form = str(token.lastgroup)
    year = token[f"{form}_year"]
    named = token.group().removesuffix(year or "")
    days = [int(digits) for digits in _DIGITS.findall(named)]
    # A month alone may be a name.
    alone = not year and not days
    before = text[max(0, token.start() - _REACH) : token.start()]
    for word in _LETTERS.findall(named):
        month = MONTHS.get(word.lower())
        for day in (days or [0]) if month else ():
            date = _date(token, int(year or 0), month or 0, day)
            yield date._replace(readings=[]) if alone and not _LEADING.search(before) else date


def in_digits(text: str, token: re.Match[str]) -> Iterator[Quantity]:
    """Yield dates such as 1712-05-03, 3.5.1712 and 5/3/1712.

    The order of day and month is unknown in the last two forms, so both orders are readings.
    """
    numbers = [int(digits) for digits in _DIGITS.findall(token.group())]
    first, second, third = (*numbers, 0)[:3]
    orders = [(third, second, first), (third, first, second)]
    if token.lastgroup == "year_first":
        orders = [(first, second, third)]
    dates = [
        _date(token, year, month, day)
        for year, month, day in orders
        if 1 <= month <= 12 and day <= 31
    ]
    parts = [number(value) for value in numbers]
    readings = [atoms for date in dates for atoms in date.readings] or [parts]
    evidence = [*parts, *(atom for date in dates for atom in date.evidence)]
    yield Quantity(*token.span(), readings, evidence)


def _date(token: re.Match[str], year: int, month: int, day: int) -> Quantity:
    """Return one date; a part of 0 is unknown."""
    kind, value = ("month and day", month * 100 + day) if day else ("month", month)
    evidence = [exact(kind, value), exact("month", month), *([number(day)] if day else ())]
    if not year:
        # A date without a year may be of any year.
        evidence += [exact(f"{kind}, no year", value), exact("month, no year", month)]
        return Quantity(*token.span(), [evidence[:1]], evidence)
    dated = exact(f"{kind}, year", year * 10000 + value)
    evidence += [dated, exact("month, year", year * 10000 + month), number(year)]
    readings = [[dated], [exact(f"{kind}, no year", value), number(year)]]
    return Quantity(*token.span(), readings, evidence)


def on_the_clock(text: str, token: re.Match[str]) -> Iterator[Quantity]:
    """Yield times such as 15:30 and 3.30 pm, which may also be two numbers."""
    numbers = [int(digits) for digits in _DIGITS.findall(token.group())]
    end, times = time_of_day(text, token.end(), numbers)
    parts = [number(value) for value in numbers]
    yield stated(token.start(), end, [*([time] for time in times), parts])


def is_hour(text: str, end: int) -> bool:
    """Return whether the text after a number that ends at `end` makes it an hour."""
    return bool(_HALF_DAY.match(text, end))


def time_of_day(text: str, end: int, numbers: Sequence[int]) -> tuple[int, list[Atom]]:
    """Return the end of a time of day, and its seconds: two values without "am" or "pm"."""
    half = _HALF_DAY.match(text, end)
    hour, minutes, seconds = (*numbers, 0, 0)[:3]
    hours = {hour, (hour + 12) % 24} if hour <= 12 else {hour}
    if half and half[1] and hour <= 12:
        hours = {hour % 12 + (12 if half[1] in "pP" else 0)}
    seconds += minutes * 60
    return half.end() if half else end, [exact("time", at * 3600 + seconds) for at in hours]
