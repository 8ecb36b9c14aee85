"""Measure who notices that one number or one identifier of a claim is wrong.

The claims are demur's own texts. Wrong claims differ from right ones in one string; right claims
write the string in another way than their passage. Beside each judge stands what it says together
with the search for strings that stand in no text, which RefChecker does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from demur import Evaluation
from demur.evaluators.refchecker.exact_strings import missing_strings
from demur_research.bench import Bench, Column, Done, Figure, Result, Row, Table, mean_cost
from demur_research.resampling import grouped_share
from demur_research.tables.checkers import sample
from demur_research.tables.judges import JUDGE_OPTION, Judge, by_set, judge_of
from demur_research.texts.answers import let_through
from demur_research.texts.exact import ExactClaim, exact_claims


class Planted(Protocol):
    """A claim of which one thing decides whether its passage supports it."""

    @property
    def claim(self) -> str:
        """Return the claim's text."""

    @property
    def passage(self) -> str:
        """Return the passage's text."""

    @property
    def passage_id(self) -> str:
        """Return the name of the passage; claims that share it are drawn together."""

    @property
    def supported(self) -> bool:
        """Return whether the passage supports the claim."""


C = TypeVar("C", bound=Planted)


@dataclass(frozen=True)
class Measured(Generic[C]):
    """Hold a claim with what a judge and the search say of it; None: the judge says nothing."""

    claim: C
    alone: bool | None
    """Whether the judge by itself supports the claim."""
    found: bool
    """Whether all strings of the claim stand in the passage."""
    passes: bool | None
    """Whether RefChecker lets the claim pass."""
    done: Done[Evaluation]
    """RefChecker's evaluation of the claim, and its cost."""


COLUMNS = (
    Column("wrong that pass the judge, %"),
    Column("the search, %"),
    Column("both, %"),
    Column("right that fail by the judge, %"),
    Column("by the search, %"),
    Column("by both, %"),
)
SEARCH = "The search looks for each number and identifier of the claim in the passage."


def measured(bench: Bench, name: str, claims: Sequence[C]) -> list[Measured[C]]:
    """Have the judge of a name judge claims, and search their strings."""
    judge = Judge(bench, name)
    texts = [sample(one.claim, (one.passage,)) for one in claims]
    found = []
    for claim, done in zip(claims, bench.judged(name, judge.evaluator, texts), strict=True):
        (of_claim,) = done.value.claims
        alone = None if of_claim.support is None else of_claim.support >= (judge.least or 0.5)
        stand = not missing_strings(claim.claim, [claim.passage])
        passes = None if done.value.undetermined else let_through(done.value)
        found.append(Measured(claim, alone, stand, passes, done))
    return found


def row(name: str, of: Sequence[Measured[C]]) -> Row:
    """Return the row of claims."""
    known = [one for one in of if one.passes is not None]
    return Row(name, _figures(of), items=len(known), undetermined=len(of) - len(known))


def _figures(of: Sequence[Measured[C]]) -> tuple[Figure | None, ...]:
    """Return the shares of wrong claims that pass and of right ones that fail, three ways."""
    ways: tuple[Callable[[Measured[C]], bool | None], ...] = (
        lambda one: one.alone,
        lambda one: one.found,
        lambda one: one.passes,
    )
    figures: list[Figure | None] = []
    for supported in (False, True):
        for way in ways:
            known = [
                (passes is not supported, one.claim.passage_id)
                for one in of
                if one.claim.supported is supported and (passes := way(one)) is not None
            ]
            figures.append(grouped_share(known) if known else None)
    return tuple(figures)


def _rows(
    every: Sequence[Measured[ExactClaim]],
) -> Iterator[tuple[str, list[Measured[ExactClaim]]]]:
    """Yield the names of rows, with their claims: all of a kind, each form, and each language."""
    for kind in dict.fromkeys(one.claim.kind for one in every):
        of_kind = [one for one in every if one.claim.kind == kind]
        yield f"{kind}s", of_kind
        for form in dict.fromkeys(one.claim.form for one in of_kind):
            yield f"{kind}s, {form}", [one for one in of_kind if one.claim.form == form]
    for language in dict.fromkeys(one.claim.language for one in every):
        yield f"in {language}", [one for one in every if one.claim.language == language]


def _make(bench: Bench) -> Result:
    name = judge_of(bench)
    every = measured(bench, name, exact_claims()[: bench.limit])
    rows = [row(named, of) for named, of in _rows(every)]
    spent = mean_cost([one.done for one in every])
    rows.append(Row("all", _figures(every), items=len(every), spent=spent))
    return Result(
        COLUMNS,
        tuple(rows),
        (
            f'The judge is "{name}". {SEARCH}',
            "Claims about one passage count in the intervals as fewer independent ones.",
        ),
    )


EXACT = Table(
    "exact",
    "demur",
    "How often a claim passes of which one number or one identifier is wrong.",
    (),
    _make,
    options={"judge": JUDGE_OPTION},
)

# -- False alarms ----------------------------------------------------------------------------------


def _alarms(bench: Bench) -> Result:
    rows = []
    every: dict[bool, list[tuple[bool, str]]] = {True: [], False: []}
    for name, claims in by_set(bench.read("aggrefact")).items():
        found: dict[bool, list[tuple[bool, str]]] = {True: [], False: []}
        for claim in claims[: bench.limit]:
            missing = missing_strings(claim.alone, claim.contexts)
            found[claim.supported].append((bool(missing), claim.group))
        for supported, of_kind in found.items():
            every[supported] += of_kind
        rows.append(_alarm_row(name, found))
    return Result(
        (Column("supported with a missing string, %"), Column("unsupported with one, %")),
        (*rows, _alarm_row("all", every)),
        ("Claims with the same documents count in the intervals as fewer independent ones.",),
    )


def _alarm_row(name: str, found: dict[bool, list[tuple[bool, str]]]) -> Row:
    shares = tuple(grouped_share(of) if of else None for of in (found[True], found[False]))
    return Row(name, shares, items=len(found[True]) + len(found[False]))


ALARMS = Table(
    "exact-alarms",
    "demur",
    "How many claims have an identifier or an exact number that stands in none of their documents.",
    ("aggrefact",),
    _alarms,
    asks=False,
)

TABLES = (EXACT, ALARMS)
