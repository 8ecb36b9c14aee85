"""Say whether a value was given: in these letters, in another writing, or as what follows.

In doubt, a value was given.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import accumulate

from langchain_core.documents import Document

from demur.evaluators.call_grounding.arguments import Argument
from demur.evaluators.refchecker.calculations import may_follow
from demur.evaluators.refchecker.exact_numbers import LARGE
from demur.evaluators.refchecker.exact_strings import missing_strings, nearest, stands
from demur.evaluators.refchecker.figures import DATE, MONTHS, NUMBER, PERCENT, TIME, Figure, figures
from demur.schema import Sample

_LAST, _FEW, _LEAST = 40, 10, 2
_MOST_READ = 6000  # Reading figures takes 10 microseconds a character, once a text.
_PERIODS = [  # how often a price may be paid
    (Decimal(often), re.compile(words, re.IGNORECASE))
    for often, words in ((12, "year|annual|jahr|ann[eé]e|año"), (7, "week|woche"), (24, "hour"))
]
_KIB = Decimal("1.024")
_CENT, _HUNDRED = Decimal("0.01"), Decimal(100)
_DAY = 86400
_NEAR, _SOON = 7, 14
_MONTH_IN_DAYS = 30.4
_MOST_DATES = 40
_DIGITS = re.compile(r"(?<![\d.,])(\d+(?:[.,' ]\d+)*)(?!\d)(?: ?([^\W\d_]+))?")
# In doubt, a round number was given in words.
_IN_WORDS = re.compile(
    r"\b(?:(?:twen|thir|for|fif|six|seven|eigh|nine)ty|\w*(?:hundred|hundert|thousand|tausend|zig)"
    r"|grand|dozen|vingt|trente|quarante|cinquante|soixante|cent|mille?|veinte|treinta|cuarenta"
    r"|cincuenta|cien)\b",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"(?<![\w.,])(\d+(?:\.\d+)?)[kK]\b")
_PIECE = re.compile(r"\d+|[^\W\d_]+")
_SPOKEN = re.compile(r"\s*[\[(]?\b(at|dot)\b[\])]?\s*", re.IGNORECASE)
_SEGMENT = re.compile(r"[/\\?&=#]")
_PAGING = re.compile(r"(?<=[?&])\w*(?:page|limit|offset|size|sort)\w*=[^&]*")
_PHONE = re.compile(r"\+?\d[\d\s()/.-]{4,22}\d")
_LEAST_OF_PHONE, _COUNTRY = 6, 3
_WORD = re.compile(r"[^\W\d_]{2,}")
# Longer names may have other endings.
_END = (r"(?![^\W\d_])", "")
_JOINED = re.compile(r"\w+(?:[-_.]\w+)+")
_TITLES = re.compile("mr|mrs|ms|dr|prof|herr|frau|mme|monsieur|madame|sir|the|and|of|inc|ltd|gmbh")
_EXAMPLE = re.compile(
    r"n/?a|none|null|unknown|undefined|test|example|sample|.*\b(?:john|jane)[-_. ]?(?:doe|smith)\b"
    r".*|.*\b(?:example|domain|company)\.(?:com|org|net)\b.*|acme(?: (?:corp|inc|co)\w*\.?)?"
    r"|\D*(?:0?1234?5?6?7?8?9?0?|0+|1{3,})",
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
        """Return the last texts, as many as figures are worked out from."""
        lengths = [0, *accumulate(map(len, reversed(self.texts)))]
        kept = sum(length < _MOST_READ for length in lengths[:-1])
        return tuple(map(_without_k, self.texts[len(self.texts) - kept :]))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Return the figures of the last texts."""
        return tuple(one for text in self.recent for one in figures(text))

    @cached_property
    def results(self) -> tuple[frozenset[Decimal], frozenset[Decimal]]:
        """Return what two of the last figures give, and what few of them give in two steps."""
        every = (*self.figures, *(one for text in self.beside for one in figures(text)))[-_LAST:]
        values = {one.value / one.scale for one in every}
        often = [n for n, words in _PERIODS if words.search(self.question)]
        shares = [one.value / _HUNDRED for one in every if one.kind == PERCENT]
        shares += [sign for one in shares for sign in (1 - one, 1 + one)]
        products = {a * b for a in values for b in (*values, *often, *shares)}
        sums = {sign for a in values for b in values for sign in (a + b, a - b)}
        parts = {a / b for a in values for b in (*values, *often) if b in range(2, 101)}
        few = products | values if len(values) <= _FEW else frozenset()
        return frozenset(products | sums | parts), frozenset(a + b for a in few for b in few)

    def has(self, said: str) -> bool:
        """Return whether a text has a string, apart from other letters and digits."""
        wanted = re.compile(rf"(?<!\w){re.escape(said.lower())}(?!\w)")
        low = said.lower()
        return any(low in text and wanted.search(text) for text in map(_lower, self.texts))


