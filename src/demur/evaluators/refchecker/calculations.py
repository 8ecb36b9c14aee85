"""Find the calculation behind a figure that stands in no reference: a sum, a share, a duration.

In a passage of twenty numbers, some pair gives nearly any sum. So the calculations that a claim may
mean are put in order, by the words that their operands have in common with it, and only the first
ones count: so few that hardly a wrong figure is explained by accident. No model is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext

from demur.evaluators.refchecker.figures import (
    CLOCK,
    DATE,
    NUMBER,
    PERCENT,
    TIME,
    WITH_UNITS,
    YEAR,
    Figure,
    figures,
    in_unit,
)
from demur.evaluators.refchecker.operands import Operand, operands, telling
from demur.evaluators.refchecker.operations import (
    TELLING,
    Sought,
    Working,
    digits,
    rounded,
    workings,
)
from demur.evaluators.refchecker.pool import Pool
from demur.schema import Calculation, ClaimLabel, Evidence, Sample

# Of the figures that look like the claim's, the calculations that count may reach one in fifty.
_ONE_IN = 50
_MOST_SHOWN = 3
# A calculation that fits so much less than the best one is not meant.
_CLEAR = 1.5
_MINUTE = Decimal(60)
_DIGITS = 100  # of a product of two long figures, and more


@dataclass(frozen=True)
class WorkedOut:
    """Hold what is found about a figure of a claim that stands in no reference."""

    start: int
    end: int
    """The figure stands at `claim[start:end]`."""
    meant: tuple[Working, ...]
    """The calculations that the claim may mean, the likeliest first; at least one."""
    follows: bool | None
    """Whether the figure follows from the first of them; False: another number does. None: nobody
    knows."""

    @property
    def lines(self) -> list[str]:
        """Return the calculations for a judge to read."""
        return [working.text for working in self.meant]

    def calculation(self, claim: str) -> Calculation:
        """Return the first calculation as a value of the claim."""
        label = ClaimLabel.ENTAILMENT if self.follows else ClaimLabel.CONTRADICTION
        return Calculation(
            figure=claim[self.start : self.end],
            follows=self.follows is True,
            text=self.meant[0].text,
            operands=tuple(one.evidence(label) for one in self.meant[0].operands),
        )

    def quotes(self, label: ClaimLabel) -> list[Evidence]:
        """Return the sentences, items and rows in which the operands stand."""
        return [one.evidence(label, whole=True) for one in self.meant[0].operands]


def worked_out(claim: str, asked: str, sample: Sample) -> tuple[WorkedOut, ...]:
    """Find the calculations behind the figures of a claim that stand in no reference.

    Args:
        claim: The claim.
        asked: The claim with the text that it refers to.
        sample: The sample with its references. Figures of its question may be counts: "What do 5
            licences cost?"
    """
    with localcontext(Context(prec=_DIGITS)):
        return tuple(_worked_out(claim, asked, sample))


def _worked_out(claim: str, asked: str, sample: Sample) -> Iterator[WorkedOut]:
    # "2 h 25" may be a duration, there and here.
    own = [
        _duration(one) if one.kind == CLOCK and "h" in claim[one.start : one.end] else one
        for one in figures(claim)
    ]
    own = [one for one in own if one.kind not in (CLOCK, DATE, YEAR) and one.value > 0]
    if not own:
        return
    question = sample.question or ""
    words = telling(asked) | telling(question)
    every, near = operands(sample, words)
    given = [*(one.figure for one in every), *figures(question)]
    given += [_duration(one) for one in given if one.kind == CLOCK]
    for one in own:
        if near and not any(_is(one, other) for other in given):
            pool = Pool(_in_kind(near, one), words - telling(claim[one.start : one.end]))
            counts = [other for other in (*own, *figures(question)) if other is not one]
            found = _found(Sought(claim, one, pool, counts))
            if found is not None:
                yield found


def _in_kind(near: Sequence[Operand], one: Figure) -> Sequence[Operand]:
    """Return the operands, and if none has the kind of a figure, those without a unit in it too.

    The unit may stand elsewhere: in "Days taken", in "currency": "USD".
    """
    if one.kind in (NUMBER, PERCENT) or any(of.figure.kind == one.kind for of in near):
        return near
    bare = [of for of in near if of.figure.kind == NUMBER and not of.figure.in_words]
    return [*near, *(replace(of, figure=in_unit(of.figure, one.kind, one.scale)) for of in bare)]


def _duration(one: Figure) -> Figure:
    """Return a time of day as the duration that is written like it."""
    return replace(one, kind=TIME, value=one.value * 60, quantum=_MINUTE, scale=_MINUTE)


def _is(one: Figure, other: Figure) -> bool:
    if one.kind == other.kind:
        return one.value == other.value and (one.scale == other.scale or one.kind not in WITH_UNITS)
    # "12" may be 12 hours, if the text does not say so.
    kinds = {one.kind, other.kind}
    in_words = PERCENT in kinds and (one.in_words or other.in_words)
    same = one.value / one.scale == other.value / other.scale
    return NUMBER in kinds and same and not in_words


def _found(sought: Sought) -> WorkedOut | None:
    one = sought.figure
    fits = ((working, _fit(working, sought)) for working in workings(sought))
    ranked: dict[Decimal, tuple[Working, float]] = {}
    for working, fit in sorted(fits, key=lambda of: -of[1]):
        if fit > -math.inf:
            ranked.setdefault(rounded(working.value, one.quantum), (working, fit))
    if not ranked:
        return None
    (first, best), *others = ranked.values()
    meant = [working for working, fit in ranked.values() if fit > best - _CLEAR]
    for working in meant[: max(_MOST_SHOWN, _alike(one) // _ONE_IN)]:
        if _gives(working, one):
            return WorkedOut(one.start, one.end, (working,), True)
    # A share and its rest are one calculation.
    rivals = (fit for working, fit in others if working.operands != first.operands)
    ahead = best - next(rivals, -math.inf)
    another = (
        ahead >= _CLEAR
        and not any(_gives(working, one) for working, _ in others)
        and _means_only(first, ahead, sought)
    )
    return WorkedOut(one.start, one.end, tuple(meant[:_MOST_SHOWN]), False if another else None)


def _gives(working: Working, one: Figure) -> bool:
    return abs(rounded(working.value, one.quantum)) == one.value


def _alike(one: Figure) -> int:
    """Return how many figures look like this one: 90 of two digits, without the zeros behind."""
    return int(f"9{'0' * (len(digits(one)[0]) - 1)}")


def _fit(working: Working, sought: Sought) -> float:
    """Return how well a calculation fits a claim.

    Words of the claim beside the operands count, and operands that the claim names. Operands count
    against it that the claim names and that are left out, or that the claim does not name.
    """
    pool, of = sought.pool, working.operands
    last = of[-1]
    covered = pool.words & frozenset().union(*(one.around for one in of))
    if not covered and working.plus < TELLING and len(of) < len(pool.operands):
        return -math.inf  # nothing says that the claim is about these
    beside = [
        one
        for one in pool.kinds[last.figure.kind]
        if one not in of
        and (one.line == last.line or (one.column is not None and one.column == last.column))
    ]
    names = frozenset().union(*map(pool.named, of))
    left = sum(bool(pool.named(one) - names) for one in beside) if len(of) > 1 else 0
    naming = sum(bool(pool.named(one)) for one in of)
    lines, columns = {one.line for one in of}, {one.column for one in of}
    every = len(of) == len(pool.kinds[last.figure.kind])
    whole = every or (not beside and len({one.column or one.line for one in of}) == 1)
    idle = len(of) - naming
    if len(of) > 1 and (whole or of in pool.every_range):
        idle = -1
    apart = len(lines) > 1 and not every and (last.column is None or len(columns) > 1)
    # "the four games"
    counted = len(of) > 2 and any(one.value == len(of) for one in sought.counts)
    return len(covered) + naming - left - idle - apart + 2 * counted + working.plus


def _means_only(working: Working, ahead: float, sought: Sought) -> bool:
    """Return whether a claim can mean no other calculation, which is so far ahead of the next."""
    one, pool, of = sought.figure, sought.pool, working.operands
    rounds = len(of) == 1 and one.kind != PERCENT
    if (sought.about and not rounds) or one.in_words or not working.named:
        return False
    if not all(pool.words & each.around for each in of):
        return False
    if one.kind in (NUMBER, PERCENT):  # "29 employees", "70 % of the orders"
        noun = telling(" ".join(sought.claim[one.end :].split()[:4])) or pool.words
        if not all(noun & each.around for each in (of if one.kind == NUMBER else of[-1:])):
            return False
    # Another figure of these kinds may be what the claim misquotes.
    kinds = {one.kind, *(each.figure.kind for each in of)}
    others = [other for kind in kinds for other in pool.kinds[kind] if other not in of]
    if not others:
        return True
    lines, columns = {each.line for each in of}, {each.column for each in of}
    # Of several amounts, a sum may take others than those of one sentence.
    together = len(lines) == 1 and not working.adds
    together = together or (len(columns) == 1 and None not in columns)
    named = any(map(pool.named, of)) or ahead >= 2 * _CLEAR
    return together and named and not any(map(pool.named, others))
