"""Read the figures of a text: numbers with their units, durations, times of day, and dates.

What could be an identifier, such as the digits of "v2", "10-12" or "20th", is no figure.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache
from itertools import chain

from demur.evaluators.refchecker.exact_numbers import DIMENSIONS, LARGE, unit_of
from demur.evaluators.refchecker.languages import Language, likely

NUMBER, PERCENT, TIME, MONTHS = "number", "%", "s", "months"
CLOCK, DATE, YEAR = "clock", "date", "year"
"""Kinds of figures beside currencies ("$") and dimensions. Months and years are of `MONTHS`."""
WITH_UNITS = (MONTHS, *DIMENSIONS)
"""Kinds that have several units, such as minutes and hours."""
ONE = Decimal(1)


@dataclass(frozen=True)
class Figure:
    """Hold a figure and its place in a text."""

    start: int
    end: int
    """It stands, with the sign of a currency or of percent, at `text[start:end]`."""
    value: Decimal
    """The value, in the base unit of its kind: seconds, months, minutes after midnight, days."""
    quantum: Decimal
    """What one more of its last digit is worth."""
    kind: str
    """What can be added to it: figures of one kind."""
    scale: Decimal = ONE
    """The worth of its own unit: 60 for minutes."""
    in_words: bool = False
    """Whether it is written in words."""


# -- Signs -----------------------------------------------------------------------------------------

_LETTER = r"A-Za-z\u00c0-\u04ff"


class _Signs(dict[int, str]):
    """Map each character to a plain one, such as a hyphen or a space, so that offsets stay."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        kind = unicodedata.category(sign)
        plain = "-" if kind == "Pd" else " " if kind in ("Zs", "Zl", "Zp") else sign
        if 0xFF00 <= code <= 0xFFEF:
            plain = unicodedata.normalize("NFKC", sign)
        self[code] = plain if len(plain) == 1 else sign
        return self[code]


_SIGNS = _Signs({ord("’"): "'", ord("−"): "-"})


@lru_cache(maxsize=256)  # the claims of an answer are held against the same texts
def plain_signs(text: str) -> str:
    """Return a text of the same length with plain hyphens, spaces, apostrophes and digits."""
    return text.translate(_SIGNS)


# -- Numbers ---------------------------------------------------------------------------------------

_DIGITS = re.compile(
    rf"(?<![\d{_LETTER}_#/+-])(?<!\d[.,:])"
    r"(?:\d{1,3}([., '])\d{3}(?:\1\d{3})*(?!\d)|\d+)(?:[.,]\d+)?"
    rf"(?!\d|[-/:_][\d{_LETTER}]|[.,]\d)"
)
_DECIMALS = re.compile(r"[.,]\d+$")
_LONGEST = 20
_LARGE_BEHIND = re.compile(r" ?([千万萬億亿]|[^\W\d_]+)(?:(?<=[mM]io|[mM]rd|mln|млн)\.)?")
_PERCENT = re.compile(
    r" ?(?:[%٪]|(?:per ?cent|prozent|pour ?cent|por ?cien(?:to)?|p[oe]r cento|persen)\b"
    r"|procent\w*|процент\w*|відсот\w*|퍼센트|パーセント|phần trăm|प्रतिशत|(?:في|ب)?ال(?:مئة|مائة))",
    re.IGNORECASE,
)
_CURRENCIES = {
    sign: names.split()[0]
    for names in (
        "$ usd us$ dollar dollars dólar dólares dollari доллар доллара долларов 美元 ドル 달러",
        "€ eur euro euros евро євро 欧元 ユーロ 유로",
        *(
            "£ gbp",
            "¥ ￥ jpy cny rmb yen yuan 円 元 圆",
            "₹ inr rs",
            "₩ krw won 원",
            "zł pln złotych",
        ),
        *("kr sek nok dkk", "₽ rub руб рублей рубля", "₴ uah грн гривень гривні", "₺ try tl lira"),
        *("chf fr. franken", "₫ vnd đồng đ", "rp idr rupiah"),
    )
    for sign in names.split()
}
# Before a number stand signs and the three letters of ISO 4217: "the team won 10 games".
_MONEY_BEFORE = re.compile(r"(US\$|[$€£¥￥₹₩₽₴₺₫]|(?<![^\W\d_])(?:[A-Z]{3}|Rp|Rs|zł|kr|Fr\.)) ?$")
_MONEY_BEHIND = re.compile(r" ?([$€£¥￥₹₩₽₴₺₫円元圆원]|美元|欧元|[^\W\d_]+)")
_PERIODS = [*(Decimal(n) for n in (1, 60, 3600, 86400, 604800)), ONE, Decimal(12)]
_FRACTIONS = (Decimal(50), Decimal(100) / 3, Decimal(25))
_JOINED = re.compile(r"[^\d.;:!?]{0,5}")
_CLOCK = re.compile(
    r"(?:(?:(午前|上午|오전)|(午後|下午|오후)) ?)?(?<![\d:.,])(\d{1,2})"
    r"(?:(?::| ?h ?| Uhr | ?[点點时時] ?)([0-5]\d)(?![\d:])|(?= ?[ap]\.?m\b)|(?= Uhr))"
    r"(?: ?([ap])\.?m\b)?",
    re.IGNORECASE,
)
_DATES = (
    re.compile(r"(?<!\d)(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)(?!\d)"),
    re.compile(r"(?<![\d.])(?P<d>\d{1,2})\. ?(?P<m>\d{1,2})\.(?: ?(?P<y>\d{4}))?(?![\d])"),
    re.compile(r"(?:(?P<y>\d{4}) ?[年년] ?)?(?P<m>\d{1,2}) ?[月월] ?(?P<d>\d{1,2}) ?[日号號일]"),
    re.compile(r"(?P<d>\d{1,2}) tháng (?P<m>\d{1,2})(?:(?: năm|,)? (?P<y>\d{4}))?"),
)
_DAY_BEFORE = re.compile(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|\.|º|er)?(?: (?:of|de))? ?$")
_DAY_BEHIND = re.compile(r"\.? (\d{1,2})(?:st|nd|rd|th)?(?![\d:]|\.\d)")
_YEAR_BEHIND = re.compile(r"\.?,?(?: de)? (\d{4})(?!\d)")
A_YEAR = re.compile(r"1[4-9]\d\d|20\d\d")
_DECADE = re.compile(r"\d{4}'?s\b")
_NO_YEAR = 2001


