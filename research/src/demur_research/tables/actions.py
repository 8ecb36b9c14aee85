"""Measure whether RefChecker notices that an agent's report of its own actions is wrong.

Each sentence is judged as the agent's last message, alone, by the tools' results and the calls.
Beside that stands what the same judge says by the results alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage

from demur import Evaluation, RefChecker, Sample
from demur.shapes import sample_of, sources
from demur_research.bench import Bench, Column, Done, Result, Row, Table, mean_cost
from demur_research.resampling import grouped_share
from demur_research.tables.judges import ANY_JUDGE_OPTION, any_judge
from demur_research.texts.actions import ActionTrace, Said, action_traces
from demur_research.texts.answers import let_through

_PARTS = {"in sight": 1, "held out": 0}
"""The parity of the numbers of the traces that were looked at while the rules were made, and of
those that were not, by the name of that part."""
_COLUMNS = (
    Column("wrong that pass, %"),
    Column("wrong that are undetermined, %"),
    Column("right that fail or are undetermined, %"),
    Column("right that fail with the calls alone, %"),
    Column("without the calls: wrong that pass, %"),
    Column("without the calls: right that fail or are undetermined, %"),
)


@dataclass(frozen=True)
class _Judged:
    """Hold a sentence with what a judge says of it, with and without the calls."""

    trace: ActionTrace
    said: Said
    found: Done[Evaluation]
    before: Evaluation
    """The evaluation by the results of tools alone."""

    @property
    def is_false_alarm(self) -> bool:
        """Return whether the sentence fails with the calls, and does not fail without them."""
        return _fails(self.found.value) and not _fails(self.before)


def _fails(found: Evaluation) -> bool:
    return not found.undetermined and not let_through(found)


def _row(name: str, of: Sequence[_Judged], costs: bool = False) -> Row:
    """Return the row of sentences, whose intervals take those about a trace as related."""
    wrong, right = ([one for one in of if one.said.holds is holds] for holds in (False, True))
    figures = (
        grouped_share((let_through(one.found.value), one.trace.id) for one in wrong),
        grouped_share((one.found.value.undetermined, one.trace.id) for one in wrong),
        grouped_share((not let_through(one.found.value), one.trace.id) for one in right),
        grouped_share((one.is_false_alarm, one.trace.id) for one in right),
        grouped_share((let_through(one.before), one.trace.id) for one in wrong),
        grouped_share((not let_through(one.before), one.trace.id) for one in right),
    )
    spent = mean_cost([one.found for one in of]) if costs else None
    return Row(name, figures, items=len(of), spent=spent)


def _rows(every: Sequence[_Judged]) -> Iterator[Row]:
    claims = [one for one in every if one.said.kind is not None]
    facts = [one for one in every if one.said.kind is None]
    for name, of in (("all claims", claims), ("claims that are no actions", facts)):
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
    traces = action_traces()[: bench.limit]
    every = [(trace, said) for trace in traces for said in (*trace.claims, *trace.facts)]
    samples = [sample_of([*trace.messages, AIMessage(said.text)]) for trace, said in every]
    found = bench.judged("with the calls", checker, samples)
    alone = [
        Sample(question=one.question, answer=one.answer, contexts=sources(trace.messages))
        for (trace, _), one in zip(every, samples, strict=True)
    ]
    before = bench.judged("without the calls", checker, alone)
    judged = [
        _Judged(*one, with_calls, without.value)
        for one, with_calls, without in zip(every, found, before, strict=True)
    ]
    return Result(
        _COLUMNS,
        tuple(_rows(judged)),
        (
            f'The judge is "{bench.options.get("judge", "small")}".',
            "Undetermined sentences count. A sentence fails with the calls alone if it fails with "
            "the calls, and passes or is undetermined without them.",
            "Without the calls, a sentence is judged by what the tools returned, and failed calls "
            "are no evidence. So it was before demur knew of calls.",
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
