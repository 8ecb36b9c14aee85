"""What FEWL's papers read off scores: models ranked, two models compared.

Any score will do of which more is better, as for `demur.evaluators.preference`. A score that is
None is undetermined; it is left out where it would be compared, and counted, never replaced.
Intervals are percentile bootstrap intervals of 95 %, resampled by question.

For multiple choice (version 1, Table 4) score the text of the chosen option, not its letter: the
references answer in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from demur.evaluators.fewl.formula import expertise
from demur.evaluators.fewl.preference import (
    Interval,
    Preference,
    Scores,
    as_column,
    compared,
    percentiles,
    same_length,
)
from demur_research.resampling import drawn_alone, mean


def tqa_metric(correct: Sequence[float], incorrect: Sequence[float]) -> float:
    """How true an answer is by labelled answers (version 1, section 4.3, sample-level ranking).

    Args:
        correct: Its similarities to the correct answers, in [0, 1], at least one.
        incorrect: Its similarities to the incorrect answers, in [0, 1], at least one.

    Returns:
        The highest of the first less the highest of the second, in [-1, 1].
    """
    return float(expertise([correct], [incorrect])[0])


@dataclass(frozen=True)
class PairwiseAgreement:
    """How often a metric decides between two models' answers as the truth does."""

    preference: Preference
    """A win: the metric scores the truer answer higher."""
    undecided: int
    """Questions left out, since the truth holds both answers equally true."""


def pairwise_agreement(
    first: Scores, second: Scores, truth_first: Scores, truth_second: Scores, seed: int = 0
) -> PairwiseAgreement:
    """Compare two models question by question (version 1, Table 5; version 2, Table 4).

    Args:
        first: The metric's scores of the first model's answers, one per question.
        second: Those of the second model's answers.
        truth_first: How true the first model's answers are, see `tqa_metric`.
        truth_second: How true the second model's answers are.
        seed: Of the bootstrap.

    Raises:
        ValueError: They are not equally many, or a score is not a finite number.
    """
    columns = {
        "first": as_column(first, "first"),
        "second": as_column(second, "second"),
        "truth_first": as_column(truth_first, "truth_first"),
        "truth_second": as_column(truth_second, "truth_second"),
    }
    same_length(columns)
    a, b, true_a, true_b = columns.values()
    better, worse = np.where(true_a > true_b, (a, b), (b, a))
    better[np.isnan(true_a) | np.isnan(true_b)] = np.nan  # missing, which is not undecided
    decided = true_a != true_b
    return PairwiseAgreement(
        preference=compared(better[decided], worse[decided], seed),
        undecided=int(np.sum(~decided)),
    )


@dataclass(frozen=True)
class RankedModel:
    """A model's place by its mean score over a data set."""

    model: str
    rank: int
    """1 for the highest mean; equal means share a rank, and the next one is skipped."""
    mean: float
    interval: Interval
    """Of the mean."""
    missing: int
    """Questions for which this model's score is undetermined."""


@dataclass(frozen=True)
class ModelRanking:
    """Models ranked over a data set, highest first."""

    models: tuple[RankedModel, ...]
    questions: int
    """Questions that the means are over: those for which every model has a score."""
    left_out: int
    """Questions for which at least one model has none."""
    tau: float | None
    """Kendall's tau-b to the given truth, in [-1, 1]; None without a truth, or undefined."""
    tau_interval: Interval | None
    """None where tau is None, or undefined in a resample."""


def rank_models(
    scores: Mapping[str, Scores], truth: Mapping[str, float] | None = None, seed: int = 0
) -> ModelRanking:
    """Rank models by their mean score (version 1, Table 4; version 2, Table 3).

    The means are over the same questions for all models, lest one be ranked by easier ones.

    Args:
        scores: Per model the scores of its answers, one per question, in the same order.
        truth: Per model how true its answers are, such as its accuracy; more is better.
        seed: Of the bootstrap.

    Raises:
        ValueError: The models are not scored on equally many questions, there is no question for
            which all have a score, the truth names other models, or a number is not finite.
    """
    if not scores:
        raise ValueError("scores: expected at least one model's scores, got none")
    columns = {model: as_column(found, f"scores[{model!r}]") for model, found in scores.items()}
    same_length(columns)
    table = np.stack(list(columns.values()))
    complete = ~np.isnan(table).any(axis=0)
    missing = np.isnan(table).sum(axis=1)
    if not complete.any():
        counts = ", ".join(f"{m}: {n} missing" for m, n in zip(scores, missing, strict=True))
        raise ValueError(
            f"scores: expected a question for which every model has a score, got none of "
            f"{table.shape[1]} ({counts}): rank fewer models, or score more questions"
        )
    table = table[:, complete]
    means = table.mean(axis=1)
    resampled = mean(table.T, drawn_alone(table.shape[1], seed))
    tau, tau_interval = None, None
    if truth is not None:
        if truth.keys() != scores.keys():
            raise ValueError(
                f"truth: expected the models {', '.join(scores)}, got {', '.join(truth)}"
            )
        true = [truth[model] for model in scores]
        tau = kendall_tau(means, true)
        taus = [kendall_tau(drawn, true) for drawn in resampled]
        known = [value for value in taus if value is not None]
        if len(known) == len(taus):
            tau_interval = percentiles(np.array(known))
    models = [
        RankedModel(
            model=model,
            rank=1 + int(np.sum(means > means[i])),
            mean=float(means[i]),
            interval=percentiles(resampled[:, i]),
            missing=int(missing[i]),
        )
        for i, model in enumerate(scores)
    ]
    return ModelRanking(
        models=tuple(sorted(models, key=lambda ranked: ranked.rank)),
        questions=table.shape[1],
        left_out=int(np.sum(~complete)),
        tau=tau,
        tau_interval=tau_interval,
    )


def kendall_tau(first: ArrayLike, second: ArrayLike) -> float | None:
    """Kendall's tau-b, which allows for ties.

    Args:
        first: One finite number per item.
        second: One finite number per item, in the same order.

    Returns:
        A number in [-1, 1]; None when it is undefined, all items being equal in one of the two.

    Raises:
        ValueError: They are not equally many, or a number is not finite.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or not np.isfinite([a, b]).all():
        raise ValueError(
            f"expected two lists of as many finite numbers, got the shapes {a.shape} and {b.shape}"
        )
    signs_a, signs_b = np.sign(np.subtract.outer(a, a)), np.sign(np.subtract.outer(b, b))
    untied = np.sum(signs_a != 0) * np.sum(signs_b != 0)
    return float(np.sum(signs_a * signs_b) / np.sqrt(untied)) if untied else None
