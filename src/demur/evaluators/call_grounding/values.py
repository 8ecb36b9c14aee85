"""Say whether a value was given: in these letters, in another writing, or as what follows.

In doubt, a value was given.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import accumulate

from demur.evaluators.call_grounding.arguments import Argument
from demur.evaluators.refchecker.exact_numbers import LARGE
from demur.evaluators.refchecker.exact_strings import missing_strings, nearest, stands
from demur.evaluators.refchecker.figures import DATE, MONTHS, NUMBER, PERCENT, TIME, Figure, figures

# Figures are worked out from the last texts: to read them takes 10 microseconds a character.
_MOST_READ, _LAST, _BEFORE, _LONGEST = 6000, 40, 30, 20
_HUNDRED, _KIB = Decimal(100), Decimal("1.024")
_OFTEN = [  # how often a price may be paid
    (often, re.compile(words, re.IGNORECASE))
    for often, words in ((12, "year|annual|jahr|ann[eé]e|año"), (7, "week|woche"), (24, "hour"))
]
_NUMBER = re.compile(r"(?<![\d.,])(\d+(?:[.,' ]\d+)*)(?!\d)(?: ?([^\W\d_]+))?")
_PERCENT = re.compile(r"-(\d+(?:[.,]\d+)?) ?%")  # "-10 %" is no figure elsewhere
_LAST_OF_LINE = re.compile(r"[^\d\n]*(?:\n|$)")
_THOUSANDS = re.compile(r"(?<![\w.,])(\d+(?:\.\d+)?)[kK]\b")
# In doubt, a number was given in words.
_IN_WORDS = re.compile(
    r"\b(?:(?:twen|thir|for|fif|six|seven|eigh|nine)ty|\w*(?:hundred|hundert|thousand|tausend|zig)"
    r"(?:[- ]\w+)?|grand|dozen|point|komma|coma|virgule|vingt|trente|quarante|cinquante|soixante"
    r"|cent|mille?|veinte|treinta|cuarenta|cincuenta|cien)\b",
    re.IGNORECASE,
)
_PIECE = re.compile(r"\d+|[^\W\d_]+")
_SEVERAL = re.compile(r"[\s,;]")
_JOINED = re.compile(r"\w+(?:[-_.]\w+)+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_TITLES = re.compile("mr|mrs|ms|dr|prof|herr|frau|mme|monsieur|madame|sir|the|and|of|inc|ltd|gmbh")
_SPOKEN = re.compile(r"\s*[\[(]?\b(at|dot)\b[\])]?\s*", re.IGNORECASE)
_SEGMENT = re.compile(r"[/\\?&=#:]|\.{3}")
_EXTENSION = re.compile(r"\.[a-z]{2,4}$")
_PAGING = re.compile(r"(?<=[?&])\w*(?:page|limit|offset|size|sort)\w*=[^&]*")
_PHONE = re.compile(r"\+?\d[\d\s()/.-]{4,22}\d")
_LEAST_OF_PHONE, _COUNTRY = 6, 3
_DAY, _MONTH = 86400, 30.4
_NEAR, _SOON, _UNCLEAR, _LATER, _QUARTER, _MOST_DATES = 7, 14, 45, 62, 92, 40
_PERIOD = re.compile(
    r"\b(?:end of|ende|fin|final|fine|q[1-4]|quart|trimest|month|monat|mois|mes|year|\w*jahr|ann"
    r"|año|half)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Given:
    """Hold what was given to an agent."""

    texts: tuple[str, ...]
    today: date
    question: str = ""
    """What the user said last."""
    beside: tuple[str, ...] = ()
    """The other numbers of the call that were given or are free."""

    @cached_property
    def recent(self) -> tuple[str, ...]:
        """Return the last texts, with thousands in digits: 9000 for "9k"."""
        before = [0, *accumulate(map(len, reversed(self.texts)))][:-1]
        kept = self.texts[len(self.texts) - sum(length < _MOST_READ for length in before) :]
        digits = lambda found: f"{Decimal(found[1]) * 1000:f}"  # noqa: E731
        return tuple(_THOUSANDS.sub(digits, text) for text in kept)

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Return the figures of the last texts."""
        return tuple(one for text in self.recent for one in figures(text))

    @cached_property
    def results(self) -> frozenset[float]:
        """Return what the last figures give, without their units, rounded to hundredths."""
        every = (*self.figures, *(one for text in self.beside for one in figures(text)))[-_LAST:]
        values = {_plain(one) for one in every}
        few = {*map(_plain, figures(self.question))}.intersection(range(2, 13))
        often = [n for n, words in _OFTEN if words.search(self.question)]
        said = [found for text in self.recent for found in _PERCENT.findall(text)]
        shares = [_plain(one) / 100 for one in every if one.kind == PERCENT]
        shares += [float(one.replace(",", ".")) / 100 for one in said]
        shares += [sign for one in shares for sign in (1 - one, 1 + one)]
        products = {a * b for a in values for b in (*values, *often, *shares)}
        products |= {a * one for a in products for one in shares}
        sums = {sign for a in values for b in values for sign in (a + b, a - b)}
        times = {a * n for a in values for n in few}
        sums |= {a + b for a in times for b in (*values, *times)}  # 2 of these, and one of those
        parts = {a / b for a in values for b in (*values, *often) if b in range(2, 101)}
        totals = (total for text in self.recent for total in _totals(text))
        return frozenset(round(one, 2) for one in (*products, *sums, *parts, *totals))

    def has(self, said: str) -> bool:
        """Return whether a text has a string, apart from other letters and digits."""
        low = said.lower()
        wanted = re.compile(rf"(?<!\w){re.escape(low)}(?!\w)")
        return any(low in text and wanted.search(text) for text in map(_lower, self.texts))


