"""Check scores and labels once, before a threshold is chosen or a curve is drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from demur.errors import DemurError
from demur.evaluators import Evaluator
from demur.schema import Evaluation, OnAbstain
from demur.schema.fingerprints import differences_between, flat, told

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Scores: TypeAlias = Sequence[float] | Sequence[Evaluation] | NDArray[Any]
"""One score for each answer, higher is better; or the evaluations that hold the scores."""
Labels: TypeAlias = Sequence[bool] | Sequence[int] | NDArray[Any]
"""One label for each answer: whether it is hallucinated."""

_LONGEST = 60
_MOST_TOLD = 5


class CalibrationError(DemurError, ValueError):
    """Report that no threshold can be chosen, and nothing measured, from the given values."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Hold the scores and labels of answers that were judged."""

    scores: Floats
    """The scores, of shape (answers,). An answer that states nothing to check has no score: it
    counts as inf if a guard lets such answers pass, and as -inf if it fails them. So an answer
    passes a threshold, in every count, if its number here is the threshold or more."""
    hallucinated: Bools | None
    """The labels, of shape (answers,); None without labels."""
    evaluator: str | None = None
    """The name of the evaluator that gave the scores, or None if it is not known."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """The evaluator's fingerprints."""
    drawn: Samples | None = None
    """The same samples with all repeats, if repeats were counted once; else None."""

    @property
    def size(self) -> int:
        """Return the number of answers, at least one."""
        return len(self.scores)

    @property
    def wrong(self) -> Floats:
        """Return the scores of hallucinated answers. There must be labels."""
        assert self.hallucinated is not None
        return self.scores[self.hallucinated]


def read(
    scores: Scores,
    hallucinated: Labels | None,
    evaluator: Evaluator | None = None,
    *,
    labelled: bool = True,
    on_abstain: OnAbstain = "pass",
) -> Samples:
    """Check scores and labels, and return them as samples.

    Args:
        scores: Numbers, or evaluations of one evaluator.
        hallucinated: As many truth values; 0 and 1 are allowed.
        evaluator: The evaluator that gave the scores. Evaluations must agree with it.
        labelled: Whether labels are required. If not, none are read.
        on_abstain: What to do with evaluations that found nothing to check: "pass" or "fail".

    Raises:
        CalibrationError: There are no scores, the numbers of scores and labels differ, a score is
            missing or not finite, a label is not a truth value, or the evaluations are not of one
            evaluator. The message says which.
    """
    if on_abstain not in get_args(OnAbstain):
        raise CalibrationError(f"on_abstain: expected 'pass' or 'fail', got {on_abstain!r}")
    listed = _listed(scores, "scores")
    if not len(listed):
        raise CalibrationError("scores: expected at least one, got none")
    labels = _labels(hallucinated, len(listed)) if labelled else None
    name, fingerprints = (None, {}) if evaluator is None else _identity(evaluator)
    if any(isinstance(score, Evaluation) for score in listed[:1]):
        evaluations = _evaluations(listed)
        if evaluator is not None:
            _same(evaluations[0], name, fingerprints)
        name, fingerprints = evaluations[0].name, evaluations[0].fingerprints
        numbers = _counted(evaluations, on_abstain)
    else:
        numbers = _numbers(listed)
    return Samples(numbers, labels, name, fingerprints)


def passes_up_to(evaluation: Evaluation, on_abstain: OnAbstain = "pass") -> float | None:
    """Return the highest threshold with which a guard lets an answer pass.

    This is the answer's score. If some claims have no label, it is the lowest score that the answer
    can have, as `details["score_bounds"]` says. Up to that threshold the missing labels do not
    matter. Above it the answer is undetermined or fails.

    Returns:
        The threshold. inf or -inf for an answer that states nothing to check, as `on_abstain` says.
        None if no threshold decides: for an answer that is undetermined, or that was decided
        without a score.
    """
    if evaluation.score is not None:
        return evaluation.score
    if evaluation.nothing_to_check:
        return math.inf if on_abstain == "pass" else -math.inf
    match evaluation.details.get("score_bounds"):
        case [float() | int() as lowest, float() | int()] if math.isfinite(lowest):
            return float(lowest)
    return None


