"""Read all quantities of a text in one pass."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from demur.evaluators.refchecker.quantities import dates, numbers, spelled
from demur.evaluators.refchecker.quantities.atoms import Quantity

_MONTH = (
    r"(?:(?i:jan(?:uary)?|feb(?:ruary)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)|Mar(?:ch)?|MAR(?:CH)?|May|MAY)\b\.?"
)
"""The names of months. March and May need a capital, since they are also verbs."""
_DAY = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?(?!\d)"
_YEAR = r"\d{4}(?![\d%])"
_TO = r" ?(?:-|to|and|or|&|/) ?"
_DIGITS = r"\d{1,3}(?:[ ']\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)*"
_FORMS = {
    "day_month": (
        dates.in_words,
        rf"(?<![\d.,:/-]){_DAY}(?:{_TO}{_DAY})?\.? ?(?:of )?{_MONTH}"
        rf"(?:,? (?:of )?(?P<day_month_year>{_YEAR}))?",
    ),
    "month_day": (
        dates.in_words,
        rf"\b{_MONTH} {_DAY}(?:{_TO}{_DAY}(?![,.]\d))?(?![:%])"
        rf"(?:,? (?P<month_day_year>{_YEAR}))?",
    ),
    "month": (
        dates.in_words,
        rf"\b{_MONTH}(?:(?:{_TO}{_MONTH})?,? (?:of )?(?P<month_year>{_YEAR}))?",
    ),
    "year_first": (
        dates.in_digits,
        r"(?<![\d./-])\d{4}(?P<s1>[-/.])\d{1,2}(?P=s1)\d{1,2}(?!\d)"
        r"|(?<!\d)\d{4}[年년] ?\d{1,2}[月월](?: ?\d{1,2}[日일])?",
    ),
    "year_last": (
        dates.in_digits,
        r"(?<![\d./-])\d{1,2}(?P<s2>[-/.])\d{1,2}(?P=s2)\d{4}(?![\d./-])",
    ),
    "clock": (
        dates.on_the_clock,
        r"(?<![\d.,:])\d{1,2}(?::\d\d(?::\d\d)?(?![\d:])|[.]\d\d(?= ?[ap]\.?m\b))",
    ),
    "name": (numbers.in_name, r"(?<!\w)(?:[A-Za-z_]+\d|[A-Z][A-Za-z]*-\d)\w*"),
    "fraction": (numbers.in_fraction, r"(?<![\w./])(?:\d{1,2} )?\d{1,2}/\d{1,2}(?![\w/])"),
    "digits": (
        numbers.in_digits,
        rf"(?:[A-Z]{{0,3}}[$€£¥₹₩] ?)?(?:{_DIGITS}|(?<!\w)[.]\d+)(?P<part>[½⅓⅔¼¾])?|[½⅓⅔¼¾]",
    ),
    "word": (spelled.in_words, r"[^\W\d_]+"),
}
_TOKEN = re.compile("|".join(f"(?P<{name}>{form})" for name, (_, form) in _FORMS.items()))


class _Signs(dict[int, str]):
    """Map each character to one plain character, so that offsets do not change."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        digit = unicodedata.decimal(sign, None)
        kind = unicodedata.category(sign)
        plain = sign if digit is None else str(digit)
        if kind == "Pd":
            plain = "-"
        elif kind in ("Zs", "Zl", "Zp", "Cc"):
            plain = " "
        elif 0xFF00 <= code <= 0xFFEF:
            plain = unicodedata.normalize("NFKC", sign)
        self[code] = plain if len(plain) == 1 else sign
        return self[code]


_SIGNS = _Signs({ord("’"): "'", ord("٫"): ".", ord("٬"): ",", ord("−"): "-", ord("٪"): "%"})


def quantities(text: str) -> Iterator[Quantity]:
    """Yield the quantities of `text`, including those that only serve as evidence."""
    text = text.translate(_SIGNS)
    at = 0
    while token := _TOKEN.search(text, at):
        at = token.end()
        for quantity in _FORMS[str(token.lastgroup)][0](text, token):
            at = max(at, quantity.end)
            yield quantity
