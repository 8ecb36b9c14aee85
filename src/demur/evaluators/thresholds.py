"""What an evaluator takes as its threshold: a number, or a `Threshold` chosen from its scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias, overload

from pydantic import Discriminator, Field, Tag

from demur.schema import Threshold

if TYPE_CHECKING:
    from demur.evaluators.base import Evaluator


def _kind(value: object) -> str:
    return "threshold" if isinstance(value, Threshold) else "number"


# By kind, so that an error is about what was given, and not about all that could have been.
_Chosen: TypeAlias = Annotated[Threshold, Tag("threshold")]
AnyThreshold: TypeAlias = Annotated[
    Annotated[float, Field(allow_inf_nan=False), Tag("number")] | _Chosen, Discriminator(_kind)
]
"""Of scores without bounds."""
ShareThreshold: TypeAlias = Annotated[
    Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), Tag("number")] | _Chosen,
    Discriminator(_kind),
]
"""Of scores in [0, 1]."""

_LONGEST = 100


@overload
def number(threshold: float | Threshold) -> float: ...
@overload
def number(threshold: float | Threshold | None) -> float | None: ...
def number(threshold: float | Threshold | None) -> float | None:
    """The number that scores are compared with; None where nothing is decided."""
    return threshold.value if isinstance(threshold, Threshold) else threshold


def refuse_foreign(threshold: float | Threshold | None, evaluator: Evaluator) -> None:
    """Refuse a `Threshold` that was chosen from scores of another kind; a number is taken.

    Args:
        threshold: What the evaluator was given.
        evaluator: Who was given it, with all that its `fingerprints` tell of at hand.

    Raises:
        ValueError: The threshold is bound to other fingerprints, or to none, or the evaluator tells
            none.
    """
    if not isinstance(threshold, Threshold):
        return
    name, fingerprints = evaluator.get_name(), evaluator.fingerprints
    plain = f"pass its number, threshold={threshold.value!r}, and do without what it guarantees"
    if not fingerprints:
        raise ValueError(
            f"{name} does not tell what its scores depend on, so that it cannot be known whether "
            f"this threshold is one for them: define its property `fingerprints`, or {plain}"
        )
    if not threshold.fingerprints:
        raise ValueError(
            "this threshold is bound to no evaluator, so that it cannot be known whether it is one "
            f"for the scores of {name}: choose it with calibrate(..., evaluator=...), or {plain}"
        )
    differing = [
        f"{key} is {_short(fingerprints.get(key), threshold.fingerprints.get(key))} here and was "
        f"{_short(threshold.fingerprints.get(key), fingerprints.get(key))}"
        for key in sorted({*fingerprints, *threshold.fingerprints})
        if fingerprints.get(key) != threshold.fingerprints.get(key)
    ]
    if differing:
        raise ValueError(
            f"this threshold was chosen from other scores than those of {name}: "
            f"{'; '.join(differing)}. Choose one from scores of this evaluator, or {plain}"
        )


def _short(text: str | None, compared: str | None) -> str:
    """A fingerprint in a message: of one with many parts, those that differ."""
    if text is None:
        return "none"
    parts, others = text.split(", "), (compared or "").split(", ")
    differing = ", ".join(part for part in parts if part not in others) or text
    return repr(differing if len(differing) <= _LONGEST else f"{differing[: _LONGEST - 1]}…")
