"""Try the operations that may have given a figure: sums, shares, products, times between times.

Each function yields every calculation of its operations. `calculations.py` says which of them a
claim means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property

from demur.evaluators.refchecker.figures import (
    A_YEAR,
    CLOCK,
    DATE,
    MONTHS,
    NUMBER,
    ONE,
    PERCENT,
    TIME,
    WITH_UNITS,
    YEAR,
    Figure,
    periods,
    plain_signs,
)
from demur.evaluators.refchecker.operands import Operand, cued
from demur.evaluators.refchecker.pool import Pool, columns

_HUNDRED = Decimal(100)
_HOUR, _DAY, _YEAR = Decimal(3600), Decimal(86400), Decimal(12)
_MINUTES_OF_DAY = 24 * 60
_MONTH_IN_DAYS = Decimal("30.436875")
_MOST_COUNTED = 1000
# A percentage stands so many sentences from what it is of.
_NEAR_PERCENT = 3
TELLING = 2
"""What is added to the fit of a calculation that hardly gives a figure by accident."""
_A_NUMBER = re.compile(r"\d(?:[\d.,' ]*\d)?|^[^\W\d]+")
# What is taken off where no word of the claim speaks for an operation.
_UNSAID = -2


@dataclass(frozen=True)
class Working:
    """Hold a calculation."""

    value: Decimal
    operands: tuple[Operand, ...]
    text: str
    """The calculation with its result: "252 of 360 is 70 %"."""
    plus: float = 0
    """How much better it fits than its operands do."""
    named: bool = False
    """Whether the claim names the operation, or has a unit that only this operation gives."""
    adds: bool = False
    """Whether it is a sum or a mean, which may leave something out."""


@dataclass(frozen=True)
class Sought:
    """Hold a figure of a claim that stands in no reference, and what its claim says of it."""

    claim: str
    figure: Figure
    pool: Pool
    counts: Sequence[Figure]
    """The other figures of the claim and of the question, which may be counts."""

    @cached_property
    def cues(self) -> frozenset[str]:
        """Return which operations the claim has words for."""
        names = ("total", "difference", "mean", "each")
        return frozenset(name for name in names if cued(f"figures.{name}", self.claim))

    @cached_property
    def about(self) -> bool:
        """Return whether a word beside the figure makes it a rounding."""
        before, behind = self.claim[: self.figure.start], self.claim[self.figure.end :]
        return cued("figures.about", f"{' '.join(before.split()[-3:])[-16:]} 0 {behind[:4]}")

    def shown(self, value: Decimal) -> str:
        """Return a value in the unit and with the signs of the figure."""
        one = self.figure
        said = plain_signs(self.claim[one.start : one.end])
        plain = value % one.scale == 0 and len(_A_NUMBER.findall(said)) == 1
        if one.kind == TIME and one.scale <= _HOUR and not plain:
            hours, seconds = divmod(value, _HOUR)
            parts = zip((hours, *divmod(seconds, 60)), ("hour", "minute", "second"), strict=True)
            shown = [f"{number(n)} {name}{'s' * (n != 1)}" for n, name in parts if n]
            return " and ".join(shown) or "0"
        return _A_NUMBER.sub(number(value / one.scale), said, count=1)


def workings(sought: Sought) -> Iterator[Working]:
    """Yield the calculations that give figures of the kind that is sought."""
    one, kinds = sought.figure, sought.pool.kinds
    same = kinds[one.kind]
    # "The two offices have 12 and 17 employees" has two figures to add, not three.
    digits = [of for of in same if not of.figure.in_words]
    added = digits if len(digits) > 1 else same
    yield from _in_other_forms(sought, added)
    yield from _sums(sought, added)
    yield from _differences(sought, added)
    if one.kind == PERCENT:
        for kind, of in kinds.items():
            if kind not in (PERCENT, TIME, MONTHS, CLOCK, DATE, YEAR):
                yield from _shares(sought, of)
    elif one.kind in (TIME, MONTHS):
        yield from _spans(sought)
    else:
        yield from _percents(sought, same, kinds[PERCENT])
    if not sought.cues & {"difference", "mean"}:
        yield from _products(sought, same)


def _in_other_forms(sought: Sought, same: Sequence[Operand]) -> Iterator[Working]:
    """Yield the same figures in another unit, as a percentage or a fraction, or rounded."""
    one = sought.figure
    for of in same:
        value = of.figure.value
        if of.figure.scale != one.scale and one.kind in WITH_UNITS:
            text = f"{of.written} is {sought.shown(value)}"
            yield Working(value, (of,), text, TELLING)
        elif of.figure.quantum < last_digit(one) and (sought.about or len(digits(one)[0]) > 1):
            near = rounded(value, last_digit(one))
            plus = 3 if abs(near - one.value) < one.value / 10 else 0
            if near != value:
                side = "less" if near > value else "more"
                text = f"{of.written} is about {sought.shown(near)}, a little {side}"
                yield Working(near, (of,), text, plus if sought.about else -1, sought.about)
    as_fraction = {PERCENT: (NUMBER, _HUNDRED), NUMBER: (PERCENT, 1 / _HUNDRED)}
    if one.kind in as_fraction:
        kind, factor = as_fraction[one.kind]
        for of in sought.pool.kinds[kind]:
            value = of.figure.value * factor
            if (of.figure.value if kind == NUMBER else one.value) < 1:
                text = f"{of.written} is {number(value)}{' %' if kind == NUMBER else ''}"
                yield Working(value, (of,), text, 1, named=True)


def _sums(sought: Sought, same: Sequence[Operand]) -> Iterator[Working]:
    """Yield sums and means; without a word for a sum, of whole columns and of amounts."""
    one, pool = sought.figure, sought.pool
    cues = sought.cues & {"total", "difference", "mean"}
    if "total" in cues and one.kind not in (NUMBER, PERCENT, *WITH_UNITS):
        yield from _invoices(sought, same)
    if "total" in cues or not cues:
        bare = one.kind in (NUMBER, PERCENT) and not cues
        for of in pool.wholes(same) if bare else pool.sets(same, 3 if cues else 2):
            text = f"{_listed(of)} = {sought.shown(_sum(of))}"
            yield Working(_sum(of), of, text, 0 if cues else _UNSAID, bool(cues), adds=True)
    if "mean" in cues:
        for of in pool.sets(same, 3):
            mean = _sum(of) / len(of)
            text = f"({_listed(of)}) / {len(of)} = {sought.shown(mean)}"
            yield Working(mean, of, text, named=True, adds=True)
        for total in same:
            for count, written, of in _counts(sought, total, (NUMBER,)):
                value = total.figure.value / count
                text = f"{total.written} / {written} = {sought.shown(value)}"
                yield Working(value, (*of, total), text, named=not of)


def _invoices(sought: Sought, same: Sequence[Operand]) -> Iterator[Working]:
    """Yield the sums of columns of prices, each of which is paid as often as its line says."""
    for prices in columns(same):
        lines = {price.line for price in prices}
        counts = [one for one in sought.pool.kinds[NUMBER] if one.line in lines]
        if not len(lines) == len(prices) == len(counts) == len({one.line for one in counts}):
            continue
        by_line = {one.line: one for one in counts}
        pairs = [(by_line[price.line], price) for price in prices]
        total = sum((a.figure.value * b.figure.value for a, b in pairs), Decimal())
        if total != _sum(prices):
            text = " + ".join(f"{a.written} × {b.written}" for a, b in pairs)
            yield Working(total, prices, f"{text} = {sought.shown(total)}", TELLING, adds=True)


def _differences(sought: Sought, same: Sequence[Operand]) -> Iterator[Working]:
    cues = sought.cues & {"total", "difference", "mean"}
    if "difference" not in cues and (cues or sought.figure.kind in (NUMBER, PERCENT)):
        return
    for a, b in sought.pool.pairs(same):
        more, less = (a, b) if a.figure.value >= b.figure.value else (b, a)
        rest = more.figure.value - less.figure.value
        text = f"{more.written} is {sought.shown(rest)} more than {less.written}"
        yield Working(rest, (more, less), text, 0 if cues else _UNSAID, bool(cues))


def _shares(sought: Sought, of: Sequence[Operand]) -> Iterator[Working]:
    """Yield the shares of one figure in another, or, if the claim speaks of one, the changes."""
    for a, b in sought.pool.pairs(of):
        less, more = (a, b) if a.figure.value <= b.figure.value else (b, a)
        if not 0 < less.figure.value < more.figure.value or more.figure.value <= 1:
            continue
        if "difference" in sought.cues:
            for x, y, plus in _in_order(a, b):
                change = (y.figure.value - x.figure.value) / x.figure.value * _HUNDRED
                text = f"from {x.written} to {y.written} is {change:+.1f} %"
                yield Working(change, (x, y), text, plus, named=True)
            continue
        share = less.figure.value / more.figure.value * _HUNDRED
        text = f"{less.written} of {more.written} is {number(share)} %"
        yield Working(share, (less, more), text, named=True)
        rest = f"{text}, and the rest is {number(_HUNDRED - share)} %"
        yield Working(_HUNDRED - share, (less, more), rest, -1)
    for column in columns(of):
        for part in column if _sum(column) else ():
            share = part.figure.value / _sum(column) * _HUNDRED
            yield Working(
                share, (part,), f"{part.written} of {_listed(column)} is {number(share)} %", -1
            )


def _in_order(a: Operand, b: Operand) -> list[tuple[Operand, Operand, float]]:
    """Return the earlier figure and the later one; both orders if no years tell them."""
    years = [[word for word in one.own if A_YEAR.fullmatch(word)] for one in (a, b)]
    if len(years[0]) == len(years[1]) == 1 and years[0] != years[1]:
        return [(a, b, 0)] if years[0] < years[1] else [(b, a, 0)]
    return [(a, b, 0), (b, a, -1)]


def _spans(sought: Sought) -> Iterator[Working]:
    """Yield the times between two times of day, two dates or two years."""
    pool, in_time = sought.pool, sought.figure.kind == TIME
    spans: list[tuple[Operand, Operand, Decimal]] = []
    for a, b in pool.pairs(pool.kinds[CLOCK] if in_time else ()):
        minutes = (b.figure.value - a.figure.value) % _MINUTES_OF_DAY
        if minutes < 0:  # the next day, or the afternoon: "10:45 to 1:20"
            spans.append((a, b, (minutes + _MINUTES_OF_DAY) * 60))
            minutes = minutes % (_MINUTES_OF_DAY // 2) + _MINUTES_OF_DAY // 2
        spans.append((a, b, minutes * 60))
    for a, b in pool.pairs(pool.kinds[DATE]):
        days = abs(b.figure.value - a.figure.value)
        spans.append((a, b, days * _DAY if in_time else days / _MONTH_IN_DAYS))
    for a, b in pool.pairs(() if in_time else pool.kinds[YEAR]):
        spans.append((a, b, abs(b.figure.value - a.figure.value) * _YEAR))
    for a, b, value in spans:
        said = sought.shown(value if in_time else rounded(value, ONE))
        yield Working(value, (a, b), f"{a.written} to {b.written} is {said}", named=True)


def _products(sought: Sought, same: Sequence[Operand]) -> Iterator[Working]:
    """Yield products with a count, which the claim or the question may have, or a period."""
    one = sought.figure
    for price in same:
        each = cued("figures.each", price.said)
        if price.figure.value <= price.figure.scale or (
            one.kind in (NUMBER, TIME, MONTHS) and not each
        ):
            continue
        counted = (NUMBER, TIME, MONTHS) if each and one.kind != TIME else (NUMBER,)
        for often, written, of in _counts(sought, price, counted):
            value = price.figure.value * often
            text = f"{written} × {price.written} = {sought.shown(value)}"
            # "The 5 licences cost $745" has the count itself.
            plus = each - ("total" in sought.cues and not each) + (not of)
            yield Working(value, (*of, price), text, plus, each)
        for often in _in_longer_periods(price, sought.claim) if each else ():
            value = price.figure.value * often
            text = f"{number(often)} × {price.written} = {sought.shown(value)}"
            yield Working(value, (price,), text, 1, named=True)


def _counts(
    sought: Sought, beside: Operand, kinds: Sequence[str]
) -> Iterator[tuple[Decimal, str, tuple[Operand, ...]]]:
    """Yield whole numbers of the claim, the question and near an operand, each as it is written."""
    found = [(of, number(of.value / of.scale), ()) for of in sought.counts if of.kind in kinds]
    near: list[tuple[Figure, str, tuple[Operand, ...]]] = [
        (of.figure, of.written, (of,))
        for kind in kinds
        for of in sought.pool.kinds[kind]
        if of is not beside and sought.pool.near(beside, of)
    ]
    for count, written, of in (*near, *found):
        often = count.value / count.scale
        if often == often.to_integral_value() and 1 < often < _MOST_COUNTED:
            yield often, written, of


def _in_longer_periods(price: Operand, claim: str) -> Iterator[Decimal]:
    """Yield how often a price for a month is paid in a year that the claim speaks of."""
    for kind, scale in periods(price.said):
        for longer, other in periods(claim):
            if kind == longer and other > scale and (other / scale) % 1 == 0:
                yield other / scale


def _percents(
    sought: Sought, same: Sequence[Operand], percents: Sequence[Operand]
) -> Iterator[Working]:
    """Yield percentages of amounts, and amounts that are less or more by a percentage."""
    for base in same:
        for of in percents:
            if not (sought.pool.near(base, of) or abs(base.line - of.line) <= _NEAR_PERCENT):
                continue
            value = base.figure.value
            part = value * of.figure.value / _HUNDRED
            plus = min(2, len(of.own & base.own))  # "VAT: 20 % of the net total"
            for result, text in (
                (part, f"{of.written} of {base.written} is"),
                (value - part, f"{base.written} less {of.written} is"),
                (value + part, f"{base.written} and {of.written} more is"),
            ):
                yield Working(result, (of, base), f"{text} {sought.shown(result)}", plus)


# -- Numbers ---------------------------------------------------------------------------------------


def rounded(value: Decimal, quantum: Decimal) -> Decimal:
    """Return the multiple of a quantum that is nearest to a value."""
    return (value / quantum).quantize(ONE, ROUND_HALF_UP) * quantum


def digits(one: Figure) -> tuple[str, str]:
    """Return the digits of a figure: those before the zeros at its end, and these."""
    every = str(int(one.value / one.quantum))
    return every.rstrip("0"), every[len(every.rstrip("0")) :]


def last_digit(one: Figure) -> Decimal:
    """Return what one more of the last digit is worth that is not 0."""
    return one.quantum * Decimal(10) ** len(digits(one)[1])


def number(value: Decimal) -> str:
    """Return a number with up to two decimals."""
    return f"{value.quantize(Decimal('0.01'), ROUND_HALF_UP):,.2f}".rstrip("0").rstrip(".")


def _sum(of: Sequence[Operand]) -> Decimal:
    return sum((one.figure.value for one in of), Decimal())


def _listed(of: Sequence[Operand]) -> str:
    return " + ".join(one.written for one in of)
