"""Compare SelfCheck's variants on the samples that the publishers recorded, without a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from demur import Sample
from demur.evaluators import Evaluator
from demur.evaluators.baselines import SelfCheck
from demur.local import SMALL
from demur_research.bench import Bench, Column, Result, Row
from demur_research.datasets.published import CHATGPT, LLAMA_2, Records
from demur_research.datasets.rows import LabelledRow
from demur_research.detection import detection
from demur_research.replay import selfcheck
from demur_research.resampling import area, drawn_alone, figure
from demur_research.tables.reverse_validation.judged import (
    ALL_FALSE,
    HALVES,
    PHD,
    by_halves,
    inconsistencies,
    passages,
    selfchecks,
    wrong,
)
from demur_research.tables.reverse_validation.recorded import records_of, with_samples

MODELS = (CHATGPT, LLAMA_2)

Inconsistencies: TypeAlias = Mapping[str, "float | None"]
"""The inconsistency of each passage by its key; None where it is undetermined."""


def _variants(bench: Bench) -> dict[str, Evaluator]:
    of_small = SelfCheck(method="nli", nli=SMALL)
    return {f"selfcheck nli, {SMALL}": of_small, **selfchecks(bench, model=False)}


def _found(
    bench: Bench, model: str, rows: Sequence[LabelledRow], records: Records
) -> Iterator[tuple[str, Inconsistencies]]:
    """Yield each variant's name with the inconsistencies of the passages that have samples."""
    samples: dict[str, Sample] = with_samples(rows, records)
    sampled = [row for row in rows if row.key in samples]
    for name, check in _variants(bench).items():
        done = bench.judged(f"{model}, {name}", check, [samples[row.key] for row in sampled])
        yield name, inconsistencies(sampled, done)
    if scores := selfcheck(records.by_key):
        yield "selfcheck bertscore, as recorded", scores


def _row(
    bench: Bench,
    name: str,
    rows: Sequence[LabelledRow],
    scores: Inconsistencies,
    floor: bool = False,
) -> Row:
    known = [(row, score) for row in rows if (score := scores.get(row.key)) is not None]
    values, kinds = [score for _, score in known], [wrong(row) for row, _ in known]
    times = drawn_alone(len(known), bench.seed)
    found = by_halves(name, rows, scores, floor=floor).detection(rows, bench.seed)
    figures = area(values, kinds, times), *found
    return Row(name, figures, len(known), len(scores) - len(known), floor=floor)


def compared(bench: Bench) -> Result:
    """Return the table of SelfCheck's variants on PHD, from the recorded samples."""
    rows = passages(bench)
    shown: list[Row] = []
    for model in bench.names("models", MODELS, MODELS[:1]):
        records = records_of(bench, PHD, model)
        for name, scores in _found(bench, model, rows, records):
            shown.append(_row(bench, f"{model}: {name}", rows, scores))
    lengths = {row.key: float(len(row.answers[0].text)) for row in rows}
    shown.append(_row(bench, "the longest", rows, lengths, floor=True))
    shorter = {key: -length for key, length in lengths.items()}
    shown.append(_row(bench, "the shortest", rows, shorter, floor=True))
    kinds = [wrong(row) for row in rows]
    half = figure(0.5, np.full(2, 0.5))
    everything = detection(kinds, [True] * len(rows), bench.seed)
    shown.append(Row(ALL_FALSE, (half, *everything), len(rows), floor=True))
    return Result(
        (Column("AUROC", 3), Column("F1, %"), Column("precision, %"), Column("recall, %")),
        tuple(shown),
        (
            "Three samples of each passage, as the publishers recorded them; no model is asked.",
            f"F1, precision and recall: {HALVES[0].lower()}{HALVES[1:]}",
        ),
    )