def is_given(one: Argument, given: Given) -> bool:
    """Return whether a value stands in what was given, or follows from it."""
    said = str(one.value).strip()
    if one.kind == "number":
        return _number(one, given)
    if given.has(said) or (isinstance(one.value, str) and _EXAMPLE.fullmatch(said)):
        return given.has(said) or stands(said, given.texts)
    if one.kind == "date":
        return _date(said, given)
    if one.kind == "address":
        return _address(said, given)
    if one.kind == "phone" and _phone(said, given):
        return True
    if one.kind == "name" and not _JOINED.fullmatch(said):
        return _name(said, given, one.is_thing)
    return _identifier(said, given)


def nearest_to(one: Argument, given: Given) -> str | None:
    """Return the string that was given and is most like a value, if one is."""
    return nearest(str(one.value), given.texts)


# -- Strings ---------------------------------------------------------------------------------------


def _identifier(said: str, given: Given) -> bool:
    if stands(said, (*given.texts, " ".join(given.texts))):
        return True
    if re.search(r"[\s,;]", said):  # several, or one among words
        return not missing_strings(said, given.texts)
    # "ORD-48231" for order 48231, where the sign is known from elsewhere.
    pieces = _PIECE.findall(said)
    long = any(piece.isdigit() and len(piece) > 3 for piece in pieces)
    return long and all(stands(piece, given.texts) for piece in pieces)


def _address(said: str, given: Given) -> bool:
    if "@" in said and "/" not in said:
        spoken = {"at": "@", "dot": "."}
        texts = (_SPOKEN.sub(lambda of: spoken[of[1].lower()], text) for text in given.texts)
        return said.lower() in " ".join(texts).lower()
    # A path or an address may be put together from what was given.
    _, found, rest = said.rpartition("://")
    segments = [part for part in _SEGMENT.split(_PAGING.sub("", rest)) if part.strip(".~")]
    if found:  # after a host that was given, words of a path are no guess that does harm
        segments = [part for part in segments if part is segments[0] or re.search(r"\d", part)]
    return all(given.has(part.removeprefix("www.")) for part in segments)


def _name(said: str, given: Given, most: bool) -> bool:
    """Return whether the words of a name stand in the texts; `most`: if half of them are enough."""
    words = [word for word in _WORD.findall(said) if not _TITLES.fullmatch(word.lower())]
    texts = [*map(_folded, given.texts)]
    known = sum(
        any(
            re.search(rf"(?<![^\W\d_]){re.escape(form)}(?:'?s)?{_END[len(form) > 4]}", text)
            for form in _forms(word)
            for text in texts
        )
        for word in words
    )
    return 2 * known >= len(words) if most else known == len(words)


def _phone(said: str, given: Given) -> bool:
    """Return whether a number was given, with the code of its country or without it."""
    own = _national(said)
    others = (_national(found) for text in given.texts for found in _PHONE.findall(text))
    return len(own) >= _LEAST_OF_PHONE and any(
        abs(len(own) - len(other)) <= _COUNTRY and (own.endswith(other) or other.endswith(own))
        for other in others
        if len(other) >= _LEAST_OF_PHONE
    )


def _national(said: str) -> str:
    return "".join(filter(str.isdigit, said.replace("(0)", ""))).lstrip("0")


def _forms(word: str) -> Iterator[str]:
    yield _folded(word)
    yield _folded(re.sub("([aou])e", r"\1", word.lower()))


