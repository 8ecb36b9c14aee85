"""Measure what becomes of figures that an answer works out, and how often one fits by accident.

The claims are demur's own texts. The figure of each stands in no passage: a right claim worked it
out, a wrong one worked it out wrongly.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from demur import Evaluation, Sample
from demur.evaluators.refchecker.calculations import worked_out
from demur.evaluators.refchecker.figures import CLOCK, DATE, YEAR, figures
from demur_research.bench import Bench, Column, Done, Figure, Result, Row, Table, mean_cost
from demur_research.resampling import grouped_share
from demur_research.tables.checkers import judge, sample
from demur_research.tables.claims import Claimed, claims
from demur_research.texts.answers import let_through
from demur_research.texts.figures import WorkedOut, worked_out_claims

_NAMES = ("small", "local")
Judged = tuple[WorkedOut, Done[Evaluation]]


def _rows(every: Sequence[Judged]) -> Iterator[tuple[str, list[Judged]]]:
    """Yield the names of rows with their claims; those that were in sight are in one row alone."""
    apart = [one for one in every if one[0].held_out]
    yield "in sight", [one for one in every if not one[0].held_out]
    yield "set apart", apart
    for field in ("operation", "form", "language"):
        for value in dict.fromkeys(getattr(claim, field) for claim, _ in every):
            yield f"set apart, {value}", [one for one in apart if getattr(one[0], field) == value]


def _shares(of: Sequence[Judged]) -> tuple[Figure | None, ...]:
    """Return the shares of wrong claims that pass and of right claims that fail."""
    found: list[Figure | None] = []
    for supported in (False, True):
        known = [
            (let_through(done.value) is not supported, claim.passage_id)
            for claim, done in of
            if claim.supported is supported and not done.value.undetermined
        ]
        found.append(grouped_share(known) if known else None)
    return tuple(found)


def _made(bench: Bench) -> Result:
    chosen = worked_out_claims()[: bench.limit]
    samples = [sample(one.claim, one.passages, one.question) for one in chosen]
    rows = []
    for name in bench.names("judges", _NAMES):
        every = [*zip(chosen, bench.judged(name, judge(bench, name), samples), strict=True)]
        for named, of in _rows(every):
            unknown = sum(done.value.undetermined for _, done in of)
            spent = mean_cost([done for _, done in of])
            row = Row(f"{name}, {named}", _shares(of), items=len(of) - unknown, spent=spent)
            rows.append(row)
    return Result(
        (Column("wrong that pass, %"), Column("right that fail, %")),
        tuple(rows),
        (
            "The rules were made with the claims that are in sight, and not with those set apart.",
            "Claims about one passage count in the intervals as fewer independent ones.",
        ),
    )


FIGURES = Table(
    "figures",
    "demur",
    "How often a claim passes whose figure was worked out rightly, or wrongly.",
    (),
    _made,
    options={"judges": f"some of {', '.join(_NAMES)}, with commas between [default: all]"},
)

# -- Accidents -------------------------------------------------------------------------------------

_DRAWS = 3


def _sample(claim: Claimed, text: str) -> Sample:
    return sample(text, claim.contexts, claim.question)


def _follow(claim: Claimed, text: str, start: int, end: int) -> list[bool | None]:
    """Return what is found about the figures of a text that overlap a place."""
    found = worked_out(text, text, _sample(claim, text))
    return [one.follows for one in found if one.start < end and start < one.end]


def _by_chance(claim: Claimed, rng: random.Random) -> Iterator[bool]:
    """Yield, of figures by chance in place of a claim's, whether each is explained."""
    for one in figures(claim.text):
        said = claim.text[one.start : one.end]
        if one.kind in (CLOCK, DATE, YEAR) or not any(map(str.isdecimal, said)):
            continue
        for _ in range(_DRAWS):
            other = "".join(
                str(rng.randint(at == 0, 9)) if sign.isdecimal() else sign
                for at, sign in enumerate(said)
            )
            if other != said:
                text = claim.text[: one.start] + other + claim.text[one.end :]
                yield True in _follow(claim, text, one.start, one.end)


def _accidents(bench: Bench) -> Result:
    rng = random.Random(bench.seed)
    rows = []
    for name in ("everyday", "aggrefact"):
        every = claims(bench.read(name))[: bench.limit]
        chance = [(of, one.group) for one in every for of in _by_chance(one, rng)]
        follows: dict[bool, list[tuple[bool, str]]] = {True: [], False: []}
        refuted = []
        for one in every:
            found = _follow(one, one.text, 0, len(one.text))
            follows[one.supported].append((True in found, one.group))
            if one.supported:
                refuted.append((False in found, one.group))
        shares = (chance, follows[False], refuted)
        figures_of = tuple(grouped_share(of) if of else None for of in shares)
        rows.append(Row(name, figures_of, items=len(every)))
    return Result(
        (
            Column("figures by chance that are explained, %"),
            Column("wrong claims with a figure that is explained, %"),
            Column("right claims with a figure that is refuted, %"),
        ),
        tuple(rows),
        (
            f"In place of each figure of a claim stand {_DRAWS} others with as many digits, drawn "
            "by chance. One is explained if a calculation gives it.",
            "No judge is asked. Claims about one text count as fewer independent ones.",
        ),
    )


ACCIDENTS = Table(
    "figures-accidents",
    "demur",
    "How often a figure fits a calculation by accident.",
    ("everyday", "aggrefact"),
    _accidents,
    asks=False,
)

TABLES = (FIGURES, ACCIDENTS)
