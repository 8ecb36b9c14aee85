"""Measure what becomes of bare answers such as "Paris", and of markers such as "N/A"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from demur import Evaluation, Sample
from demur.evaluators.refchecker.coverage import stating
from demur_research.bench import Bench, Column, Done, Figure, Result, Row, Table, mean_cost
from demur_research.resampling import share
from demur_research.tables.checkers import judge, sample
from demur_research.texts.answers import let_through
from demur_research.texts.bare import FORMS, GROUPS, Bare, bare_answers, markers

_NAMES = ("small", "local")
_PARTS = {"in sight": False, "set apart": True}
Judged = tuple[Bare, Done[Evaluation]]


def _rows(every: Sequence[Judged]) -> Iterator[tuple[str, list[Judged]]]:
    for part, held_out in _PARTS.items():
        yield part, [one for one in every if one[0].held_out is held_out]
    for form in FORMS:
        yield f"both, {form}", [one for one in every if one[0].form == form]
    for language in dict.fromkeys(one.language for one, _ in every):
        yield f"both, {language}", [one for one in every if one[0].language == language]


def _passing(of: Sequence[Judged], group: str) -> Figure | None:
    known = [
        let_through(d.value) for one, d in of if one.group == group and not d.value.undetermined
    ]
    return share(known) if known else None


def _bare(bench: Bench) -> Result:
    chosen = bare_answers()[: bench.limit]
    samples = [sample(one.answer, (one.context,), one.question) for one in chosen]
    rows = []
    for name in bench.names("judges", _NAMES):
        every = [*zip(chosen, bench.judged(name, judge(bench, name), samples), strict=True)]
        for named, of in _rows(every):
            figures = tuple(_passing(of, group) for group in GROUPS)
            known = [done for _, done in of if not done.value.undetermined]
            rows.append(Row(f"{name}, {named}", figures, items=len(known), spent=mean_cost(known)))
    return Result(
        (
            Column("context about something else: pass, %"),
            Column("context says otherwise: pass, %"),
            Column("right: pass, %"),
        ),
        tuple(rows),
        ("The rules were made with the answers in sight, and not with those set apart.",),
    )


def _markers(bench: Bench) -> Result:
    chosen = markers()[: bench.limit]
    decided = [
        (one, bool(stating(Sample(question=one.question, answer=one.answer)))) for one in chosen
    ]
    rows = []
    for language in ("all", *dict.fromkeys(one.language for one in chosen)):
        of = [pair for pair in decided if language in ("all", pair[0].language)]
        figures = (
            share([not found for one, found in of if one.states]),
            share([found for one, found in of if not one.states]),
        )
        rows.append(Row(language, figures, items=len(of)))
    shown = [
        f"{one.language}, {one.kind}: {one.question!r} {one.answer!r}"
        for one, found in decided
        if found is not one.states
    ]
    return Result(
        (Column("answers taken for markers, %"), Column("markers taken for answers, %")),
        tuple(rows),
        tuple(shown),
    )


BARE = Table(
    "bare",
    "demur",
    "How often answers of one word to four pass, right and wrong.",
    (),
    _bare,
    options={"judges": f"some of {', '.join(_NAMES)}, with commas between [default: all]"},
)
MARKERS = Table(
    "markers",
    "demur",
    'Whether the rules tell "N/A" from "None." as an answer.',
    (),
    _markers,
    asks=False,
)

TABLES = (BARE, MARKERS)
