"""Compute what FEWL's papers read from scores: rankings of models, and comparisons of two models.

Any score works for which higher is better, as in `preference` of `demur.scoring`. A score of None
is undetermined. It is left out of comparisons and counted; no number takes its place. Intervals are
percentile bootstrap intervals of 95 %, resampled by question.

For multiple choice (version 1, Table 4), score the text of the chosen option and not its letter,
because the references answer in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from demur.evaluators.fewl.formula import expertise
from demur.scoring import (
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
    """Return how true an answer is by labelled answers (version 1, section 4.3).

    The paper uses this metric for the ranking of samples.

    Args:
        correct: Similarities of the answer to the correct answers, in [0, 1], at least one.
        incorrect: Similarities of the answer to the incorrect answers, in [0, 1], at least one.

    Returns:
        The highest of the first less the highest of the second, in [-1, 1].
    """
    return float(expertise([correct], [incorrect])[0])


@dataclass(frozen=True)
class PairwiseAgreement:
    """Describe how often a metric decides between two models' answers as the truth does."""

    preference: Preference
    """The comparisons. A win: the metric scores the truer answer higher."""
    undecided: int
    """The number of questions that are left out because the truth rates both answers equally
    true."""


def pairwise_agreement(
    first: Scores, second: Scores, truth_first: Scores, truth_second: Scores, seed: int = 0
) -> PairwiseAgreement:
    """Compare two models question by question (version 1, Table 5; version 2, Table 4).

    Args:
        first: The metric's scores of the first model's answers, one per question.
        second: The metric's scores of the second model's answers.
        truth_first: How true the first model's answers are (see `tqa_metric`).
        truth_second: How true the second model's answers are.
        seed: The seed of the bootstrap.

    Raises:
        ValueError: The sequences differ in length, or a score is not a finite number.
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
    # A question without a truth counts as missing and not as undecided.
    better[np.isnan(true_a) | np.isnan(true_b)] = np.nan
    decided = true_a != true_b
    return PairwiseAgreement(
        preference=compared(better[decided], worse[decided], seed),
        undecided=int(np.sum(~decided)),
    )


@dataclass(frozen=True)
class RankedModel:
    """Describe a model's place in a ranking by the mean score over a data set."""

    model: str
    rank: int
    """The rank, 1 for the highest mean. Equal means share a rank, and the next rank is skipped."""
    mean: float
    interval: Interval
    """The interval of the mean."""
    missing: int
    """The number of questions for which this model's score is undetermined."""


@dataclass(frozen=True)
class ModelRanking:
    """Describe a ranking of models over a data set, highest first."""

    models: tuple[RankedModel, ...]
    questions: int
    """The number of questions that the means are over: those for which every model has a score."""
    left_out: int
    """The number of questions for which at least one model has no score."""
    tau: float | None
    """Kendall's tau-b to the given truth, in [-1, 1]; None if no truth is given or tau is
    undefined."""
    tau_interval: Interval | None
    """The interval of tau; None where tau is None, or is undefined in a resample."""


def rank_models(
    scores: Mapping[str, Scores], truth: Mapping[str, float] | None = None, seed: int = 0
) -> ModelRanking:
    """Rank models by their mean score (version 1, Table 4; version 2, Table 3).

    The means of all models are over the same questions, so that no model gains by easier questions.

    Args:
        scores: The scores of each model's answers, one per question, in the same order of
            questions.
        truth: How true each model's answers are, such as its accuracy; higher is better.
        seed: The seed of the bootstrap.

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
    """Return Kendall's tau-b of two lists of numbers, which allows for ties.

    Args:
        first: One finite number per item.
        second: One finite number per item, in the same order.

    Returns:
        A number in [-1, 1]; None when tau is undefined because all items are equal in one of the
        lists.

    Raises:
        ValueError: The lists differ in length, or a number is not finite.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or not np.isfinite([a, b]).all():
        raise ValueError(
            "expected two lists of finite numbers that are equally long, got the shapes "
            f"{a.shape} and {b.shape}"
        )
    signs_a, signs_b = np.sign(np.subtract.outer(a, a)), np.sign(np.subtract.outer(b, b))
    untied = np.sum(signs_a != 0) * np.sum(signs_b != 0)
    return float(np.sum(signs_a * signs_b) / np.sqrt(untied)) if untied else None
