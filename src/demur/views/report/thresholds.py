"""Describe one evaluator: its figures, and what each threshold would let pass."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from demur.calibration import (
    CalibrationError,
    Operating,
    best_f1,
    differences,
    operating_points,
    percentile,
    reliability,
    roc,
)
from demur.schema import ABSTAIN, Evaluation, Finding, OnAbstain, Threshold
from demur.views import plural
from demur.views.report import words
from demur.views.report.curves import reliability_curve, roc_curve
from demur.views.report.drawing import MOST_ROWS, Chart
from demur.views.report.figures import Scores, distribution, over_time
from demur.views.report.rows import Column, Rows
from demur.views.report.words import guarantee, percent, rounded_down

FEW = 10
"""The number of answers with each label below which curves say little."""


@dataclass(frozen=True)
class Slider:
    """Hold the thresholds to choose from."""

    points: Mapping[str, Any]
    """The thresholds and their figures, as columns of JSON values."""
    start: int
    """The index of the point at which the slider stands at first."""
    note: str
    """Why the slider stands there."""
    labelled: bool
    """Whether there are labels, from which precision and recall are computed."""

    @property
    def last(self) -> int:
        """Return the index of the last point."""
        return len(self.points["thresholds"]) - 1


@dataclass(frozen=True)
class EvaluatorSection:
    """Describe one evaluator as the page shows it."""

    name: str
    notices: tuple[str, ...]
    differences: tuple[str, ...]
    """How the scores differ in the models and prompts that they depend on."""
    given: str | None = None
    """The threshold that was given for the evaluator."""
    guarantee: str | None = None
    """What the given threshold promises."""
    slider: Slider | None = None
    """The slider; None if there are no scores."""
    charts: tuple[Chart, ...] = ()


def evaluator_section(column: Column, rows: Rows, threshold: Threshold | None) -> EvaluatorSection:
    """Return what the page says about one evaluator.

    Args:
        column: The evaluator's findings and scores.
        rows: The runs.
        threshold: A threshold that was chosen for the evaluator, to be marked.
    """
    at = column.scored
    values = [score for score in column.scores if score is not None]
    labels = [rows.labels[run] for run in at]
    notices = list[str]()
    if not values:
        notices.append("It gave no answer a score, so there is no threshold to look for.")
    if threshold is not None:
        notices.extend(_objections(threshold, column))
    if column.namesakes:
        notices.append(
            "Several evaluators have this name and judged the same answers. Their scores cannot be "
            "told apart: the lowest is shown. Give each a name of its own."
        )
    elif column.in_parts:
        notices.append(
            f"{plural(column.in_parts, 'answer was', 'answers were')} judged sentence by sentence, "
            "while streamed: the score is that of the worst sentence."
        )
    differs = differences(map(dict, column.fingerprints.elements()))
    if differs:
        notices.append(
            "Its scores were not all made in the same way, so they cannot all be compared with one "
            "another. What differs, and how many scores have it:"
        )
    if not values:
        return EvaluatorSection(column.name, tuple(notices), tuple(differs))
    scores = Scores(values, labels, [rows.times[run] for run in at])
    judged = _judged(column, rows, "pass" if threshold is None else threshold.on_abstain)
    if column.silent:
        notices.append(_silent(len(column.silent), judged.on_abstain))
    try:
        slider, points = _slider(judged, threshold)
    except CalibrationError as error:  # a score is the largest float: no threshold is above it
        notices.append(f"No threshold can be looked for: {error}.")
        return EvaluatorSection(column.name, tuple(notices), tuple(differs))
    marked = None if threshold is None else threshold.value
    line = slider.points["thresholds"][slider.start]
    charts = [
        distribution(scores, line, marked),
        over_time(scores),
        *_curves(judged),
        _numbers(points, slider.points["shown"]),
    ]
    return EvaluatorSection(
        name=column.name,
        notices=tuple(notices),
        differences=tuple(differs),
        given=None if marked is None else rounded_down(marked, digits=6),
        guarantee=None if threshold is None else guarantee(threshold),
        slider=slider,
        charts=tuple(charts),
    )


@dataclass(frozen=True)
class _Judged:
    """Hold the answers that a threshold lets pass or not."""

    evaluations: Sequence[Evaluation]
    """The evaluations with a score or with nothing to check."""
    findings: Sequence[Finding | None]
    labels: Sequence[bool | None]
    on_abstain: OnAbstain

    @property
    def labelled(self) -> tuple[list[Evaluation], list[bool]]:
        """Return the evaluations with a label, and those labels."""
        pairs = zip(self.evaluations, self.labels, strict=True)
        known = [(evaluation, label) for evaluation, label in pairs if label is not None]
        return [evaluation for evaluation, _ in known], [label for _, label in known]


def _judged(column: Column, rows: Rows, on_abstain: OnAbstain) -> _Judged:
    silent, nothing = {*column.silent}, Evaluation(name=column.name, label=ABSTAIN)
    at = sorted({*column.scored, *silent})
    return _Judged(
        [
            nothing if run in silent else Evaluation(name=column.name, score=column.scores[run])
            for run in at
        ],
        [column.findings[run] for run in at],
        [rows.labels[run] for run in at],
        on_abstain,
    )


def _silent(count: int, on_abstain: OnAbstain) -> str:
    how = "pass any threshold" if on_abstain == "pass" else "fail at any threshold"
    answers = plural(count, "answer states", "answers state")
    return (
        f"{answers} nothing to check. They have no score and {how}, as in a guard with "
        f'on_abstain="{on_abstain}".'
    )


def _objections(threshold: Threshold, column: Column) -> list[str]:
    """Return what speaks against the given threshold, in sentences."""
    own = tuple(sorted(threshold.fingerprints.items()))
    others = sum(
        number for fingerprint, number in column.fingerprints.items() if fingerprint != own
    )
    if not threshold.fingerprints:
        return ["The threshold does not say which models and prompts its scores were made with."]
    if not others:
        return []
    return [
        f"{plural(others, 'score')} of {sum(column.fingerprints.values()):,} "
        f"{'was' if others == 1 else 'were'} made in another way than those that the threshold was "
        "chosen from. It was not chosen for such scores, and guarantees nothing for them."
    ]


# --- The slider -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Point:
    """Hold what a threshold does among all answers, and among those with a label."""

    every: Operating
    labelled: Operating | None


def _slider(judged: _Judged, threshold: Threshold | None) -> tuple[Slider, list[_Point]]:
    every = operating_points(judged.evaluations, on_abstain=judged.on_abstain)
    known, labels = judged.labelled
    points = [_Point(point, None) for point in every]
    if any(evaluation.score is not None for evaluation in known):
        # These are the same thresholds, or fewer.
        some = operating_points(known, labels, on_abstain=judged.on_abstain)
        thresholds = [point.threshold for point in some]
        beside = [min(bisect_left(thresholds, point.threshold), len(some) - 1) for point in every]
        points = [_Point(point, some[at]) for point, at in zip(every, beside, strict=True)]
    start, note = _start(judged, threshold)
    thresholds = [point.threshold for point in every]
    columns: dict[str, Any] = {
        "thresholds": thresholds,
        "shown": [*words.thresholds(thresholds)],
        "passed": [point.passed for point in every],
        "total": len(judged.evaluations),
    }
    with_labels = points[0].labelled is not None
    if with_labels:
        labelled = [point.labelled for point in points if point.labelled is not None]
        for name in ("precision", "recall", "f1"):
            columns[name] = [_rounded(getattr(point, name)) for point in labelled]
        columns["leak"] = [_leak(point) for point in labelled]
        columns["hallucinated"] = labelled[0].hallucinated
    at = min(bisect_left(thresholds, start), len(thresholds) - 1)
    return Slider(columns, at, note, with_labels), points


def _start(judged: _Judged, threshold: Threshold | None) -> tuple[float, str]:
    """Return the threshold at which the slider stands at first, and why."""
    if threshold is not None:
        return threshold.value, "The slider begins at the threshold that was given."
    scores: dict[Finding | None, list[float]] = {"passed": [], "failed": []}
    for evaluation, finding in zip(judged.evaluations, judged.findings, strict=True):
        if evaluation.score is not None:
            scores.setdefault(finding, []).append(evaluation.score)
    lowest = min(scores["passed"], default=-math.inf)
    if max(scores["failed"], default=-math.inf) < lowest:
        why = "The slider begins where the evaluator itself drew the line on these answers."
        return lowest, why
    try:
        best = best_f1(*judged.labelled, on_abstain=judged.on_abstain)
        return best.value, "The slider begins at the best F1 on these answers."
    except CalibrationError:  # no labels, or of one kind only
        scored = percentile([score for some in scores.values() for score in some], 10)
        return scored.value, "The slider begins where at most a tenth of the answers fail."


def _leak(point: Operating) -> float | None:
    recall = point.recall
    return None if recall is None else _rounded(1 - recall)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)


def _numbers(points: Sequence[_Point], shown: Sequence[str]) -> Chart:
    """Return what the slider shows, as a table."""
    step = max(1, -(-len(points) // MOST_ROWS))
    pairs = [*zip(points, shown, strict=True)]
    chosen = [*pairs[:-1:step], pairs[-1]]
    heads: tuple[str, ...] = ("threshold", "pass", "pass rate")
    labelled = points[0].labelled is not None
    if labelled:
        heads += ("of hallucinated pass", "precision", "recall", "F1")
    rows = []
    for point, threshold in chosen:
        row: tuple[str, ...] = (
            threshold,
            f"{point.every.passed:,}",
            percent(point.every.pass_rate),
        )
        if (operating := point.labelled) is not None:
            f1 = "–" if operating.f1 is None else f"{operating.f1:.3f}"
            row += (
                percent(_leak(operating)),
                percent(operating.precision),
                percent(operating.recall),
                f1,
            )
        rows.append(row)
    caption = "The answers that some thresholds would let pass; the last one lets none pass."
    return Chart("thresholds", "Thresholds", caption, heads, rows)


# --- Curves ---------------------------------------------------------------------------------------


def _curves(judged: _Judged) -> list[Chart]:
    values, labels = judged.labelled
    if all(value.score is None for value in values):
        return []
    wrong = sum(labels)
    right = len(labels) - wrong
    few = f"Few labels: {wrong:,} hallucinated, {right:,} not. A curve of so few says little. "
    if not wrong or not right:
        caption = (
            f"All {plural(right or wrong, 'answer')} with a label and a finding are "
            f"{'' if wrong else 'not '}hallucinated. ROC and reliability curves need both kinds."
        )
        return [Chart("curves", "ROC curve and reliability", caption, (), [])]
    charts = [
        roc_curve(roc(values, labels, on_abstain=judged.on_abstain)),
        reliability_curve(reliability(values, labels)),
    ]
    if min(wrong, right) >= FEW:
        return charts
    return [replace(chart, caption=few + chart.caption) for chart in charts]
