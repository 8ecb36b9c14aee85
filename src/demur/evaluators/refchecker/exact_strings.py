"""Find the identifiers and exact numbers of a claim that stand in none of its texts.

A model reads pieces of words, and may not notice that an order number is wrong by one character. A
search of the text does. In doubt, a string counts as found.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from demur.evaluators.refchecker.units import units
from demur.schema import Claim, MissingString, Sample


def missing_in(claims: Sequence[Claim], sample: Sample) -> list[tuple[MissingString, ...]]:
    """Return the missing strings of each claim, held against a sample's references and question.

    A block of code has none: its author may choose names.
    """
    texts = [document.page_content for document in sample.contexts]
    texts += [text for text in (sample.reference, sample.question) if text]
    code = {unit.start for unit in units(sample.answer) if unit.kind == "code"}
    return [
        ()
        if claim.span is not None and claim.span.start in code
        else missing_strings(claim.text, texts)
        for claim in claims
    ]


def missing_strings(claim: str, texts: Sequence[str]) -> tuple[MissingString, ...]:
    """Return the identifiers and exact numbers of a claim that stand in none of the texts.

    Identifiers are words with a digit, and words with signs that names have not: `ORD-48213-B`,
    `2.13.1`, `json.dumps`, `MAX_RETRIES`, `a@b.example`. They are compared by letters and digits,
    whatever their case, separators and spaces. Exact numbers have decimals, or three digits and no
    year's form, or a sign of percent, degrees or a currency: 31.20, 750 and 85 %. They are compared
    by value: 12,500 is 12.500 and 12 500, and 85.2 may be 85.19 rounded. So are times of day: 2:30
    pm is 14:30.

    Everything else is left to the judge: words, years, dates, small numbers, and whether a string
    of the texts belongs to what the claim says of it. The search ends after 20 strings.

    Args:
        claim: The claim, in any language.
        texts: The references, and the question.
    """
    missing: dict[str, None] = {}
    for start, end in _lacking(_plain(claim), [_plain(text) for text in texts]):
        missing[claim[start:end]] = None
        if len(missing) == _MOST_MISSING:
            break
    return tuple(MissingString(string=one, nearest=_nearest(_plain(one), texts)) for one in missing)


def _lacking(claim: str, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where the missing strings of a claim begin and end."""
    for clock in _CLOCK.finditer(claim):
        if not _has_time(clock, texts):
            yield clock.span()
    tokens = [*_TOKEN.finditer(claim)]
    stands = cache(lambda said: _stands(said, texts))
    for at, token in enumerate(tokens):
        if not _found(claim, token, texts):
            runs = (claim[run[0].start() : run[-1].end()] for run in _groups(tokens, at))
            if not any(map(stands, runs)):
                yield token.span()


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
def _plain(text: str) -> str:
    return text.translate(_SIGNS)


# -- What is sought --------------------------------------------------------------------------------

# The letters of scripts that write a space between words.
_LETTERS = r"A-Za-z\u00c0-\u04ff"
_SIGN = rf"0-9{_LETTERS}"
_TOKEN = re.compile(
    rf"\d{{1,3}}(?:[ ']\d{{3}})+(?:[.,]\d+)?(?![{_SIGN}])"
    rf"|\d{{2,4}}(?: \d{{2,4}}){{2,}}(?![{_SIGN}])"  # in groups, such as a telephone number
    rf"|[{_SIGN}]+(?:(?:[-_./:@#+~%&=?\\]{{1,3}}|(?<=\d)[,'](?=\d))[{_SIGN}]+)*"
)
_CODE = re.compile(r"_|@|\bX-|://|[^\W\d_]{2}\.[^\W\d_]{2}|/.*/|\b[a-z]{2,}[A-Z]")
_CLOCK = re.compile(
    r"(?<!\d)(?<!\d[:.])(\d{1,2})(?::| ?h ?| Uhr | ?[点點时時] ?)([0-5]\d)(?![\d:])"
)
_NUMBER = re.compile(r"\d{1,3}(?:[., ']\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?")
_DAY_AND_MONTH = re.compile(r"\d{1,2}\.(?:0?[1-9]|1[0-2])\.(?!\d)")
_IN_GROUPS = re.compile(r"\d{1,4}(?:[-/]\d{1,4}){1,2}|\d{1,2}\.\d{1,2}\.\d{4}")
_LIKE_NUMBERS = re.compile(
    r"\d[\d.,]*[a-zà-ÿ]{1,3}"  # 20th, 1990s, 85kg
    r"|\d[\d.,]*-[^\W\d_][a-zà-ÿ]{2,}.*"  # 24-hour
    r"|(?:[a-z]{3,5}-)?\d{4}s?"  # mid-1990s
)
_YEAR = re.compile(r"(?<!\d)(?:1\d|20)\d\d(?!\d)")
_LEAST_DIGITS, _LONGEST, _MOST_MISSING = 3, 200, 20


