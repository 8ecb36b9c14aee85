"""Measure whether RefChecker notices that an agent's report of its own actions is wrong.

Each sentence is judged as the agent's last message, alone, by the tools' results and the calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage

from demur import Evaluation, RefChecker
from demur.shapes import sample_of
from demur_research.bench import Bench, Column, Done, Result, Row, Table, mean_cost
from demur_research.resampling import grouped_share
from demur_research.tables.judges import ANY_JUDGE_OPTION, any_judge
from demur_research.texts.actions import (
    REPORT_KINDS,
    ActionTrace,
    Said,
    action_traces,
    report_traces,
)
from demur_research.texts.answers import let_through

_PARTS = {"in sight": 1, "held out": 0}
"""The parity of the numbers of the traces that were looked at while the rules were made, and of
those that were not, by the name of that part."""
_COLUMNS = (
    Column("wrong that pass, %"),
    Column("wrong that are undetermined, %"),
    Column("right that fail or are undetermined, %"),
)


@dataclass(frozen=True)
class _Judged:
    """Hold a sentence with what a judge says of it."""

    trace: ActionTrace
    said: Said
    found: Done[Evaluation]


def _row(name: str, of: Sequence[_Judged], costs: bool = False) -> Row:
    """Return the row of sentences, whose intervals take those about a trace as related."""
    wrong, right = ([one for one in of if one.said.holds is holds] for holds in (False, True))
    figures = (
        grouped_share((let_through(one.found.value), one.trace.id) for one in wrong),
        grouped_share((one.found.value.undetermined, one.trace.id) for one in wrong),
        grouped_share((not let_through(one.found.value), one.trace.id) for one in right),
    )
    spent = mean_cost([one.found for one in of]) if costs else None
    return Row(name, figures, items=len(of), spent=spent)


def _rows(every: Sequence[_Judged]) -> Iterator[Row]:
    facts = [one for one in every if one.said.kind is None]
    reports = [one for one in every if one.said.kind in REPORT_KINDS]
    claims = [one for one in every if one.said.kind not in (None, *REPORT_KINDS)]
    parts = {"all claims": claims, "claims that are no actions": facts, "all reports": reports}
    for one_kind in REPORT_KINDS:
        parts[f"reports: {one_kind}"] = [one for one in reports if one.said.kind == one_kind]
    for name, of in parts.items():
        yield _row(name, of, costs=True)
        for part, parity in _PARTS.items():
            yield _row(f"{name}, {part}", [one for one in of if one.trace.number % 2 == parity])
    for holds, side in ((False, "wrong"), (True, "right")):
        of_side = [one for one in claims if one.said.holds is holds]
        for kind in dict.fromkeys(one.said.kind for one in of_side):
            yield _row(f"{side}: {kind}", [one for one in of_side if one.said.kind == kind])
    for domain in dict.fromkeys(one.trace.domain for one in claims):
        yield _row(domain, [one for one in claims if one.trace.domain == domain])


def _make(bench: Bench) -> Result:
    checker = RefChecker(any_judge(bench))
    traces = (*action_traces()[: bench.limit], *report_traces()[: bench.limit])
    every = [(trace, said) for trace in traces for said in (*trace.claims, *trace.facts)]
    samples = [sample_of([*trace.messages, AIMessage(said.text)]) for trace, said in every]
    found = bench.judged("judging", checker, samples)
    judged = [_Judged(*one, of_one) for one, of_one in zip(every, found, strict=True)]
    return Result(
        _COLUMNS,
        tuple(_rows(judged)),
        (
            f'The judge is "{bench.options.get("judge", "small")}".',
            "Undetermined sentences count.",
            "The rules were made with the traces of odd numbers in sight. Those of even numbers "
            "were held out.",
            "Sentences about one trace count in the intervals as fewer independent ones.",
        ),
    )


ACTIONS = Table(
    "actions",
    "demur",
    "How often an agent's wrong report of its own actions passes, and how often a right one fails.",
    (),
    _make,
    options={"judge": ANY_JUDGE_OPTION},
)

TABLES = (ACTIONS,)
