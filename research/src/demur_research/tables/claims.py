"""Measure how well RefChecker's checkers tell supported claims from others.

The claims are from data sets with references. Each claim is given and checked alone, so that only
the checking is measured. Beside the checkers stands RefChecker as a whole, which finds the claims
of the same text itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from demur import Evaluation
from demur_research.bench import Bench, Column, Done, Figure, Result, Row, Table, mean_cost, place
from demur_research.datasets.rows import LabelledRow
from demur_research.resampling import area, drawn, grouped_share
from demur_research.tables.checkers import (
    CHECKERS,
    FLOORS,
    WHOLE,
    checker,
    sample,
    score,
    share_of_words,
)
from demur_research.texts.answers import let_through

SETS = (
    *("fever-symmetric", "halueval-qa", "factcheck-bench"),
    *("wice", "summedits", "fool-me-twice"),
)
_CLAIMS = 100
_SETS_OPTION = f"some of {', '.join(SETS)}, with commas between [default: all]"


@dataclass(frozen=True)
class Claimed:
    """Hold a claim with the texts that it is held against."""

    key: str
    group: str
    """The group of the claim. Claims of one group are drawn together."""
    question: str | None
    text: str
    contexts: tuple[str, ...]
    supported: bool

    @property
    def alone(self) -> str:
        """Return the claim in a form that is understood alone: many answers are a bare name."""
        return f"{self.question} {self.text}" if self.question else self.text


def claims(rows: Iterable[LabelledRow]) -> list[Claimed]:
    """Return the claims of a data set; a claim that is supported in part is left out."""
    return [
        Claimed(
            row.key,
            row.group or row.key,
            row.question,
            answer.text,
            row.contexts,
            not answer.hallucinated,
        )
        for row in rows
        for answer in row.answers
        if answer.hallucinated is not None and "partial" not in (answer.label or "")
    ]


def choose(every: Sequence[Claimed], count: int, seed: int) -> list[Claimed]:
    """Return at most `count` claims, as many supported as not, in an order that the seed decides.

    A smaller choice is part of a larger one.
    """
    ordered = sorted(every, key=lambda one: place(seed, one.key))
    sides = [[one for one in ordered if one.supported is side] for side in (True, False)]
    each = min(count // 2, *map(len, sides))
    chosen = {id(claim) for side in sides for claim in side[:each]}
    return [one for one in ordered if id(one) in chosen]


@dataclass(frozen=True)
class Judged:
    """Hold a claim, how well supported it is said to be, and whether it passes."""

    claim: Claimed
    score: float | None
    """The support, in [0, 1]; for a trivial rule, any number; None if nothing could be decided."""
    passed: bool | None
    """Whether the claim passes; None if nothing is decided."""


def judged(of: Sequence[Claimed], found: Iterable[Evaluation]) -> list[Judged]:
    """Return claims with their scores, from their evaluations."""
    return [
        Judged(claim, score(one), None if one.undetermined else let_through(one))
        for claim, one in zip(of, found, strict=True)
    ]


def _ask(bench: Bench, what: str, name: str, chosen: Sequence[Claimed]) -> list[Done[Evaluation]]:
    """Have a checker judge claims, or `WHOLE` judge them as answers."""
    samples = [
        sample(one.text, one.contexts, one.question)
        if name == WHOLE
        else sample(one.alone, one.contexts)
        for one in chosen
    ]
    return bench.judged(what, checker(name, bench.model), samples)


def figures(found: Sequence[Judged], seed: int) -> tuple[Figure, ...]:
    """Return AUROC, accuracy, and the shares of unsupported and of supported claims that pass."""
    scored = [(one.score, one.claim) for one in found if one.score is not None]
    scores, kinds = [of for of, _ in scored], [claim.supported for _, claim in scored]
    times = drawn([claim.group for _, claim in scored], seed)
    passed = [(one.claim, one.passed) for one in found if one.passed is not None]
    return area(scores, kinds, times), *shares(passed)


def shares(passed: Sequence[tuple[Claimed, bool]]) -> tuple[Figure, ...]:
    """Return accuracy, and the shares of unsupported and of supported claims that pass."""
    return (
        grouped_share((through is one.supported, one.group) for one, through in passed),
        grouped_share((through, one.group) for one, through in passed if not one.supported),
        grouped_share((through, one.group) for one, through in passed if one.supported),
    )


_COLUMNS = (
    Column("AUROC", 3),
    Column("accuracy, %"),
    Column("unsupported that pass, %"),
    Column("supported that pass, %"),
)


def overlap(claim: Claimed) -> float:
    """Return the share of the claim's words that are in its references, in [0, 1]."""
    return share_of_words(claim.text, *claim.contexts)


_RULES: dict[str, Callable[[Claimed], float]] = {
    "overlap with the reference": overlap,
    "longest claim": lambda claim: len(claim.text),
    "shortest claim": lambda claim: -len(claim.text),
}


def floors(prefix: str, chosen: Sequence[Claimed], seed: int) -> list[Row]:
    """Return the rows of the trivial rules, which ask no model."""
    every = {
        name: [Judged(claim, rule(claim), None) for claim in chosen]
        for name, rule in _RULES.items()
    }
    every |= {name: judged(chosen, [of] * len(chosen)) for name, of in FLOORS.items()}
    return [
        Row(f"{prefix}, {name}", figures(found, seed), items=len(found), floor=True)
        for name, found in every.items()
    ]


def _make(bench: Bench) -> Result:
    rows: list[Row] = []
    names = bench.names("checkers", (*CHECKERS, WHOLE))
    for of in bench.names("sets", SETS):
        chosen = choose(claims(bench.read(of)), bench.limit or _CLAIMS, bench.seed)
        for name in names:
            done = _ask(bench, f"{of}, {name}", name, chosen)
            found = judged(chosen, [one.value for one in done])
            lacking = sum(one.score is None for one in found)
            rows.append(
                Row(
                    f"{of}, {name}",
                    figures(found, bench.seed),
                    items=len(found) - lacking,
                    undetermined=lacking,
                    spent=mean_cost(done),
                )
            )
        rows += floors(of, chosen, bench.seed)
    return Result(
        _COLUMNS,
        tuple(rows),
        (
            "A set gives as many supported claims as others, which the seed chooses. Claims with "
            "partial support are left out.",
            "The AUROC is of the probability of Entailment where the checker gives one, and of the "
            "label elsewhere. A trivial rule has no label, so it has an AUROC alone.",
            "Claims of one group are drawn together, and count in the intervals of shares as fewer "
            "independent ones.",
            f'"{WHOLE}" is RefChecker as a whole. The others are given the text as one claim.',
        ),
    )


CLAIMS = Table(
    "claims",
    "demur",
    "How well each checker tells supported claims from others.",
    SETS,
    _make,
    options={
        "sets": _SETS_OPTION,
        "checkers": f"some of {', '.join((*CHECKERS, WHOLE))}, with commas between [default: all]",
    },
)


TABLES = (CLAIMS,)