def is_given(one: Argument, given: Given) -> bool:
    """Return whether a value stands in what was given, or follows from it."""
    said = str(one.value).strip().lstrip("@")
    if one.kind == "number":
        return _number(one, given)
    if given.has(said):
        return True
    if one.kind == "date":
        return _date(said, given)
    if one.kind == "address":
        return _address(said, given)
    if one.kind == "name" and not _JOINED.fullmatch(said):
        return _name(said, given, one.is_thing)
    return (one.kind == "phone" and _phone(said, given)) or _identifier(said, given)


def nearest_to(one: Argument, given: Given) -> str | None:
    """Return the string that was given and is most like a value, if one is."""
    return nearest(str(one.value), given.texts)


# -- Strings ---------------------------------------------------------------------------------------


def _identifier(said: str, given: Given) -> bool:
    if stands(said, (*given.texts, " ".join(given.texts))):  # perhaps parted by two messages
        return True
    if said.isdecimal() and len(said) > _LEAST_OF_PHONE and _phone(said, given):
        return True
    if _SEVERAL.search(said):  # several, or one among words
        return not missing_strings(said, given.texts)
    # "ORD-48231" for order 48231, where the sign is known from elsewhere.
    pieces = _PIECE.findall(said)
    long = any(piece.isdigit() and len(piece) > 3 for piece in pieces)
    return long and all(stands(piece, given.texts) for piece in pieces)


def _address(said: str, given: Given) -> bool:
    if "@" in said and "/" not in said:
        signs = {"at": "@", "dot": "."}
        texts = (_SPOKEN.sub(lambda of: signs[of[1].lower()], text) for text in given.texts)
        return any(said.lower() in text.lower() for text in texts)
    # A path or an address may be put together from what was given.
    _, scheme, rest = said.rpartition("://")
    parts = [part for part in _SEGMENT.split(_PAGING.sub("", rest)) if part.strip(".~")]
    if scheme:  # behind a host that was given, words of a path are no guess that does harm
        parts = [parts[0].removeprefix("www."), *filter(re.compile(r"\d").search, parts[1:])]
        parts = [part if given.has(part) else _EXTENSION.sub("", part) for part in parts]
    return all(map(given.has, parts))


def _name(said: str, given: Given, most: bool) -> bool:
    """Return whether the words of a name stand in the texts; `most`: if half of them are enough."""
    words = [_folded(word) for word in _WORD.findall(said) if not _TITLES.fullmatch(word.lower())]
    texts = [*map(_folded, given.texts)]
    # It may have an ending there: "Brunner's", "Brunners".
    ends = {word: re.compile(rf"(?<![^\W\d_]){word}(?:'s|\w{{0,2}})(?!\w)") for word in words}
    known = sum(any(one in text and ends[one].search(text) for text in texts) for one in words)
    return known * 2 >= len(words) if most else known == len(words)


def _phone(said: str, given: Given) -> bool:
    """Return whether a number was given, with the code of its country or without it."""
    own = _national(said)
    others = (_national(found) for text in given.texts for found in _PHONE.findall(text))
    return any(
        abs(len(own) - len(other)) <= _COUNTRY and (own.endswith(other) or other.endswith(own))
        for other in others
        if min(len(own), len(other)) >= _LEAST_OF_PHONE
    )


def _national(said: str) -> str:
    return "".join(filter(str.isdigit, said.replace("(0)", ""))).lstrip("0")


