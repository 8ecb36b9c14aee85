"""Accept thresholds of evaluators: a number, or a `Threshold` that was chosen from their scores.

A `Threshold` can also be given as the file that it was saved in.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, overload

from pydantic import BeforeValidator, Discriminator, Field, Tag

from demur.errors import DemurError
from demur.schema import Threshold
from demur.schema.fingerprints import Difference, differences_between, told

if TYPE_CHECKING:
    from demur.evaluators.base import Evaluator


def _loaded(value: object) -> object:
    """Return the threshold in a file if a file is named, else the value unchanged."""
    if not isinstance(value, (str, Path)) or _is_number(value):
        return value
    try:
        return Threshold.load(value)
    except DemurError as error:
        raise DemurError(
            f"threshold: {error}. Give a number, a Threshold, or the file that one was saved in"
        ) from error


def _is_number(value: str | Path) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _kind(value: object) -> str:
    return "threshold" if isinstance(value, Threshold) else "number"


# Told apart by kind, so that an error is about the given kind and not about every kind.
_Chosen: TypeAlias = Annotated[Threshold, Tag("threshold")]
AnyThreshold: TypeAlias = Annotated[
    Annotated[float, Field(allow_inf_nan=False), Tag("number")] | _Chosen,
    Discriminator(_kind),
    BeforeValidator(_loaded),
]
"""A threshold for scores without bounds."""
ShareThreshold: TypeAlias = Annotated[
    Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), Tag("number")] | _Chosen,
    Discriminator(_kind),
    BeforeValidator(_loaded),
]
"""A threshold for scores in [0, 1]."""
ThresholdOrFile: TypeAlias = float | Threshold | str | Path
"""The types that a constructor accepts as a threshold."""


@overload
def number(threshold: float | Threshold) -> float: ...
@overload
def number(threshold: float | Threshold | None) -> float | None: ...
def number(threshold: float | Threshold | None) -> float | None:
    """Return the number that scores are compared with, or None if nothing is decided."""
    return threshold.value if isinstance(threshold, Threshold) else threshold


def refuse_foreign(threshold: float | Threshold | None, evaluator: Evaluator) -> None:
    """Refuse a `Threshold` that was chosen from scores of another kind; accept any number.

    Args:
        threshold: The threshold that the evaluator was given.
        evaluator: The evaluator. Its `fingerprints` must be complete at this point.

    Raises:
        ValueError: The threshold is bound to other fingerprints or to none, or the evaluator has no
            fingerprints.
    """
    if not isinstance(threshold, Threshold):
        return
    name, fingerprints = evaluator.get_name(), evaluator.fingerprints
    plain = f"pass its number, threshold={threshold.value!r}, which guarantees nothing"
    if not fingerprints:
        raise ValueError(
            f"threshold: a Threshold cannot be checked for {name}, which does not say what its "
            f"scores depend on: define its property `fingerprints`, or {plain}"
        )
    if not threshold.fingerprints:
        raise ValueError(
            "this threshold is bound to no evaluator, so it cannot be checked for the scores of "
            f"{name}: choose it with calibrate(..., evaluator=...), or {plain}"
        )
    differing = differences_between(fingerprints, threshold.fingerprints)
    if differing:
        what = told(differing, "{what} is {here} here and was {there}")
        raise ValueError(
            f"this threshold was chosen from other scores than those of {name}: {what}. Choose one "
            f"from scores of this evaluator, or {plain}{_of_hosts(differing)}"
        )


def _of_hosts(differing: Sequence[Difference]) -> str:
    """Return the advice for the case that only another host serves the model."""
    for one in differing:
        if one.is_host:
            hosts = {one.there: one.here}
            return f". If both hosts serve the same model, say so: threshold.with_hosts({hosts})"
    return ""
