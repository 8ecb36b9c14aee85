"""Read which share of the requirements the found entity meets, from the reply of stage 2.

The line that the prompt asks for, "Percentage: ...", is read and nothing else of the reply, since a
title or a fact may contain a percentage too. If that line is missing or has no single figure, the
line "Not met: ..." is counted. A share that neither line gives is unknown. It is never taken to be
100 percent.

The prompt asks for a number from 0 to 100, so a number without a percent sign is read as a
percentage. A number from 0.0 to 1.0 with a decimal point is read as a share instead: with fewer
than a hundred requirements, no share except 0 is as low as one percent. A bare "1" may be a share,
a percentage or a count, and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from demur._text import words
from demur.evaluators.reverse_validation.parsing import after_not_met
from demur.runtime.prompting import without_delimiters

_MARKUP = " \t*_`>\"'\u201c\u201d[("
_LABEL = r"percentage\b(?P<of>[^:\uff1a=\n\d]{0,60})[:\uff1a=]"
_AT_START = re.compile(rf"^[ \t>*_#\u2022-]*{_LABEL}", re.I | re.M)
# Small models write both on one line: "Entity: Hoy - Percentage: 80%".
_WITHIN = re.compile(
    r"^[ \t>*_#-]*entity\b.{0,200}?\bpercentage(?P<of>[*_ \t]{0,9})[:\uff1a=]", re.I | re.M
)
_OPPOSITE = re.compile(r"\b(?:not|un\w*|fail\w*|miss\w*)\b", re.I)
_NOT_MET = re.compile(r"\b(?:not|un)[ \t-]?met\b", re.I)
_ABOUT = re.compile(
    r"(?:(?:about|around|approximately|approx\.?|roughly|exactly)\s|[~\u2248])\s*", re.I
)
_NUMBER = r"\d{1,3}(?:[.,]\d{1,9})?"
_SIGN = r"\s{0,3}(?:[%\uff05\u066a]|per\s?cent\b|pct\b)"
_FIGURE = re.compile(
    rf"(?<![\w.,/-])(?:(?P<percent>{_NUMBER}){_SIGN}"
    r"|(?P<met>\d{1,4})\s{0,3}(?:/|\b(?:out\s)?of\b)\s{0,3}(?:(?:the|all)\s)?(?P<all>\d{1,4})"
    rf"(?!\d|[./,]\d|{_SIGN}))",
    re.I,
)
_BARE = re.compile(rf"({_NUMBER})(?=[\s.,;!*_`'\"\])]*(?:\(|$))")
_ROUNDED = 0.01
"""The largest difference between two figures for the same share."""

_CALLED = re.compile(
    r"\b(?:requirement|criterion|criteria|item|number|feature|no\.)s?\s?(?=#?\d)", re.I
)
_SEPARATED = re.compile(r"(?:[\s,;.:&#()*\u2013-]|\band\b|\d)*", re.I)
_NO_PLACE = re.compile(r"\d\.\d|\d{4}")
_RANGE = re.compile(r"(\d{1,3})(?:\s?[-\u2013]\s?(\d{1,3}))?")
_OF_THEM = r"(?:\s(?:of\s)?(?:them|these|(?:the\s)?requirements))?"
_NONE = re.compile(rf"\W*(?:none|nothing){_OF_THEM}\W*", re.I)
_ALL = re.compile(rf"\W*all{_OF_THEM}\W*", re.I)
_ITEM = re.compile(r"[ \t>*_#(]*(?:\d|[-\u2022])")


def share_met(reply: str, requirements: str) -> float | None:
    """Return the share of the requirements that are met according to stage 2, in [0, 1].

    Args:
        reply: The text that the model wrote.
        requirements: The list that the model was shown, one item a line, numbered from 1.

    Returns:
        The share, or None if the reply gives none or two different shares.
    """
    text = without_delimiters(reply)
    share = _stated(text)
    return _counted(text, requirements.splitlines()) if share is None else share


def _stated(text: str) -> float | None:
    """Return the share in the line "Percentage: ...", if it has one figure."""
    label = _AT_START.search(text) or _WITHIN.search(text)
    if label is None or _OPPOSITE.search(label["of"]):
        return None
    line = text[label.end() :].lstrip(f"{_MARKUP}\n").partition("\n")[0]
    line = _NOT_MET.split(line)[0]
    about = _ABOUT.match(line)
    at = about.end() if about else 0
    first = _FIGURE.match(line, at) or _BARE.match(line, at)
    if first is None:
        return None
    share = _bare(first[1]) if first.re is _BARE else _figure(first)
    others = [_figure(figure) for figure in _FIGURE.finditer(line, first.end())]
    if share is None or any(other is None or abs(other - share) > _ROUNDED for other in others):
        return None
    return share


def _figure(match: re.Match[str]) -> float | None:
    if match["percent"] is not None:
        return _within(_decimal(match["percent"]) / 100)
    met, of = int(match["met"]), int(match["all"])
    return met / of if of and met <= of else None


def _bare(number: str) -> float | None:
    value = _decimal(number)
    if not number.isdigit() and value <= 1:
        return float(value)
    return None if value == 1 else _within(value / 100)


def _decimal(number: str) -> Decimal:
    return Decimal(number.replace(",", "."))


def _within(share: Decimal) -> float | None:
    return float(share) if share <= 1 else None


def _counted(text: str, items: Sequence[str]) -> float | None:
    """Return the share that the line "Not met: ..." leaves.

    It is None if the line names anything other than requirements of the list.
    """
    unmet_text = after_not_met(text)
    if unmet_text is None or not items:
        return None
    head, *rest = unmet_text.strip(" \t").splitlines() or [""]
    if _NONE.fullmatch(head):
        return 1.0
    if _ALL.fullmatch(head):
        return 0.0
    lines = [head] if any(map(str.isalnum, head)) else []
    for line in rest:
        if not _ITEM.match(line):
            break
        lines.append(line)
    unmet: set[int] = set()
    for line in lines:
        named = _named(_CALLED.sub("", line), items)
        if named is None:
            return None
        unmet |= named
    return (len(items) - len(unmet)) / len(items) if unmet else None


def _named(line: str, items: Sequence[str]) -> set[int] | None:
    """Return the places in the list that a line names, by numbers or in the words of the list."""
    if _SEPARATED.fullmatch(line) and not _NO_PLACE.search(line):
        ranges = [(int(first), int(last or first)) for first, last in _RANGE.findall(line)]
        if ranges and all(0 < first <= last <= len(items) for first, last in ranges):
            return {at for first, last in ranges for at in range(first, last + 1)}
    line_words = _words(line)
    listed = enumerate(map(_words, items), start=1)
    return {at for at, item in listed if line_words in (item, item[1:])} or None


def _words(text: str) -> list[str]:
    return [word for word, _, _ in words(text)]