@lru_cache(maxsize=256)
def figures(text: str) -> tuple[Figure, ...]:
    """Return the figures of a text, in order.

    Numbers in words are read up to twenty, and so are halves, thirds and quarters.
    """
    plain = plain_signs(text)
    lower = plain.lower() if len(plain.lower()) == len(plain) else plain
    known = likely(text)
    # What has a character in common with a figure that was found before is none.
    found: list[Figure] = []
    for one in chain(
        _dates(plain, lower, known),
        _clocks(plain),
        _in_digits(plain, lower, known),
        _in_words(plain, lower, known),
    ):
        at = bisect_left(found, one.start, key=lambda other: other.start)
        before, behind = found[at - 1 : at], found[at : at + 1]
        if not any(other.end > one.start for other in before) and not any(
            other.start < one.end for other in behind
        ):
            found.insert(at, one)
    return tuple(_joined(plain, found))


def _in_digits(text: str, lower: str, known: Sequence[Language]) -> Iterator[Figure]:
    for match in _DIGITS.finditer(text):
        said, separator = match[0], match[1]
        whole, decimals = said, ""
        last = _DECIMALS.search(said)
        # In 12,500 the comma parts thousands, in 0,125 it does not.
        if last and (not separator or said.startswith("0") or last[0][0] != separator):
            whole, decimals = said[: last.start()], last[0][1:]
        code = said.startswith("0") and whole == said and len(said) > 1
        if len(said) <= _LONGEST and not code:
            digits = "".join(filter(str.isdigit, whole))
            quantum = Decimal(10) ** -len(decimals)
            plain = Figure(*match.span(), Decimal(f"{digits}.{decimals}"), quantum, NUMBER)
            if measured := _measured(plain, text, lower, known):
                yield measured


def _in_words(text: str, lower: str, known: Sequence[Language]) -> Iterator[Figure]:
    for language in known:
        for number, start, end in language.places("figures.counts", lower):
            one = Figure(start, end, Decimal(number), ONE, NUMBER, in_words=True)
            if measured := _measured(one, text, lower, known):
                yield measured
        for number, start, end in language.places("figures.fractions", lower):
            share = _FRACTIONS[number - 1]
            yield Figure(start, end, share, Decimal(2), PERCENT, in_words=True)


