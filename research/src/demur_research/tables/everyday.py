"""Measure evaluators on claims about everyday texts, most of which are wrong by one detail.

An evaluator gets each claim as an answer, with its question if it has one, as a user would give it:
once with the text that decides, and again with texts about other things beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from demur import Sample
from demur.similarity import NAMED
from demur_research.bench import (
    Bench,
    Column,
    Done,
    Figure,
    Result,
    Row,
    Table,
    mean_cost,
    place,
)
from demur_research.datasets.rows import Reading
from demur_research.resampling import area, drawn, grouped_share
from demur_research.spending import Spent
from demur_research.tables.checkers import judge, sample
from demur_research.tables.claims import Claimed, Judged, claims, judged, overlap
from demur_research.tables.judges import (
    AT_BEST,
    choose,
    overlap_at_best,
    with_scores,
    with_verdicts,
)

_SET = "everyday"
_OTHERS = ("0", "2", "5", "10")
_WRONG = {"Contradiction": "contradicted", "Neutral": "not said"}
"""What the rows call wrong claims of each label."""
_COLUMNS = (
    Column("AUROC", 3),
    Column("wrong claims that pass, %"),
    Column("right claims that fail, %"),
    Column("verdicts that move, %"),
)

Measured = Sequence[Done[Judged]]


_NAMES = ("small", "local", "cascade", "model", *NAMED)


def _with_others(claim: Claimed, others: Sequence[str], count: int, seed: int) -> Sample:
    """Return a claim with its text amid some of the other texts, which the seed chooses.

    Fewer texts are a part of more.
    """

    def order(text: str) -> bytes:
        return place(seed, f"{claim.key} {text}")

    (own,) = claim.contexts
    beside = sorted((text for text in others if text != own), key=order)[:count]
    return sample(claim.text, sorted([own, *beside], key=order), claim.question)


def _groups(reading: Reading) -> dict[str, Callable[[Claimed], bool]]:
    """Return which claims a row is of, by the end of its name: all, each label, each kind of text.

    The row of a label has its wrong claims and all right ones.
    """
    labels = {row.key: row.answers[0].label for row in reading}
    kinds = {row.key: str(row.metadata["kind"]) for row in reading}

    def of_label(claim: Claimed, label: str) -> bool:
        return claim.supported or labels[claim.key] == label

    def of_kind(claim: Claimed, kind: str) -> bool:
        return kinds[claim.key] == kind

    return {
        "": lambda claim: True,
        **{f", {name}": partial(of_label, label=label) for label, name in _WRONG.items()},
        **{f", {kind}": partial(of_kind, kind=kind) for kind in dict.fromkeys(kinds.values())},
    }


def _row(name: str, found: Measured, alone: Measured | None, seed: int) -> Row:
    """Return the row of an evaluator, with the verdicts that differ from those without others."""
    known = with_scores(found)
    verdicts = with_verdicts(found)
    before = {} if alone is None else {one.key: passed for one, passed in with_verdicts(alone)}
    moved = [(before[one.key] is not passed, one.group) for one, passed in verdicts if before]
    return Row(
        name,
        (
            _area(known, seed),
            grouped_share((passed, one.group) for one, passed in verdicts if not one.supported),
            grouped_share((not passed, one.group) for one, passed in verdicts if one.supported),
            grouped_share(moved) if moved else None,
        ),
        items=len(known),
        undetermined=len(found) - len(known),
        spent=mean_cost(found),
    )


def _area(known: Sequence[tuple[Claimed, float]], seed: int) -> Figure:
    times = drawn([claim.group for claim, _ in known], seed)
    return area([of for _, of in known], [claim.supported for claim, _ in known], times)


def _floor(chosen: Sequence[Claimed]) -> Measured:
    """Return the claims with the share of their words that stand in the text, at its best limit."""
    (found,) = overlap_at_best({_SET: chosen}).values()
    return [Done(Judged(claim, overlap(claim), passes), Spent()) for claim, passes in found]


def _everyday(bench: Bench) -> Result:
    reading = bench.read(_SET)
    every = claims(reading)
    texts = [*dict.fromkeys(claim.contexts[0] for claim in every)]
    # Those about one text together, which a server then need not read again.
    chosen = sorted(choose(every, bench.limit, bench.seed), key=lambda claim: claim.group)
    groups = _groups(reading)
    counts = dict.fromkeys((0, *(int(name) for name in bench.names("others", _OTHERS))))
    rows: list[Row] = []
    for name in bench.names("judges", _NAMES, ("small", "local")):
        evaluator = judge(bench, name)
        alone: Measured | None = None
        for count in counts:
            what = f"{name}, {count} other texts" if count else name
            samples = [_with_others(claim, texts, count, bench.seed) for claim in chosen]
            done = bench.judged(what, evaluator, samples)
            said = judged(chosen, [one.value for one in done])
            found = [Done(one, of.spent) for one, of in zip(said, done, strict=True)]
            for of, belongs in groups.items() if alone is None else [("", lambda claim: True)]:
                some = [one for one in found if belongs(one.value.claim)]
                rows.append(_row(f"{what}{of}", some, alone, bench.seed))
            alone = alone or found
    floor = _row(AT_BEST, _floor(chosen), None, bench.seed)
    rows.append(replace(floor, floor=True))
    return Result(
        _COLUMNS,
        tuple(rows),
        (
            "The row of a label has its wrong claims and all right ones.",
            "Other texts stand beside the one that decides, in an order that the seed chooses. A "
            "verdict moves if it is another one than without them.",
            "The overlap is the share of the claim's words that stand in the text, at the limit "
            "that is best for these claims.",
            "Claims about one text are drawn together.",
        ),
    )


EVERYDAY = Table(
    "everyday",
    "demur",
    "How often wrong claims about everyday texts pass, and right ones fail.",
    (_SET,),
    _everyday,
    options={
        "judges": f"some of {', '.join(_NAMES)}, with commas between; model: the one of --model; "
        "cascade: small, then local; the others are yes-or-no judges, in this process or served by "
        "the model [default: small,local]",
        "others": f"how many other texts stand beside: some of {', '.join(_OTHERS)}, with commas "
        "between [default: all]",
    },
)

TABLES = (EVERYDAY,)