def _found(claim: str, token: re.Match[str], texts: Sequence[str]) -> bool:
    """Return whether a token of a claim is not sought, or stands in a text."""
    said = token.group()
    if len(said) > _LONGEST:
        return True
    if not any(map(str.isdigit, said)):
        return not _CODE.search(said) or _stands(said, texts)
    if _CLOCK.match(claim, token.start()) or _DAY_AND_MONTH.match(claim, token.start()):
        return True
    if _NUMBER.fullmatch(said):
        return _has_number(claim, *token.span(), texts)
    if _LIKE_NUMBERS.fullmatch(said) or _stands(said, texts):
        return True
    if not _IN_GROUPS.fullmatch(said):
        return False
    # A date, a season, a score, a range, or a part of a number that has groups.
    few = sum(map(str.isdigit, said)) < _LEAST_DIGITS
    return few or bool(_YEAR.search(said)) or all(_stands(part, texts) for part in said.split("-"))


# -- Identifiers -----------------------------------------------------------------------------------

_SCHEME = re.compile(r"(?:https?://)?(?:www\.)?", re.IGNORECASE)
_VERSION = re.compile(r"v(?=\d)", re.IGNORECASE)
_MOST_COMPARED = 2000
_MOST_GROUPS = 8
"""The most groups of an identifier with spaces in it, such as an IBAN."""


def _stands(said: str, texts: Sequence[str]) -> bool:
    """Return whether a text has the letters and digits of an identifier."""
    bare = _SCHEME.sub("", said, count=1)
    forms = dict.fromkeys((bare, _VERSION.sub("", bare, count=1)))
    return any(
        _bare(form) in _bare(text) and _pattern(form).search(text)
        for form in forms
        for text in texts
    )


@lru_cache(maxsize=256)
def _bare(text: str) -> str:
    """Return the letters and digits of a text, in which a search is fast."""
    return "".join(filter(str.isalnum, text.lower()))


@lru_cache(maxsize=1024)
def _pattern(said: str) -> re.Pattern[str]:
    signs = [sign for sign in said if sign.isalnum()]
    # It may stand beside letters if it begins with a digit: LH1478.
    before, after = (r"\d" if sign.isdigit() else f"[{_LETTERS}]" for sign in (signs[0], signs[-1]))
    inner = r"[\W_]{0,2}".join(map(re.escape, signs))
    return re.compile(rf"(?<!{before}){inner}(?!{after})", re.IGNORECASE)


def _groups(tokens: Sequence[re.Match[str]], at: int) -> Iterator[Sequence[re.Match[str]]]:
    """Yield the runs of neighbouring groups of digits and capitals that a token is in."""
    for first in range(max(0, at - _MOST_GROUPS + 1), at + 1):
        for end in range(max(at + 1, first + 2), min(len(tokens), first + _MOST_GROUPS) + 1):
            run = tokens[first:end]
            together = all(after.start() - before.end() <= 1 for before, after in pairwise(run))
            if together and all(map(_is_group, run)):
                yield run


