"""Compute the quality and the cost of each detector on a labelled set, from results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from demur.comparing.detectors import DETECTORS
from demur.comparing.figures import (
    Bools,
    Estimate,
    Figure,
    auroc,
    average_precision,
    balanced_accuracy,
    cross_fitted,
    estimates,
    f1,
    halves,
    on_pareto_line,
)
from demur.comparing.labelled import Label, Told
from demur.schema import Evaluation, Prices, Usage
from demur.scoring import Note, Result, ScoringError, read_lines

Cost: TypeAlias = Literal["tokens", "seconds", "calls", "money"]
_SEED = 0
_UNKNOWN = Estimate(None, None)


@dataclass(frozen=True)
class Quality:
    """Describe how well a detector finds hallucinated answers, see `docs/compare.md`."""

    auroc: Estimate = _UNKNOWN
    auprc: Estimate = _UNKNOWN
    balanced_accuracy: Estimate = _UNKNOWN
    """The balanced accuracy, with each half of the answers decided by the threshold that was best
    on the other half."""
    f1: Estimate = _UNKNOWN
    """The F1, with each half of the answers decided by the threshold that was best on the other
    half."""
    own_balanced_accuracy: Estimate = _UNKNOWN
    """The balanced accuracy of the detector's own decisions, if it decides."""
    own_f1: Estimate = _UNKNOWN
    """The F1 of the detector's own decisions, if it decides."""


@dataclass(frozen=True)
class Compared:
    """Describe one detector in a comparison."""

    name: str
    answers: int
    """The number of labelled answers that the detector was asked about."""
    scored: int
    """The number of answers with a score. All figures are about these, except those of the
    detector's own decisions."""
    hallucinated: int
    """The number of hallucinated answers among those with a score."""
    decided: int
    """The number of answers that the detector passed or failed by itself."""
    undetermined: int
    nothing_to_check: int
    quality: Quality
    cost: Mapping[Cost, float | None]
    """The mean cost of an answer that the detector was asked about, undetermined ones included:
    `calls` to the model, `tokens` read and written, `seconds` in calls and in models of this
    process, and `money`. `tokens` and `money` are None if the endpoint reports no tokens, and
    `money` is None without prices."""
    on_line: bool = False
    """Whether no other detector beats this one in AUROC and cost, see `on_pareto_line`."""

    def point(self, cost: Cost) -> tuple[float, float] | None:
        """Return AUROC and cost, or None if one of them is not known."""
        quality, price = self.quality.auroc.value, self.cost[cost]
        return None if quality is None or price is None else (quality, price)


@dataclass(frozen=True)
class Comparison:
    """Hold detectors side by side on one labelled set."""

    name: str
    """The name of the set."""
    model: str | None
    """The model that the detectors asked; None if it is not known."""
    answers: int
    """The number of answers with a label."""
    hallucinated: int
    groups: int
    unlabelled: int
    """The number of answers of the set without a label, which are left out."""
    unknown: int
    """The number of labels that were given for answers which are not in the set."""
    cost: Cost
    """The cost that the Pareto line weighs."""
    prices: Prices | None
    detectors: tuple[Compared, ...]
    left_out: Mapping[str, str]
    """The detectors that were not asked, each with the reason."""


