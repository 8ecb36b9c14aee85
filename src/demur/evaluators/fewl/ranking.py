"""What scores say when they are compared: answers ranked, models ranked, pairs decided.

Any score will do of which more is better, FEWL's or a baseline's. A score that is None is
undetermined; it is left out where it would be compared, and counted, never replaced. Intervals are
percentile bootstrap intervals of 95 %, resampled by question.

For multiple choice (version 1, Table 4) score the text of the chosen option, not its letter: the
references answer in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from demur.evaluators.fewl.formula import Floats, expertise

Scores = Sequence[float | None]
Interval = tuple[float, float]

_RESAMPLES = 2000


@dataclass(frozen=True)
class Preference:
    """How often one answer of a pair is scored higher than the other."""

    wins: int
    """Pairs in which the answer that should win is scored higher."""
    ties: int
    """Pairs scored alike; no wins ("scored higher": version 1, Table 1)."""
    losses: int
    missing: int
    """Pairs left out, since a score of theirs is undetermined."""
    rate: float | None
    """Wins over wins, ties and losses, in [0, 1]; None when there are none of them."""
    interval: Interval | None
    """Of the rate; a point where all pairs go one way."""


def preference(better: Scores, worse: Scores, seed: int = 0) -> Preference:
    """How often better answers are scored higher than worse ones (version 1, Tables 1 and 2).

    Args:
        better: One score per question, of the answer that should win.
        worse: One score per question, of the answer that should lose.
        seed: Of the bootstrap.

    Raises:
        ValueError: The two are not equally many, or a score is not a finite number.
    """
    columns = {"better": _column(better, "better"), "worse": _column(worse, "worse")}
    _same_length(columns)
    return _preference(columns["better"], columns["worse"], seed)


def best_of(best: Scores, others: Sequence[Scores], seed: int = 0) -> Preference:
    """How often the best answer is scored above all others (version 1, Table 3).

    Args:
        best: One score per question, of its best answer.
        others: Per question the scores of all its other answers, at least one. One that is
            undetermined makes the question count as missing.
        seed: Of the bootstrap.

    Raises:
        ValueError: The two are not equally many, a question has no other answer, or a score is
            not a finite number.
    """
    rivals = [_column(scores, f"others[{place}]") for place, scores in enumerate(others)]
    for place, column in enumerate(rivals):
        if not column.size:
            raise ValueError(
                f"others[{place}]: expected the score of at least one other answer, got none: "
                "leave the question out"
            )
    highest = np.array([column.max() for column in rivals], dtype=np.float64)  # NaN if any is
    columns = {"best": _column(best, "best"), "others": highest}
    _same_length(columns)
    return _preference(columns["best"], highest, seed)


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
        "first": _column(first, "first"),
        "second": _column(second, "second"),
        "truth_first": _column(truth_first, "truth_first"),
        "truth_second": _column(truth_second, "truth_second"),
    }
    _same_length(columns)
    a, b, true_a, true_b = columns.values()
    better, worse = np.where(true_a > true_b, (a, b), (b, a))
    better[np.isnan(true_a) | np.isnan(true_b)] = np.nan  # missing, which is not undecided
    decided = true_a != true_b
    return PairwiseAgreement(
        preference=_preference(better[decided], worse[decided], seed),
        undecided=int(np.sum(~decided)),
    )


@dataclass(frozen=True)
class RankedAnswer:
    """An answer's place among the answers to its question."""

    answer: str
    score: float | None
    """None: undetermined, and then there is no rank."""
    rank: int | None
    """1 for the highest score; equal scores share a rank, and the next one is skipped."""


def rank_answers(scores: Mapping[str, float | None]) -> tuple[RankedAnswer, ...]:
    """Rank the answers to one question, highest first, the undetermined ones last.

    Args:
        scores: One per answer; more is better.

    Raises:
        ValueError: A score is not a finite number.
    """
    column = _column(list(scores.values()), "scores")
    ranks = [None if np.isnan(own) else 1 + int(np.sum(column > own)) for own in column]
    found = [
        RankedAnswer(answer, score, rank)
        for (answer, score), rank in zip(scores.items(), ranks, strict=True)
    ]
    return tuple(sorted(found, key=lambda ranked: ranked.rank or len(found) + 1))


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
    columns = {model: _column(found, f"scores[{model!r}]") for model, found in scores.items()}
    _same_length(columns)
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
    resampled = _resampled_means(table, seed)
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
            tau_interval = _percentiles(np.array(known))
    models = [
        RankedModel(
            model=model,
            rank=1 + int(np.sum(means > means[i])),
            mean=float(means[i]),
            interval=_percentiles(resampled[:, i]),
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


def _preference(better: Floats, worse: Floats, seed: int) -> Preference:
    """As `preference`, of columns of one length with NaN for what is missing."""
    known = ~(np.isnan(better) | np.isnan(worse))
    pairs, interval = int(known.sum()), None
    wins, ties = int(np.sum(better > worse)), int(np.sum(better == worse))  # NaN is neither
    if pairs:
        # Wins in n pairs drawn with replacement are binomial: no need to draw the pairs.
        drawn = np.random.default_rng(seed).binomial(pairs, wins / pairs, size=_RESAMPLES)
        interval = _percentiles(drawn / pairs)
    return Preference(
        wins=wins,
        ties=ties,
        losses=pairs - wins - ties,
        missing=len(better) - pairs,
        rate=wins / pairs if pairs else None,
        interval=interval,
    )


def _resampled_means(table: Floats, seed: int) -> Floats:
    """Row means over questions drawn with replacement, of shape (resamples, rows)."""
    generator, questions = np.random.default_rng(seed), table.shape[1]
    drawn = np.empty((_RESAMPLES, len(table)))
    for row in drawn:
        picked = generator.integers(questions, size=questions)
        row[:] = table @ np.bincount(picked, minlength=questions) / questions
    return drawn


def _percentiles(resampled: Floats) -> Interval:
    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(low), float(high)


def _column(scores: Scores, name: str) -> Floats:
    """As numbers, with NaN for None; a NaN that was given is refused, being no score."""
    try:
        column = np.array([np.nan if score is None else score for score in scores], np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers, or None for no score: {error}") from error
    for place in np.flatnonzero(~np.isfinite(column)).tolist():
        if scores[place] is not None:
            raise ValueError(
                f"{name}[{place}]: expected a finite number, or None for no score, "
                f"got {scores[place]}"
            )
    return column


def _same_length(columns: Mapping[str, Floats]) -> None:
    if len({len(column) for column in columns.values()}) > 1:
        counts = ", ".join(f"{name}: {len(column)}" for name, column in columns.items())
        raise ValueError(f"expected as many scores of each, one per question, got {counts}")