def _is_group(token: re.Match[str]) -> bool:
    said = token.group()
    return said.isupper() or (not said.islower() and any(map(str.isdigit, said)))


def _nearest(said: str, texts: Sequence[str]) -> str | None:
    """Return the string of the texts that is most like another, as it stands there."""
    near: dict[str, str] = {}
    for text in texts:
        for other, stands in _strings(text, any(map(str.isdigit, said))).items():
            if abs(len(other) - len(said)) <= 1 + len(said) // 4:
                near.setdefault(other, stands)
    close = get_close_matches(said.lower(), list(near)[:_MOST_COMPARED], n=1)
    return near[close[0]] if close else None


@lru_cache(maxsize=256)
def _strings(text: str, with_digit: bool) -> dict[str, str]:
    """Return the words of a text with or without a digit, by their lower case."""
    return {
        token.group().lower(): text[slice(*token.span())]
        for token in _TOKEN.finditer(_plain(text))
        if any(map(str.isdigit, token.group())) is with_digit
    }


# -- Numbers and times -----------------------------------------------------------------------------

_POWERS = {
    3: "k thousand tausend mille mil 千",
    4: "万 萬",
    6: "m mn mio million millions millionen millón millones",
    8: "億 亿",
    9: "b bn mrd billion billions milliarde milliarden milliard milliards",
    12: "trillion trillions billionen",
}
_LARGE = {word: 10.0**power for power, words in _POWERS.items() for word in words.split()}
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


def _has_number(claim: str, start: int, end: int, texts: Sequence[str]) -> bool:
    """Return whether a number is not sought, or is a number of a text.

    Small whole numbers are not sought, since many are worked out: a count, an age.
    """
    said = claim[start:end]
    readings = [*_readings(said, claim, end)]
    few = said.isdigit() and len(said) < _LEAST_DIGITS
    if _YEAR.fullmatch(said) or (few and not _is_measured(claim, start, end)):
        return True
    if any(_numbers(text).hold(one) for text in texts for one in readings):
        return True
    in_words = said[-1] == "0" and any(map(_IN_WORDS.search, texts))
    # A long number may be an identifier, which the texts write in groups.
    return in_words or (said.isdigit() and len(said) > 4 and _stands(said, texts))


def _is_measured(claim: str, start: int, end: int) -> bool:
    """Return whether a number is a share, an amount of money, or has the symbol of a unit."""
    before, behind = claim[:start].rstrip()[-1:], _UNIT.match(claim, end)
    return (
        (before != "" and before in "€$£¥")
        or bool(_MEASURED.match(claim, end))
        or (behind is not None and behind[1] in _UNITS)
    )


def _unit(text: str, end: int) -> tuple[str, float] | None:
    named = _UNIT.match(text, end)
    if named is None or named[1] in _UNITS:
        return None if named is None else _UNITS[named[1]]
    plain = unicodedata.normalize("NFKD", named[1].lower()).encode("ascii", "ignore").decode()
    word = _UNIT_WORD.match(plain)
    if word is None:
        return None
    of, factor = _BASES[word[2]]
    return of, factor * _PREFIXES.get((word[1] or "")[:2], 1.0)


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
    factor = _LARGE.get(following[1].lower(), 1.0) if following else 1.0
    unit = _unit(text, end)
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
        if len(number.group()) <= _LONGEST  # a longer one is no number that a float holds
        for reading in _readings(number.group(), text, number.end())
    }
    return _Numbers([*found])


def _has_time(clock: re.Match[str], texts: Sequence[str]) -> bool:
    """Return whether a time of day is a whole hour, or stands in a text, of any half of the day."""
    return (
        clock[2] == "00"
        or any(_minutes(clock) == _minutes(one) for text in texts for one in _CLOCK.finditer(text))
        or _stands(clock[1] + clock[2], texts)
    )


def _minutes(clock: re.Match[str]) -> int:
    return (60 * int(clock[1]) + int(clock[2])) % (12 * 60)
