"""Find the identifiers and exact numbers of a claim that stand in none of its texts.

A model reads pieces of words, and may not notice that an order number is wrong by one character. A
search of the text does. In doubt, a string counts as found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from heapq import nlargest
from itertools import pairwise

from demur.evaluators.refchecker.calculations import WorkedOut
from demur.evaluators.refchecker.exact_numbers import LONGEST, has_value, is_measured
from demur.evaluators.refchecker.figures import plain_signs
from demur.evaluators.refchecker.units import units
from demur.schema import Claim, MissingString, Sample


def missing_in(
    claims: Sequence[Claim], sample: Sample, worked: Sequence[Sequence[WorkedOut]]
) -> list[tuple[MissingString, ...]]:
    """Return the missing strings of each claim, held against a sample's references and question.

    A block of code has none: its author may choose names.

    Args:
        claims: The claims.
        sample: The sample with its references.
        worked: What is worked out about the figures of each claim. What follows is not missing.
    """
    texts = [document.page_content for document in sample.contexts]
    texts += [text for text in (sample.reference, sample.question) if text]
    return [
        ()
        if is_code
        else missing_strings(
            claim.text, texts, [(one.start, one.end) for one in known if one.follows]
        )
        for claim, known, is_code in zip(claims, worked, are_code(claims, sample), strict=True)
    ]


def are_code(claims: Sequence[Claim], sample: Sample) -> list[bool]:
    """Return which claims are blocks of code, whose author may choose names and numbers."""
    code = {unit.start for unit in units(sample.answer) if unit.kind == "code"}
    return [claim.span is not None and claim.span.start in code for claim in claims]


def missing_strings(
    claim: str, texts: Sequence[str], explained: Sequence[tuple[int, int]] = ()
) -> tuple[MissingString, ...]:
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
        explained: Places of the claim that are left out.
    """
    missing: dict[str, None] = {}
    for start, end in _lacking(plain_signs(claim), [plain_signs(text) for text in texts]):
        if any(start < last and first < end for first, last in explained):
            continue
        missing[claim[start:end]] = None
        if len(missing) == _MOST_MISSING:
            break
    return tuple(
        MissingString(string=one, nearest=nearest(plain_signs(one), texts)) for one in missing
    )


def _lacking(claim: str, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where the missing strings of a claim begin and end."""
    for clock in _CLOCK.finditer(claim):
        if not _has_time(clock, texts):
            yield clock.span()
    tokens = [*_TOKEN.finditer(claim)]
    in_texts = cache(lambda said: stands(said, texts))
    for at, token in enumerate(tokens):
        if not _found(claim, token, texts):
            runs = (claim[run[0].start() : run[-1].end()] for run in _groups(tokens, at))
            if not any(map(in_texts, runs)):
                yield token.span()


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
_LEAST_DIGITS, _MOST_MISSING = 3, 20


def _found(claim: str, token: re.Match[str], texts: Sequence[str]) -> bool:
    """Return whether a token of a claim is not sought, or stands in a text."""
    said = token.group()
    if len(said) > LONGEST:
        return True
    if not any(map(str.isdigit, said)):
        return not _CODE.search(said) or stands(said, texts)
    if _CLOCK.match(claim, token.start()) or _DAY_AND_MONTH.match(claim, token.start()):
        return True
    if _NUMBER.fullmatch(said):
        return _has_number(claim, *token.span(), texts)
    if _LIKE_NUMBERS.fullmatch(said) or stands(said, texts):
        return True
    if not _IN_GROUPS.fullmatch(said):
        return False
    # A date, a season, a score, a range, or a part of a number that has groups.
    few = sum(map(str.isdigit, said)) < _LEAST_DIGITS
    return few or bool(_YEAR.search(said)) or all(stands(part, texts) for part in said.split("-"))


# -- Identifiers -----------------------------------------------------------------------------------

_SCHEME = re.compile(r"(?:https?://)?(?:www\.)?", re.IGNORECASE)
_VERSION = re.compile(r"v(?=\d)", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\W_]+")
_MOST_COMPARED = 30
_MOST_GROUPS = 8
"""The most groups of an identifier with spaces in it, such as an IBAN."""


def stands(said: str, texts: Sequence[str]) -> bool:
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
    return _SEPARATORS.sub("", text.lower())


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


def nearest(said: str, texts: Sequence[str]) -> str | None:
    """Return the string of the texts that is most like another, as it stands there."""
    near: dict[str, tuple[int, str]] = {}
    wanted = _pairs(said.lower())
    for text in texts:
        for other, (stands, pairs) in _strings(text, any(map(str.isdigit, said))).items():
            if abs(len(other) - len(said)) <= 1 + len(said) // 4:
                near.setdefault(other, (len(wanted & pairs), stands))
    # To compare two strings takes long, so only those are that share the most.
    close = get_close_matches(said.lower(), nlargest(_MOST_COMPARED, near, key=near.__getitem__), 1)
    return near[close[0]][1] if close else None


def _pairs(said: str) -> frozenset[str]:
    return frozenset(map("".join, pairwise(said)))


@lru_cache(maxsize=256)
def _strings(text: str, with_digit: bool) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the words of a text with or without a digit, and their pairs, by their lower case."""
    return {
        token.group().lower(): (text[slice(*token.span())], _pairs(token.group().lower()))
        for token in _TOKEN.finditer(plain_signs(text))
        if any(map(str.isdigit, token.group())) is with_digit
    }


def _has_number(claim: str, start: int, end: int, texts: Sequence[str]) -> bool:
    """Return whether a number is not sought, or is a number of a text.

    Small whole numbers are not sought, since many are worked out: a count, an age.
    """
    said = claim[start:end]
    few = said.isdigit() and len(said) < _LEAST_DIGITS
    if _YEAR.fullmatch(said) or (few and not is_measured(claim, start, end)):
        return True
    # A long number may be an identifier, which the texts write in groups.
    in_groups = said.isdigit() and len(said) > 4
    return has_value(claim, start, end, texts) or (in_groups and stands(said, texts))


def _has_time(clock: re.Match[str], texts: Sequence[str]) -> bool:
    """Return whether a time of day is a whole hour, or stands in a text, of any half of the day."""
    return (
        clock[2] == "00"
        or any(_minutes(clock) == _minutes(one) for text in texts for one in _CLOCK.finditer(text))
        or stands(clock[1] + clock[2], texts)
    )


def _minutes(clock: re.Match[str]) -> int:
    return (60 * int(clock[1]) + int(clock[2])) % (12 * 60)