def read_comparison(
    path: Path,
    *,
    given: Mapping[str, bool] | None = None,
    only: Collection[str] | None = None,
    labels: Mapping[str, Label] | None = None,
    cost: Cost = "tokens",
    prices: Prices | None = None,
) -> Comparison:
    """Compare the detectors whose results are in a file, without asking a model.

    Args:
        path: A file that `demur compare` wrote, or one that `demur score` wrote, with labels.
        given: Labels by the answers' keys, which replace those in the file. An answer whose group
            is not in the file is a group of its own.
        only: The names of the detectors to compare; None: all of them.
        labels: The answers to compare, with their labels. None: all answers that have a label in
            the file or in `given`.
        cost: The cost that the Pareto line weighs.
        prices: The prices of tokens, for the cost in money; None: no cost in money.

    Raises:
        ScoringError: The file cannot be read or holds something else, or no answer in it has a
            label.
    """
    told, found = Told(), dict[str, dict[str, Evaluation]]()
    for line in read_lines(path):
        if isinstance(line, Note):
            told.take(line)
        elif isinstance(line, Result) and (only is None or line.evaluator in only):
            small = line.evaluation.model_copy(update={"details": {}, "claims": ()})
            found.setdefault(line.evaluator, {})[line.key] = small  # the last result counts
    known = dict(told.labels if labels is None else labels)
    unknown = 0
    for key, label in (given or {}).items() if labels is None else ():
        if key in known or any(key in each for each in found.values()):
            known[key] = Label(label, known[key].group if key in known else key)
        else:
            unknown += 1
    if not known:
        raise ScoringError(f"{path}: no answer has a label: give a file of labels with --labels")
    # In a fixed order, so that a resumed run has the same figures.
    places = {name: place for place, name in enumerate(DETECTORS)}
    ordered = {
        name: [(known[key], found[name][key]) for key in known if key in found[name]]
        for name in sorted(found, key=lambda name: (places.get(name, len(places)), name))
    }
    rows = [_compared(name, pairs, prices) for name, pairs in ordered.items() if pairs]
    about = told.about
    unlabelled = int(about.get("unlabelled") or 0)
    if labels is None:
        unlabelled += len({key for each in found.values() for key in each} - known.keys())
    return Comparison(
        name=str(about.get("name") or path.name),
        model=about.get("model"),
        answers=len(known),
        hallucinated=sum(label.hallucinated for label in known.values()),
        groups=len({label.group for label in known.values()}),
        unlabelled=unlabelled,
        unknown=unknown if labels is None else int(about.get("unknown") or 0),
        cost=cost,
        prices=prices,
        detectors=tuple(
            replace(row, on_line=on_line)
            for row, on_line in zip(
                rows, on_pareto_line([row.point(cost) for row in rows]), strict=True
            )
        ),
        left_out={name: why for name, why in told.left_out.items() if name not in ordered},
    )


def _compared(
    name: str, pairs: Sequence[tuple[Label, Evaluation]], prices: Prices | None
) -> Compared:
    scored = [(label, found.score) for label, found in pairs if found.score is not None]
    decided = [(label, found.passed) for label, found in pairs if found.passed is not None]
    spent = sum((found.usage for _, found in pairs), Usage())
    count, tokens = len(pairs), spent.input_tokens + spent.output_tokens
    reported = tokens > 0 or spent.calls == 0
    return Compared(
        name=name,
        answers=count,
        scored=len(scored),
        hallucinated=sum(label.hallucinated for label, _ in scored),
        decided=len(decided),
        undetermined=sum(found.undetermined for _, found in pairs),
        nothing_to_check=sum(found.nothing_to_check for _, found in pairs),
        quality=_quality(scored, decided),
        cost={
            "tokens": tokens / count if reported else None,
            "seconds": spent.seconds / count,
            "calls": spent.calls / count,
            "money": spent.price(*prices) / count if prices and reported else None,
        },
    )


def _quality(
    scored: Sequence[tuple[Label, float]], decided: Sequence[tuple[Label, bool]]
) -> Quality:
    quality = Quality()
    if scored:
        scores = np.array([score for _, score in scored], dtype=np.float64)
        wrong, groups = _columns([label for label, _ in scored])
        figures: dict[str, Figure] = {
            "auroc": partial(auroc, scores, wrong),
            "auprc": partial(average_precision, scores, wrong),
        }
        first = halves(wrong, groups, _SEED)
        by_f1, balanced = (cross_fitted(scores, wrong, first, by_f1=each) for each in (True, False))
        if by_f1 is not None and balanced is not None:
            figures["balanced_accuracy"] = partial(balanced_accuracy, balanced, wrong)
            figures["f1"] = partial(f1, by_f1, wrong)
        quality = _with(quality, figures, groups)
    if decided:
        flagged = np.array([not passed for _, passed in decided], dtype=np.bool_)
        wrong, groups = _columns([label for label, _ in decided])
        own: dict[str, Figure] = {
            "own_balanced_accuracy": partial(balanced_accuracy, flagged, wrong),
            "own_f1": partial(f1, flagged, wrong),
        }
        quality = _with(quality, own, groups)
    return quality


def _with(quality: Quality, figures: Mapping[str, Figure], groups: Sequence[str]) -> Quality:
    found = estimates([*figures.values()], groups, _SEED)
    return replace(quality, **dict(zip(figures, found, strict=True)))


def _columns(labels: Sequence[Label]) -> tuple[Bools, list[str]]:
    wrong = np.array([label.hallucinated for label in labels], dtype=np.bool_)
    return wrong, [label.group for label in labels]
