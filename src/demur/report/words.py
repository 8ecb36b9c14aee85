"""Numbers in words, as the page's tables and sentences have them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from demur._share import Share
from demur.schema import Threshold

_DIGITS = 3
"""Of a threshold, at least."""


def percent(value: float | None, digits: int = 1) -> str:
    """A share of one, in percent."""
    return "–" if value is None else f"{value:.{digits}%}".replace("%", " %")


def interval(share: Share) -> str:
    """The interval of 95 % around a share."""
    bounds = share.interval
    return "–" if bounds is None else f"{bounds[0]:.1%} to {bounds[1]:.1%}".replace("%", " %")


def score(value: float) -> str:
    """A score, in as many digits as one reads."""
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if value else "0"


def thresholds(values: Sequence[float]) -> Iterator[str]:
    """Thresholds in few digits, each of which lets the same answers pass as the threshold itself.

    Who copies 0.667 for two thirds would fail the answers that have just this score: so they are
    rounded down, not below the one before. The last one, which lets none pass, is rounded up.

    Args:
        values: The thresholds that make a difference, the lowest first.
    """
    before = -math.inf
    for value in values[:-1]:
        yield rounded_down(value, before)
        before = value
    yield _plain(float(Context(_DIGITS, ROUND_CEILING).create_decimal(repr(values[-1]))))


def rounded_down(value: float, above: float = -math.inf, digits: int = _DIGITS) -> str:
    """A score in so many digits, or as many as it takes for it to be above another one."""
    for precision in range(digits, 18):
        shorter = float(Context(precision, ROUND_FLOOR).create_decimal(repr(value)))
        if above < shorter <= value:
            return _plain(shorter)
    return _plain(value)


def _plain(value: float) -> str:
    return repr(value).removesuffix(".0")


def plural(number: int, singular: str, many: str | None = None) -> str:
    """So many of something."""
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"


def guarantee(threshold: Threshold) -> str:
    """What a threshold promises, and how it came about."""
    sample = plural(threshold.samples, "answer")
    if threshold.hallucinated is not None:
        sample += f", {threshold.hallucinated:,} of them hallucinated"
    if threshold.method == "learn-then-test":
        return (
            f"With a confidence of {percent(threshold.confidence, 0)}, at most "
            f"{percent(threshold.target)} of hallucinated answers pass a guard with it that has "
            f'on_abstain="{threshold.on_abstain}" and is not open on errors. Learn then Test, from '
            f"{sample}; it holds for answers that come as those came."
        )
    if threshold.method == "best-f1":
        return f"The best F1 on {sample}. It guarantees nothing."
    return (
        f"At most {score(threshold.percentile or 0.0)} of a hundred of {sample} fail at it. "
        "It guarantees nothing of hallucinated ones."
    )
