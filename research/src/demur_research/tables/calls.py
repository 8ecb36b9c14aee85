"""Measure whether calls with values that nobody gave are stopped, and right calls are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from demur.evaluators import missing_values
from demur.shapes import given_texts
from demur_research.bench import Bench, Column, Result, Row, Table
from demur_research.resampling import share
from demur_research.texts.calls import RIGHT_KINDS, WRONG_KINDS, ToolCallCase, call_cases

_COLUMNS = (Column("invented that are stopped, %"), Column("right that are stopped, %"))
_PARTS = {"in sight": False, "held out": True}


@dataclass(frozen=True)
class _Judged:
    """Hold a case, and whether it was stopped."""

    case: ToolCallCase
    stopped: bool
    """Whether a value was missed; of a wrong call, whether one was that nobody gave."""


def _judged(case: ToolCallCase) -> _Judged:
    said = [str(one["content"]) for one in case.messages if one["type"] == "human"]
    missing = missing_values(
        {"name": case.tool, "args": case.args},
        case.schema,
        given_texts(case.messages),
        today=date.fromisoformat(case.today),
        question=said[-1] if said else "",
    )
    paths = {one.path for one in missing}
    return _Judged(case, bool(paths.intersection(case.invented) if case.invented else paths))


def _row(name: str, of: Sequence[_Judged]) -> Row:
    sides = ([one for one in of if bool(one.case.invented) is wrong] for wrong in (True, False))
    return Row(name, tuple(share([one.stopped for one in side]) for side in sides), items=len(of))


def _rows(every: Sequence[_Judged]) -> Iterator[Row]:
    yield _row("all calls", every)
    for part, held_out in _PARTS.items():
        yield _row(part, [one for one in every if one.case.held_out is held_out])
    for kind in (*WRONG_KINDS, *RIGHT_KINDS):
        yield _row(kind, [one for one in every if one.case.kind == kind])
    for domain in dict.fromkeys(one.case.domain for one in every):
        yield _row(domain, [one for one in every if one.case.domain == domain])


def _make(bench: Bench) -> Result:
    return Result(
        _COLUMNS,
        tuple(_rows([*map(_judged, call_cases()[: bench.limit])])),
        (
            "No model is asked. The figures take no account of what a model does next.",
            "The conversations are our own, of 25 kinds of tools. The rules were made with those "
            "in sight. Those held out were judged once, at the end, and their author did not know "
            "the rules.",
        ),
    )


CALLS = Table(
    "calls",
    "demur",
    "How often a tool call with a value that nobody gave is stopped, and how often a right one.",
    (),
    _make,
    asks=False,
)

TABLES = (CALLS,)
