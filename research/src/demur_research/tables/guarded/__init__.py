"""Measure what a guard buys: the right answers, the wrong ones and the refusals that users get.

The same questions are answered by a chain without a guard, by one whose prompt asks for care, and
by guarded ones (`ARMS`). Calls that several arms have in common are made once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from demur_research.bench import Bench, Column, Done, Figure, Result, Row, Table, mean_cost
from demur_research.datasets.pairs import digest
from demur_research.resampling import area, drawn, grouped_share, mean_figure
from demur_research.tables.guarded.chains import ARMS, Answered, Arm, answers, index
from demur_research.tables.guarded.picture import draw
from demur_research.tables.guarded.questions import SETS, Mark, read
from demur_research.texts import FOLDER, rows_of

_ALONE = "no guard"
_CURVES = ("small", "local")
"""The arms for which the limit is moved too."""
_LIMITS = (0.1, 0.25, 0.5, 0.75, 0.9)

Found = Mapping[str, Sequence[Done[Answered]]]
"""What became of the questions in each arm, in the same order."""


def _guarded(bench: Bench) -> Result:
    picture = Path(bench.options.get("picture", ""))
    if not picture.parent.is_dir():
        raise ValueError(f"picture: there is no folder {picture.parent}")
    asked, passages = read(bench, bench.names("sets", SETS))
    retriever = index(bench, passages)
    arms = dict.fromkeys([_ALONE, *bench.names("arms", ARMS)])
    found: Found = {name: answers(bench, name, asked, retriever) for name in arms}
    rows = [*_rows(found, bench.seed), *_at_limits(found)]
    if bench.names("by", ("set",), ()):
        for name in dict.fromkeys(one.set for one in asked):
            part = {arm: [o for o in of if o.value.asked.set == name] for arm, of in found.items()}
            rows += _rows(part, bench.seed, f", {name}")
    if picture.name:
        picture.write_text(_picture(found), encoding="utf-8")
    told = f"{len(asked)} questions; an index of {len(passages):,} passages"
    notes = (told, *_of_judges(found), *_of_recoveries(found), *_of_rules(found))
    return Result(_COLUMNS, tuple(rows), notes)


_COLUMNS = (
    Column("right answers, %"),
    Column("wrong answers, %"),
    Column("refused, and the answer was there, %"),
    Column("refused, and it was not, %"),
    Column("wrong answers, change"),
    Column("right answers, change"),
    Column("AUROC", 2),
)
_CHANGES: tuple[Mark, ...] = ("wrong", "right")


def _rows(found: Found, seed: int, part: str = "") -> Iterator[Row]:
    alone = [one.value for one in found[_ALONE]]
    for name, done in found.items():
        of = [one.value for one in done]
        changed = [_change(alone, of, mark, seed) for mark in _CHANGES]
        changes = [None if name == _ALONE else one for one in changed]
        figures = (*_shares(of, [one.mark for one in of]), *changes, _area(of, seed))
        yield Row(f"{name}{part}", figures, items=len(of), spent=mean_cost(done))


def _at_limits(found: Found) -> Iterator[Row]:
    """Yield a row for each limit of the guards that refuse at once."""
    for name in filter(found.__contains__, _CURVES):
        of = [one.value for one in found[name]]
        for limit in _LIMITS:
            figures = (*_shares(of, [one.at(limit) for one in of]), None, None, None)
            yield Row(f"{name}, limit {limit}", figures, items=len(of))


def _shares(of: Sequence[Answered], marks: Sequence[Mark]) -> Iterator[Figure]:
    """Yield the shares of the first four columns, which make up the whole."""
    for wanted, there in (("right", None), ("wrong", None), ("refused", True), ("refused", False)):
        yield grouped_share(
            (mark == wanted and there in (None, one.there), one.asked.group)
            for one, mark in zip(of, marks, strict=True)
        )


def _change(before: Sequence[Answered], after: Sequence[Answered], mark: Mark, seed: int) -> Figure:
    """Return by how many percent points the share of a mark changed, question by question."""
    pairs = zip(before, after, strict=True)
    moved = [100 * ((new.mark == mark) - (old.mark == mark)) for old, new in pairs]
    return mean_figure(moved, seed, groups=[one.asked.group for one in after])


def _area(of: Sequence[Answered], seed: int) -> Figure | None:
    """Return how often the judge scores a right answer of the chain above a wrong one."""
    scored = [
        (one.score, one.own == "right", one.asked.group)
        for one in of
        if one.attempts and one.score is not None and one.own != "refused"
    ]
    if not scored:
        return None
    scores, right, groups = zip(*scored, strict=True)
    return area(scores, right, drawn(groups, seed))


def _picture(found: Found) -> str:
    def place(marks: Sequence[Mark]) -> tuple[float, ...]:
        return tuple(100 * marks.count(mark) / len(marks) for mark in _CHANGES)

    curves = {}
    for name in filter(found.__contains__, _CURVES):
        of = [one.value for one in found[name]]
        limits = sorted({one.score or 0 for one in of} | {2.0}, reverse=True)
        curves[name] = [place([one.at(limit) for one in of]) for limit in limits]
    # Guards of other kinds lie so near to these that their names would cover each other.
    shown = [name for name in found if name in _CURVES or ARMS[name].judge is None]
    return draw({name: place([one.value.mark for one in found[name]]) for name in shown}, curves)


# --- Notes ----------------------------------------------------------------------------------------


def _of_judges(found: Found) -> Iterator[str]:
    """Say from which error rate of the chain on a guard stops more wrong answers than right."""
    chain = Counter(one.value.mark for one in found[_ALONE])
    errs = chain["wrong"] / max(1, chain["wrong"] + chain["right"])
    for name, of in found.items():
        if ARMS[name] != Arm(judge=ARMS[name].judge) or name == _ALONE:
            continue
        passed = Counter(one.value.mark for one in of)
        stopped, lost = (1 - passed[mark] / max(1, chain[mark]) for mark in _CHANGES)
        yield (
            f"{name}: stops {stopped:.0%} of the chain's wrong answers and {lost:.0%} of its right "
            "ones, so it stops more wrong ones than right ones if the chain errs in more than "
            f"{lost / max(1e-9, lost + stopped):.0%} of its answers; here it errs in {errs:.0%}"
        )


def _of_recoveries(found: Found) -> Iterator[str]:
    """Say what became of the answers that each recovery brought."""
    for name in (name for name in found if ARMS[name].recovers):
        of = [one.value for one in found[name]]
        left = Counter((one.attempts[-1].recovery, one.mark) for one in of)
        for kind, times in Counter(a.recovery for one in of for a in one.attempts[1:]).items():
            counts = " and ".join(f"{left[kind, mark]} {mark}" for mark in reversed(_CHANGES))
            yield f"{name}: {kind} was tried {times} times, and {counts} answers left"


def _of_rules(found: Found) -> Iterator[str]:
    """Say how often the rules mark an answer otherwise than who read it."""
    known = {row["key"]: row["found"] for row in rows_of(FOLDER / "answers_read.jsonl")}
    every = [one.value for of in found.values() for one in of]
    marks = {digest(one.asked.question, one.text): one.mark for one in every}
    read = [(known[key], mark) for key, mark in marks.items() if key in known]
    differ = Counter(f"{found} marked {mark}" for found, mark in read if found != mark)
    if read:
        shown = ", ".join(f"{times} {what}" for what, times in sorted(differ.items())) or "none"
        told = f"Of {len(read)} answers that were read one by one, the rules mark"
        yield f"{told} {differ.total()} otherwise: {shown}"


TABLES = (
    Table(
        "guarded",
        "demur",
        "What users of a chain get with and without a guard: right answers, wrong ones, refusals.",
        ("everyday", "aggrefact", "halueval-qa"),
        _guarded,
        options={
            "sets": f"some of {', '.join(SETS)}, with commas between [default: all]",
            "arms": f"some of {', '.join(ARMS)}, with commas between [default: all]",
            "by": "set: adds rows for each set [default: none]",
            "picture": "a file for a picture (SVG) of right against wrong answers [default: none]",
        },
    ),
)
