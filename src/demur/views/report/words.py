"""Write numbers as texts for the page's tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from demur.schema import Share, Threshold
from demur.views import plural

_DIGITS = 3
"""The least number of digits of a threshold."""


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share from 0 to 1 as a percentage, or a dash for None."""
    return "–" if value is None else f"{value:.{digits}%}".replace("%", " %")


def interval(share: Share) -> str:
    """Return the 95 % interval of a share as a text, or a dash if there is none."""
    bounds = share.interval
    return "–" if bounds is None else f"{bounds[0]:.1%} to {bounds[1]:.1%}".replace("%", " %")


def score(value: float) -> str:
    """Return a score in as many digits as are useful to a reader."""
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if value else "0"


def thresholds(values: Sequence[float]) -> Iterator[str]:
    """Yield thresholds in few digits, each of which passes the same answers as the exact threshold.

    If 0.667 stood for two thirds, answers with exactly this score would fail. So thresholds are
    rounded down, but stay above the one before. The last one, which lets no answer pass, is rounded
    up.

    Args:
        values: The thresholds that make a difference, the lowest first.
    """
    before = -math.inf
    for value in values[:-1]:
        yield rounded_down(value, before)
        before = value
    yield _plain(float(Context(_DIGITS, ROUND_CEILING).create_decimal(repr(values[-1]))))


def rounded_down(value: float, above: float = -math.inf, digits: int = _DIGITS) -> str:
    """Return a score rounded down to `digits` digits, or to more if it must stay above `above`."""
    for precision in range(digits, 18):
        shorter = float(Context(precision, ROUND_FLOOR).create_decimal(repr(value)))
        if above < shorter <= value:
            return _plain(shorter)
    return _plain(value)


def _plain(value: float) -> str:
    return repr(value).removesuffix(".0")


def guarantee(threshold: Threshold) -> str:
    """Return what a threshold promises, and how it was chosen."""
    sample = plural(threshold.samples, "answer")
    if threshold.hallucinated is not None:
        sample += f", {threshold.hallucinated:,} of them hallucinated"
    if threshold.method == "learn-then-test":
        return (
            f"With a confidence of {percent(threshold.confidence, 0)}, at most "
            f"{percent(threshold.target)} of hallucinated answers pass a guard with it that has "
            f'on_abstain="{threshold.on_abstain}" and is not open on errors. Learn then Test, from '
            f"{sample}; it holds if later answers are like those."
        )
    if threshold.method == "best-f1":
        return f"The best F1 on {sample}. It guarantees nothing."
    return (
        f"At most {score(threshold.percentile or 0.0)} in a hundred of {sample} fail at it. "
        "It guarantees nothing about hallucinated ones."
    )
