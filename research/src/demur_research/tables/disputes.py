"""Measure how many of the references that disagree about a claim are found, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from demur import Evaluation, RefChecker
from demur_research.bench import Bench, Column, Done, Figure, Result, Row, Table, mean_cost
from demur_research.resampling import grouped_share
from demur_research.tables.checkers import adapted, sample
from demur_research.tables.claims import Claimed, claims
from demur_research.texts.disputes import Disputed, disputed_claims

_NAME = "local"
Judged = tuple[Disputed, Done[Evaluation]]


def _contested(done: Done[Evaluation]) -> bool:
    return any(claim.contested for claim in done.value.claims)


def _share(found: Iterable[bool], groups: Iterable[str]) -> Figure | None:
    known = [*zip(found, groups, strict=True)]
    return grouped_share(known) if known else None


def _row(name: str, of: Sequence[Judged]) -> Row:
    parts = [[one for one in of if one[0].contested is contested] for contested in (True, False)]
    shares = [
        _share((_contested(done) for _, done in part), (case.id for case, _ in part))
        for part in parts
    ]
    passing = _share(
        (done.value.passed is True for _, done in parts[0]), (case.id for case, _ in parts[0])
    )
    spent = mean_cost([done for _, done in of])
    return Row(name, (*shares, passing), items=len(of), spent=spent)


def _made(bench: Bench) -> Result:
    chosen = disputed_claims()[: bench.limit]
    samples = [sample(one.claim, one.passages, one.question) for one in chosen]
    judge = RefChecker(adapted(bench.model_of(_NAME)))
    every = [*zip(chosen, bench.judged(_NAME, judge, samples), strict=True)]
    apart = [one for one in every if one[0].held_out]
    rows = [
        _row("in sight", [one for one in every if not one[0].held_out]),
        _row("set apart", apart),
        *(
            _row(f"set apart, {language}", [one for one in apart if one[0].language == language])
            for language in dict.fromkeys(one.language for one in chosen)
        ),
    ]
    return Result(
        (
            Column("disputes found, %"),
            Column("other claims marked, %"),
            Column("disputed claims that pass, %"),
        ),
        tuple(row for row in rows if row.items),
        ("The limits were chosen on the claims that are in sight, and not on those set apart.",),
    )


DISPUTES = Table(
    "disputes",
    "demur",
    "How many of the passages that disagree about a claim are found.",
    (),
    _made,
)

# -- The price -------------------------------------------------------------------------------------


_QUESTION = "What is said here?"
"""A question that every text answers, for claims without one: none is sought without a question."""


def _paragraphs(claim: Claimed) -> list[str]:
    return [part for text in claim.contexts for part in text.split("\n\n") if part.strip()]


def _priced(bench: Bench) -> Result:
    every = [one for one in claims(bench.read("everyday")) if _paragraphs(one)[1:]][: bench.limit]
    samples = [sample(one.text, _paragraphs(one), one.question or _QUESTION) for one in every]
    model = adapted(bench.model_of(_NAME))
    rows = []
    for how in ("ignore", "mark"):
        judge = RefChecker(model, if_contested="ignore" if how == "ignore" else "mark")
        done = bench.judged(how, judge, samples)
        shares = [
            _share(
                (_contested(one) for one, claim in zip(done, every, strict=True) if chosen(claim)),
                (claim.group for claim in every if chosen(claim)),
            )
            for chosen in (lambda claim: claim.supported, lambda claim: not claim.supported)
        ]
        rows.append(Row(how, tuple(shares), items=len(every), spent=mean_cost(done)))
    return Result(
        (Column("right claims marked, %"), Column("wrong claims marked, %")),
        tuple(rows),
        (
            "Each paragraph of an everyday text is a reference of its own; none disagrees.",
            f'Most claims have no question, and get "{_QUESTION}".',
        ),
    )


PRICE = Table(
    "disputes-price",
    "demur",
    "What it costs to seek references that disagree, where none do.",
    ("everyday",),
    _priced,
)

TABLES = (DISPUTES, PRICE)