def differences(fingerprints: Iterable[Mapping[str, str]]) -> list[str]:
    """Return where the fingerprints of evaluations differ, and how many have which value.

    Returns:
        One line for each difference; empty if there is none.
    """
    kinds: Counter[tuple[tuple[str, str], ...]] = Counter(
        tuple(sorted(fingerprint.items())) for fingerprint in fingerprints
    )
    if len(kinds) < 2:
        return []
    counted = [(dict(kind), number) for kind, number in kinds.items()]
    # Compare flat fingerprints first: their parts may be the same in another order.
    return _told([(flat(kind), number) for kind, number in counted]) or _told(counted)


def _told(counted: Sequence[tuple[Mapping[str, str], int]]) -> list[str]:
    lines = []
    for key in dict.fromkeys(key for kind, _ in counted for key in kind):
        values: Counter[str | None] = Counter()
        for kind, number in counted:
            values[kind.get(key)] += number
        if len(values) > 1:
            ranked = values.most_common(_MOST_TOLD)
            shown = [f"{_shown(value)} ({number:,})" for value, number in ranked]
            rest = len(values) - len(ranked)
            lines.append(f"{key}: {', '.join(shown)}" + (f" and {rest:,} more" if rest else ""))
    return lines


def share(value: float, name: str) -> float:
    """Return a number between 0 and 1, both excluded.

    Raises:
        CalibrationError: The value is not such a number.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise CalibrationError(
            f"{name}: expected a number above 0 and below 1, such as 0.05, got {value!r}"
        )
    return float(value)


def _listed(values: Any, what: str) -> list[Any] | NDArray[Any]:
    """Return the values in the order of the answers, one for each answer."""
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise CalibrationError(f"{what}: expected a list of them, got the shape {values.shape}")
    # A masked array is turned into a list, so that masked values are not read.
    if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
        return values
    # Sets have no order, and mappings that of their keys, so scores and labels would be mixed up.
    if isinstance(values, (Set, Mapping)) or not isinstance(values, Iterable):
        raise CalibrationError(f"{what}: expected a list of them, got {values!r:.100}")
    return list(values)


# --- Numbers --------------------------------------------------------------------------------------


def _numbers(values: Sequence[Any] | NDArray[Any]) -> Floats:
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        numbers = values.astype(np.float64)
    else:
        numbers = np.array([_number(value, at) for at, value in enumerate(values, 1)], np.float64)
    # The largest float is refused too, because no threshold can be above it.
    unusable = np.flatnonzero(~np.isfinite(numbers) | (numbers == np.finfo(np.float64).max))
    if unusable.size:
        first = int(unusable[0])
        raise CalibrationError(
            f"scores: {unusable.size:,} of {len(numbers):,} are missing or not finite, number "
            f"{first + 1:,} first ({values[first]!r}). {_LEAVE_OUT}"
        )
    return numbers + 0.0  # turns -0.0 into 0.0


_LEAVE_OUT = (
    "Leave out undetermined answers, and their labels: they do not pass a guard that is closed on "
    "errors, so no threshold is about them. For answers that state nothing to check, give the "
    "evaluations instead of numbers: they count, since a guard lets them pass"
)


def _number(value: Any, at: int) -> float:
    if value is None:
        return math.nan
    # Python counts truth values as numbers, but here they are labels in the wrong place.
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise CalibrationError(
            f"scores: expected numbers, or evaluations only; number {at:,} is {value!r:.100}"
        )
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _labels(values: Labels | None, expected: int) -> Bools:
    listed = _listed(values, "hallucinated")
    if len(listed) != expected:
        raise CalibrationError(
            f"expected one label for each score, got {expected:,} scores and {len(listed):,} labels"
        )
    if isinstance(listed, np.ndarray) and listed.dtype == np.bool_:
        return listed.copy()
    for at, value in enumerate(listed, start=1):
        if not isinstance(value, (bool, np.bool_, int, np.integer)) or value not in (0, 1):
            raise CalibrationError(
                f"hallucinated: expected True or False for each answer, number {at:,} is "
                f"{value!r:.100}: label it, or leave the answer out"
            )
    return np.array(listed, dtype=np.bool_)


# --- Evaluations ----------------------------------------------------------------------------------


def _evaluations(values: Sequence[Any] | NDArray[Any]) -> list[Evaluation]:
    evaluations = [value for value in values if isinstance(value, Evaluation)]
    if len(evaluations) != len(values):
        at, odd = next(
            (at, value) for at, value in enumerate(values, 1) if not isinstance(value, Evaluation)
        )
        raise CalibrationError(
            f"scores: expected evaluations only, or numbers only; number {at:,} is {odd!r:.100}"
        )
    names = Counter(evaluation.name for evaluation in evaluations)
    if len(names) > 1:
        counts = ", ".join(f"{name!r} ({number:,})" for name, number in names.most_common())
        raise CalibrationError(
            f"the evaluations are of several evaluators: {counts}. A threshold is about the scores "
            "of one evaluator: choose a threshold for each"
        )
    first = evaluations[0].fingerprints
    if any(evaluation.fingerprints != first for evaluation in evaluations):
        differing = "; ".join(differences(evaluation.fingerprints for evaluation in evaluations))
        raise CalibrationError(
            f"the evaluations have different fingerprints: {differing}. Their scores cannot be "
            "compared: choose a threshold from those of one kind"
        )
    return evaluations


def _counted(evaluations: Sequence[Evaluation], on_abstain: OnAbstain) -> Floats:
    numbers = [passes_up_to(evaluation, on_abstain) for evaluation in evaluations]
    missing = [at for at, number in enumerate(numbers) if number is None]
    for at in missing:
        if evaluations[at].passed:
            raise CalibrationError(
                f"number {at + 1:,} of the evaluations passed without a score, so no threshold "
                "decides what passes, and none can be chosen: take an evaluator that passes "
                "answers by their scores"
            )
    if missing:
        first = evaluations[missing[0]]
        why = f"undetermined: {first.error}" if first.undetermined else f"label {first.label!r}"
        raise CalibrationError(
            f"{len(missing):,} of {len(evaluations):,} evaluations have no score, number "
            f"{missing[0] + 1:,} first ({why:.200}). {_LEAVE_OUT}"
        )
    scored = np.array(numbers, np.float64)
    _numbers(scored[np.isfinite(scored)])
    return scored + 0.0


def _identity(evaluator: Evaluator) -> tuple[str, dict[str, str]]:
    if not isinstance(evaluator, Evaluator):
        raise CalibrationError(f"evaluator: expected a demur Evaluator, got {evaluator!r:.100}")
    name, fingerprints = evaluator.get_name(), evaluator.fingerprints
    if not fingerprints:
        raise CalibrationError(
            f"{name} does not tell what its scores depend on, so that no threshold can be bound to "
            "it: define its property `fingerprints`"
        )
    return name, fingerprints


def _same(evaluation: Evaluation, name: str | None, fingerprints: Mapping[str, str]) -> None:
    differing = [] if evaluation.name == name else [f"the name: {evaluation.name!r} and {name!r}"]
    if found := differences_between(evaluation.fingerprints, fingerprints):
        differing.append(told(found, "{what} ({here} and {there})"))
    if differing:
        raise CalibrationError(
            f"the evaluations are not of this evaluator, they differ in {'; '.join(differing)}. "
            "Score the answers with this evaluator, or give the one that made the evaluations"
        )


def _shown(value: str | None) -> str:
    if value is None:
        return "none"
    return repr(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…")