@lru_cache(maxsize=256)
def _folded(text: str) -> str:
    """Return a text in lower case and without accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in apart if not unicodedata.combining(sign))


def _without_k(text: str) -> str:
    """Return a text with thousands in digits: 9000 for "9k"."""
    return _THOUSANDS.sub(lambda found: f"{Decimal(found[1]) * 1000:f}", text)


@lru_cache(maxsize=256)
def _lower(text: str) -> str:
    return text.lower()


# -- Numbers ---------------------------------------------------------------------------------------


def _number(one: Argument, given: Given) -> bool:
    value = abs(Decimal(str(one.value)))
    written = f"{value.normalize():f}"
    if given.has(written) or (value > _HUNDRED and stands(written, given.texts)):
        return True
    if (one.words[-1] == "year" and abs(value - given.today.year) <= 1) or (
        value % 10 == 0 and _IN_WORDS.search(given.question)
    ):
        return True
    values = [value]
    if value < 1:
        values.append(value * _HUNDRED)
    if value % 1 == 0 and ("cent" in one.hint or "minor" in one.hint or one.is_money):
        values.append(value / _HUNDRED)
    for text in given.texts:
        if not _numbers(text).isdisjoint(values):
            return True
    measured = {of.value for of in given.figures}
    if any(said in measured for said in (*values, *_in_units(value, one.words[-1]))):
        return True
    return any(_follows(said, one, given) for said in values)


@lru_cache(maxsize=256)
def _numbers(text: str) -> frozenset[Decimal]:
    """Return the numbers in a text, each in the ways in which its signs can be read."""
    found = set()
    for said, word in _DIGITS.findall(text):
        for thousands in (",' ", ".' "):
            plain = re.sub(f"[{thousands}]", "", said).replace(",", ".")
            if plain.count(".") <= 1:
                value = Decimal(plain) * int(LARGE.get(word.lower(), 1))
                found |= {value, round(value, 2)}
    return frozenset(found)


def _in_units(value: Decimal, word: str) -> Iterator[Decimal]:
    """Yield a number in the base unit of the unit that its name has: `timeout_seconds`."""
    for of in figures(f"{value:f} {word}, {value:f} {word.upper()}"):
        if of.kind != NUMBER:
            yield from (of.value, of.value / _KIB, of.value / _KIB**2, of.value / _KIB**3)


def _follows(value: Decimal, one: Argument, given: Given) -> bool:
    """Return whether a number may be worked out from what was given, in any currency there."""
    texts = (*given.recent, *given.beside)
    sample = Sample(question=given.question, answer="", contexts=tuple(map(Document, texts)))
    signs = {of.kind for of in given.figures if len(of.kind) == 1 and not of.kind.isalpha()}
    words = " ".join(one.words)
    at_once, in_steps = given.results
    exact = len(f"{value:f}".strip("0.")) > _LEAST  # others are given by accident
    if any(abs(one - value) <= _CENT for one in (*at_once, *(in_steps if exact else ()))):
        return True
    return any(
        may_follow(f"{words} {value:f} {sign}", sample) for sign in ("", *(signs - {"%"} or "$"))
    )


# -- Dates -----------------------------------------------------------------------------------------


def _date(value: str, given: Given) -> bool:
    """Return whether a date was said, or follows from today or from what was said.

    It follows if it is within two weeks of today, begins or ends a month, is the day of a month
    that was said ("on the 21st"), or comes a duration that was said after or before another date.
    """
    if value.replace(".", "").isdigit():  # seconds since 1970, or milliseconds
        value = datetime.fromtimestamp(float(value[:10]), timezone.utc).date().isoformat()
    found = next((one for one in figures(value) if one.kind == DATE), None)
    if found is None:
        return True
    day = date.fromordinal(int(found.value))
    today = given.today.toordinal()
    away = day.toordinal() - today
    tomorrow = date.fromordinal(day.toordinal() + 1)
    yearly = (day.month, day.day) == (given.today.month, given.today.day)
    if abs(away) <= _SOON or yearly or day.day == 1 or tomorrow.day == 1:
        return True
    said = {date.fromordinal(int(one.value)) for one in given.figures if one.kind == DATE}
    dates = {moved for one in said for moved in (one.toordinal(), _in_year(one, day.year))}
    if any(day.isoformat() in text for text in given.texts):
        return True
    ordinal = rf"(?<!\d){day.day}(?:st|nd|rd|th|\.|er|e|º)?(?![\d])"
    if abs(away) <= 62 and any(re.search(ordinal, text) for text in given.texts):
        return True
    spans = {0, *(_days(one) for one in given.figures if one.kind in (TIME, MONTHS))}
    bases = [today, *sorted(dates, key=lambda one: abs(one - day.toordinal()))[:_MOST_DATES]]
    return day.toordinal() in dates or any(
        abs(abs(day.toordinal() - base) - span) <= _NEAR
        for base in bases
        for span in spans
        if span >= _NEAR or base in dates
    )


def _in_year(day: date, year: int) -> int:
    return day.replace(year=year, day=min(day.day, 28) if day.month == 2 else day.day).toordinal()


def _days(one: Figure) -> int:
    return round(float(one.value) / _DAY if one.kind == TIME else float(one.value) * _MONTH_IN_DAYS)