@lru_cache(maxsize=256)
def _folded(text: str) -> str:
    """Return a text in lower case and without accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in apart if not unicodedata.combining(sign))


@lru_cache(maxsize=256)
def _lower(text: str) -> str:
    return text.lower()


# -- Numbers ---------------------------------------------------------------------------------------


def _number(one: Argument, given: Given) -> bool:
    value = abs(Decimal(str(one.value)))
    if given.has(str(one.value).lstrip("-")) or not value.is_finite():
        return value.is_finite()
    values = [value]
    if value < 1:  # a share of one
        values.append(value * _HUNDRED)
    if value == value.to_integral_value() and (
        "cent" in one.hint or "minor" in one.hint or one.is_money
    ):
        values.append(value / _HUNDRED)
    if any(not _numbers(text).isdisjoint(values) for text in given.texts):
        return True
    if _IN_WORDS.search(given.question):
        return True
    measured = {of.value for of in given.figures}
    if any(said in measured for said in (*values, *_in_units(value, one.words[-1]))):
        return True
    cents = [round(float(said) + cent, 2) for said in values for cent in (-0.01, 0, 0.01)]
    return not given.results.isdisjoint(cents)


@lru_cache(maxsize=256)
def _numbers(text: str) -> frozenset[Decimal]:
    """Return the numbers in a text, each in the ways in which its signs can be read."""
    found: set[Decimal] = set()
    for said, word in _NUMBER.findall(text):
        worth = int(LARGE.get(word.lower(), 1))
        for thousands in (",' ", ".' "):
            plain = re.sub(f"[{thousands}]", "", said).replace(",", ".")
            if plain.count(".") <= 1 and len(plain) <= _LONGEST:
                found |= {Decimal(plain) * worth, round(Decimal(plain) * worth, 2)}
    return frozenset(found)


def _in_units(value: Decimal, word: str) -> Iterator[Decimal]:
    """Yield a number in the base unit of the unit that its name has: `memory_mb`."""
    for of in figures(f"{value:f} {word}, {value:f} {word.upper()}"):
        if of.kind != NUMBER:
            yield from (of.value, of.value / _KIB, of.value / _KIB**2, of.value / _KIB**3)


def _plain(one: Figure) -> float:
    return float(one.value / one.scale)


def _totals(text: str) -> Iterator[float]:
    """Yield the sums of the figures under one name, and of those at the ends of lines."""
    groups: dict[str, list[float]] = defaultdict(list)
    for one in figures(text):
        name = _WORD.findall(text[max(0, one.start - _BEFORE) : one.start])[-1:]
        groups["".join(name)].append(_plain(one))
        if _LAST_OF_LINE.match(text, one.end):
            groups["\n"].append(_plain(one))
    yield from map(sum, groups.values())


# -- Dates -----------------------------------------------------------------------------------------


def _date(value: str, given: Given) -> bool:
    """Return whether a date was said, or follows from today or from what was said.

    It follows if it is within two weeks of today, or, if the user said no other date, within 45
    days, since a text tells dates in many ways; if it begins or ends a month, or a year from
    today, and a period was said or it is near; if its day was said ("on the 21st") and it is within
    two months; or if it comes a span that was said after or before today or a date that was said,
    up to a week.
    """
    found = next((one for one in figures(value) if one.kind == DATE), None)
    if found is None:  # such as a month
        return True
    at, today = int(found.value), given.today.toordinal()
    day, after = date.fromordinal(at), date.fromordinal(at + 1)
    slashed = rf"(?<!\d)0?{day.day}[/.-]0?{day.month}[/.-](?:\d\d)?{day.year % 100:02}(?!\d)"
    if any(re.search(slashed, text) for text in given.texts):
        return True
    explicit = any(one.kind == DATE for one in figures(given.question))
    if abs(at - today) <= (_SOON if explicit else _UNCLEAR):
        return True
    bound = (1 in (day.day, after.day)) or day.timetuple()[1:3] == given.today.timetuple()[1:3]
    if bound and (abs(at - today) <= _QUARTER or _PERIOD.search(given.question)):
        return True
    ordinal = rf"(?<!\d){day.day}(?:st|nd|rd|th|\.|er|e|º)?(?!\d)"
    if abs(at - today) <= _LATER and any(re.search(ordinal, text) for text in given.texts):
        return True
    every = (*given.figures, *(one for text in given.beside for one in figures(text)))
    said = {date.fromordinal(int(one.value)) for one in every if one.kind == DATE}
    dates = {moved for one in said for moved in (one.toordinal(), _in_year(one, day.year))}
    spans = {round(_days(one)) for one in given.figures if one.kind in (TIME, MONTHS)}
    near = sorted(dates, key=lambda one: abs(one - at))[:_MOST_DATES]
    return any(abs(at - base) <= _NEAR for base in near) or any(
        abs(abs(at - base) - span) <= _NEAR for base in (today, *near) for span in spans
    )


def _in_year(day: date, year: int) -> int:
    return date(year, day.month, 1).toordinal() + day.day - 1


def _days(one: Figure) -> float:
    return float(one.value) / _DAY if one.kind == TIME else float(one.value) * _MONTH
