"""Run the methods with a model that is asked now, and measure their costs (Table 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from demur import Evaluation, ReverseValidation, Sample
from demur.evaluators import Evaluator
from demur.evaluators.baselines import LMvsLM, ZeroShot
from demur_research.bench import Bench, Column, Done, Result, Row, mean_cost
from demur_research.datasets.published import VARIANTS
from demur_research.datasets.rows import LabelledRow
from demur_research.replay import PUBLISHED, Verdicts, matchers
from demur_research.resampling import mean_figure
from demur_research.tables.reverse_validation.judged import (
    HALVES,
    LMVSLM,
    MATCHERS,
    ZERO_SHOT,
    Judged,
    by_halves,
    floors,
    inconsistencies,
    passages,
    percentage,
    result,
    selfchecks,
)

_SELFCHECK = "selfcheck"
METHODS = (LMVSLM, _SELFCHECK, ZERO_SHOT, *VARIANTS)
"""The names that the option `methods` may give."""
PERCENTAGE = 80.0
"""The default of the option `percentage`, which is demur's own."""

_TABLE_5 = {
    "qg": ("297.3", "2.65"),
    "em": ("510.4", "7.25"),
    LMVSLM: ("5974.5", "29.48"),
    _SELFCHECK: ("435.7", "122.4"),
}
_COUNTED = (
    "Costs are of the passages that a method decides on. Seconds are the sum over its calls, as "
    "they were recorded: record with --at-once 1."
)


def detected(bench: Bench) -> Result:
    """Return the table of detection on PHD with the bench's model."""
    rows = passages(bench)
    judged = [*floors(rows)]
    for method in bench.names("methods", METHODS):
        judged += _judged(bench, method, rows)
    notes = (
        f"The model: {bench.model_name}. The entity is given, as in the paper.",
        *(MATCHERS, "llm: asks the model where the names differ, a call more.", HALVES, _COUNTED),
    )
    return result(bench, rows, judged, {}, notes)


def costs(bench: Bench) -> Result:
    """Return Table 5: the tokens and seconds of a passage."""
    rows, shown = passages(bench), []
    for method in bench.names("methods", METHODS, (*_TABLE_5, ZERO_SHOT)):
        name, evaluator = next(iter(_evaluators(bench, method).items()))
        done = _done(bench, method, name, evaluator, rows)
        spent = [one.spent for one in _decided(done)]
        tokens = [one.tokens for one in spent]
        paper = _TABLE_5.get(method, ("", ""))
        figures = (
            mean_figure([told for told in tokens if told is not None], bench.seed, paper[0]),
            mean_figure([one.seconds for one in spent], bench.seed, paper[1]),
        )
        shown.append(Row(name, figures, len(spent), len(done) - len(spent)))
    columns = Column("tokens a passage"), Column("seconds a passage", 2)
    notes = (
        f"The model: {bench.model_name}. The paper's figures are of gpt-3.5-turbo-0301, and of "
        "BERTScore for SelfCheck.",
        _COUNTED,
    )
    return Result(columns, tuple(shown), notes)


def _evaluators(bench: Bench, method: str) -> Mapping[str, Evaluator]:
    """Return a method's evaluators by the names of their rows; they share recorded calls."""
    if method == ZERO_SHOT:
        return {method: ZeroShot(bench.model)}
    if method == LMVSLM:
        return {method: LMvsLM(bench.model)}
    if method == _SELFCHECK:
        return selfchecks(bench, model=True)
    (variant,) = (one for one in VARIANTS if one == method)
    least = percentage(bench, PERCENTAGE) / 100
    # demur's default matcher comes first.
    names = sorted(matchers(variant), key=lambda name: name != "normalized")
    return {
        f"{variant}, {name}": ReverseValidation(
            bench.model, variant=variant, matcher=name, threshold=least
        )
        for name in names
    }


def _judged(bench: Bench, method: str, rows: Sequence[LabelledRow]) -> Iterator[Judged]:
    found = {
        name: _done(bench, method, name, evaluator, rows)
        for name, evaluator in _evaluators(bench, method).items()
    }
    if method == _SELFCHECK:
        for name, done in found.items():
            yield by_halves(
                name, rows, inconsistencies(rows, done), spent=mean_cost(_decided(done))
            )
        return
    verdicts = {name: _verdicts(rows, done) for name, done in found.items()}
    published = next((name for name in found if name.endswith(tuple(PUBLISHED.values()))), None)
    for name, done in found.items():
        over = None if published in (None, name) else verdicts[str(published)]
        yield Judged(name, verdicts[name], mean_cost(_decided(done)), published=over)


def _done(
    bench: Bench, method: str, name: str, evaluator: Evaluator, rows: Sequence[LabelledRow]
) -> list[Done[Evaluation]]:
    return bench.judged(name, evaluator, [_sample(row, method) for row in rows])


def _decided(done: Sequence[Done[Evaluation]]) -> list[Done[Evaluation]]:
    """Return the evaluations that costs are measured on.

    A call that failed was not recorded, and would count as no call.
    """
    return [one for one in done if not one.value.undetermined]


def _sample(row: LabelledRow, method: str) -> Sample:
    entity = str(row.metadata["entity"])
    # In our words, the prompt that the passages were written to. Only SelfCheck asks it again.
    question = f"Write a short encyclopedia article on {entity.strip()}."
    return Sample(
        question=question if method == _SELFCHECK else None,
        answer=row.answers[0].text,
        metadata={"entity": entity},
    )


def _verdicts(rows: Sequence[LabelledRow], done: Sequence[Done[Evaluation]]) -> Verdicts:
    passed = (one.value.passed for one in done)
    return {row.key: None if ok is None else not ok for row, ok in zip(rows, passed, strict=True)}
