"""Numbers in words, as the page's tables and sentences have them."""

from __future__ import annotations

from demur.schema import Threshold
from demur.share import Share


def percent(value: float | None, digits: int = 1) -> str:
    """A share of one, in percent."""
    return "–" if value is None else f"{value:.{digits}%}".replace("%", " %")


def interval(share: Share) -> str:
    """The interval of 95 % around a share."""
    found = share.interval
    return "–" if found is None else f"{found[0]:.1%} to {found[1]:.1%}".replace("%", " %")


def score(value: float) -> str:
    """A score, in as many digits as one reads."""
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if value else "0"


def plural(number: int, one: str, many: str | None = None) -> str:
    """So many of something."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def guarantee(found: Threshold) -> str:
    """What a threshold promises, and how it came about."""
    sample = plural(found.samples, "answer")
    if found.hallucinated is not None:
        sample += f", {found.hallucinated:,} of them hallucinated"
    if found.method == "learn-then-test":
        return (
            f"With a confidence of {percent(found.confidence, 0)}, at most "
            f"{percent(found.target)} of hallucinated answers pass it. Learn then Test, from "
            f"{sample}; it holds for answers that come as those came."
        )
    if found.method == "best-f1":
        return f"The best F1 on {sample}. It guarantees nothing."
    return (
        f"At most {score(found.percentile or 0.0)} of a hundred of {sample} fail at it. "
        "It guarantees nothing of hallucinated ones."
    )