def _measured(one: Figure, text: str, lower: str, known: Sequence[Language]) -> Figure | None:
    """Return a number with the unit that stands beside it; None if it is a part of a word."""
    end = one.end
    if percent := _PERCENT.match(text, end):
        return replace(one, end=percent.end(), kind=PERCENT)
    if text[end : end + 1] == "割":  # tenths
        return in_unit(replace(one, end=end + 1), PERCENT, Decimal(10))
    if text[one.start - 1 : one.start] == "%" and not text[: one.start - 1][-1:].isdigit():
        return replace(one, start=one.start - 1, kind=PERCENT)
    before = _MONEY_BEFORE.search(text[max(0, one.start - 5) : one.start])
    large = _LARGE_BEHIND.match(text, end)
    # "5 m" is five metres, "$5 m" are millions.
    if large and not one.in_words and (before or len(large[1].encode()) > 1):
        worth = Decimal(int(LARGE.get(large[1].lower(), 1)))
        if worth > 1:
            one = in_unit(replace(one, end=large.end()), one.kind, worth)
            end = one.end
    if before and (sign := _CURRENCIES.get(before[1].lower())):
        return replace(one, start=one.start - len(before[0]), kind=sign)
    behind = _MONEY_BEHIND.match(text, end)
    if behind and (sign := _CURRENCIES.get(behind[1].lower())):
        return replace(one, end=behind.end(), kind=sign)
    for language in known:
        period = language.entry(
            "figures.periods", lower, end + (lower[end : end + 1] in (" ", "-"))
        )
        if period:
            number, last = period
            kind = TIME if number <= 5 else MONTHS
            return in_unit(replace(one, end=last), kind, _PERIODS[number - 1])
    if _DECADE.match(text, one.start):
        return None
    if unit := unit_of(text, end):
        kind, factor, end = unit
        return in_unit(replace(one, end=end), kind, Decimal(str(factor)))
    if A_YEAR.fullmatch(text, one.start, end):
        return replace(one, kind=YEAR)
    beside = re.match(rf"[{_LETTER}]", text[end : end + 1])
    return None if beside and not one.in_words else one


def in_unit(one: Figure, kind: str, scale: Decimal) -> Figure:
    """Return a number in a unit of a kind."""
    value, quantum = one.value * scale, one.quantum * scale
    return replace(one, value=value, quantum=quantum, kind=kind, scale=scale)


@lru_cache(maxsize=1024)
def periods(text: str) -> tuple[tuple[str, Decimal], ...]:
    """Return the kinds and the worths of the periods of time that a text names: "a month"."""
    lower = plain_signs(text).lower()
    named = {n for one in likely(text) for n, _, _ in one.places("figures.periods", lower)}
    return tuple((TIME if n <= 5 else MONTHS, _PERIODS[n - 1]) for n in sorted(named))


def with_unit(one: Figure, unit: str) -> Figure:
    """Return a number in the unit that stands elsewhere, such as in the head of its column."""
    found = figures(f"1 {unit}")
    return in_unit(one, found[0].kind, found[0].scale) if found else one


def _joined(text: str, found: Sequence[Figure]) -> Iterator[Figure]:
    """Yield the figures; "1 hour and 45 minutes" is one, and so are "two thirds"."""
    waiting: Figure | None = None
    for one in found:
        if waiting is not None:
            gap = text[waiting.end : one.start]
            same = waiting.kind == one.kind and one.kind in (TIME, MONTHS)
            if same and one.scale < waiting.scale and _JOINED.fullmatch(gap):
                value = waiting.value + one.value
                waiting = replace(one, start=waiting.start, value=value)
                continue
            parts = waiting.kind == NUMBER and one.kind == PERCENT and one.in_words
            if parts and len(gap) <= 1 and waiting.value <= 4:
                waiting = replace(one, start=waiting.start, value=waiting.value * one.value)
                continue
            yield waiting
        waiting = one
    if waiting is not None:
        yield waiting


# -- Times -----------------------------------------------------------------------------------------


def _clocks(text: str) -> Iterator[Figure]:
    for match in _CLOCK.finditer(text):
        half = "a" if match[1] else "p" if match[2] else (match[5] or "").lower()
        hour = int(match[3])
        if hour > 24 or (half and hour > 12):
            continue
        hour = hour % 12 + 12 * (half == "p") if half else hour
        yield Figure(*match.span(), Decimal(60 * hour + int(match[4] or 0)), ONE, CLOCK)


def _dates(text: str, lower: str, known: Sequence[Language]) -> Iterator[Figure]:
    for pattern in _DATES:
        for match in pattern.finditer(text):
            yield from _date(*match.span(), match["y"], int(match["m"]), int(match["d"]))
    for language in known:
        for month, start, end in language.places("figures.months", lower):
            before = _DAY_BEFORE.search(text[max(0, start - 9) : start])
            behind = None if before else _DAY_BEHIND.match(text, end)
            days = behind and language.entry("figures.periods", lower, behind.end() + 1)
            if (day := before or behind) and not days:
                last = behind.end() if behind else end
                year = _YEAR_BEHIND.match(text, last)
                first = start - (len(before[0]) if before else 0)
                last = year.end() if year else last
                yield from _date(first, last, year and year[1], month, int(day[1]))


def _date(start: int, end: int, year: str | None, month: int, day: int) -> Iterator[Figure]:
    try:
        days = date(int(year or _NO_YEAR), month, day).toordinal()
    except ValueError:
        return
    yield Figure(start, end, Decimal(days), ONE, DATE)
