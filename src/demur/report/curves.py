"""How well scores tell hallucinated answers from others, drawn."""

from __future__ import annotations

import math
from typing import Any

from demur.calibration import Reliability, Roc
from demur.report.drawing import (
    MOST_ON_A_LINE,
    MOST_ROWS,
    POINT,
    QUIET,
    Chart,
    figure,
    layout,
    thinned,
)
from demur.report.words import interval, percent, score

_SHARE = {"range": [-0.02, 1.02], "tickformat": ".0%", "dtick": 0.25}
_FEW_POINTS = 20
"""So many are marked on their line."""


def roc_curve(roc: Roc) -> Chart:
    """How well low scores find hallucinated answers."""
    at = thinned(len(roc.thresholds), MOST_ON_A_LINE)
    across, up = (
        [float(rates[place]) for place in at]
        for rates in (roc.false_positive_rate, roc.true_positive_rate)
    )
    values = [float(roc.thresholds[place]) for place in at]
    names = [score(value) if math.isfinite(value) else "none" for value in values]
    traces: list[dict[str, Any]] = [
        _diagonal(),
        {
            "type": "scatter",
            "mode": "lines" if len(at) > _FEW_POINTS else "lines+markers",
            "x": across,
            "y": up,
            "customdata": names,
            "line": {"color": POINT, "width": 2},
            "hovertemplate": "threshold %{customdata}: %{y:.1%} of the hallucinated, "
            "%{x:.1%} of the others<extra></extra>",
        },
    ]
    look = layout("others held back", "hallucinated held back", showlegend=False)
    for axis in ("xaxis", "yaxis"):
        look[axis] |= _SHARE
    caption = (
        "Each threshold holds back some of the hallucinated answers, and some of the others with "
        f"them. The area under the curve is {roc.auc:.2f}: so often does a hallucinated answer "
        "score lower than another one. 0.5, the dotted line, would be chance."
    )
    if "none" in names:
        caption += (
            " No threshold decides about answers that state nothing to check: they are one end."
        )
    rows = [
        (names[place], percent(up[place]), percent(across[place]))
        for place in thinned(len(at), MOST_ROWS)
    ]
    heads = ("threshold", "hallucinated held back", "others held back")
    return Chart("roc", "ROC curve", caption, heads, rows, figure(traces, look))


def reliability_curve(reliability: Reliability) -> Chart:
    """Whether a score can be read as the probability that an answer is not hallucinated."""
    shares = [bin_.right for bin_ in reliability.bins]
    right, means = (
        [share.count / share.total for share in shares],
        [bin_.mean for bin_ in reliability.bins],
    )
    intervals = [share.interval or (0.0, 1.0) for share in shares]
    points = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": means,
        "y": right,
        "customdata": [f"{share.count:,} of {share.total:,}" for share in shares],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [high - at for at, (_, high) in zip(right, intervals, strict=True)],
            "arrayminus": [at - low for at, (low, _) in zip(right, intervals, strict=True)],
            "color": POINT,
            "thickness": 1,
            "width": 3,
        },
        "line": {"color": POINT, "width": 2},
        "marker": {"size": 8},
        "hovertemplate": "score %{x:.3f}: %{y:.1%} not hallucinated, %{customdata}<extra></extra>",
    }
    look = layout("mean score", "not hallucinated", showlegend=False)
    look["yaxis"] |= _SHARE
    traces = [points]
    caption = "Of the answers with about this score, so many are not hallucinated (bars: 95 %)."
    if reliability.binning == "equal-width":
        traces.insert(0, _diagonal())
        look["xaxis"]["range"] = [-0.02, 1.02]
        caption += " On the dotted line, a score could be read as that probability."
    rows = [
        (
            f"{score(bin_.low)} to {score(bin_.high)}",
            score(bin_.mean),
            f"{bin_.right.total:,}",
            percent(bin_.right.value),
            interval(bin_.right),
        )
        for bin_ in reliability.bins
    ]
    heads = ("scores", "mean score", "answers", "not hallucinated", "95 % interval")
    return Chart("reliability", "Reliability", caption, heads, rows, figure(traces, look))


def _diagonal() -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [0, 1],
        "y": [0, 1],
        "line": {"color": QUIET, "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
    }
