"""Draw how well scores tell hallucinated answers from others."""

from __future__ import annotations

import math
from typing import Any

from demur.calibration import Reliability, Roc
from demur.views.report.drawing import (
    MOST_ON_A_LINE,
    MOST_ROWS,
    POINT,
    QUIET,
    SAID,
    Chart,
    drawable,
    layer,
    picture,
    thinned,
)
from demur.views.report.words import interval, percent, score

_FEW_POINTS = 20
"""The most points that are marked on a line."""
_LINE = {"stroke": POINT, "strokeWidth": 2}
_MARK = {"fill": POINT, "strokeWidth": 0, "size": 60, "opacity": 1}
_SHARES = {
    "scale": {"domain": [-0.02, 1.02], "nice": False},
    "axis": {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]},
}


def roc_curve(roc: Roc) -> Chart:
    """Draw how well low scores find hallucinated answers."""
    points = list[dict[str, Any]]()
    for at in thinned(len(roc.thresholds), MOST_ON_A_LINE):
        value = float(roc.thresholds[at])
        name = score(value) if math.isfinite(value) else "none"
        x, y = float(roc.false_positive_rate[at]), float(roc.true_positive_rate[at])
        says = f"threshold {name}: {percent(y)} of the hallucinated, {percent(x)} of the others"
        points.append({"x": x, "y": y, "at": at, "name": name, "says": says})
    # If there are many points, none is visible. Each still shows its numbers under the pointer.
    marks = {**_MARK, "opacity": int(len(points) <= _FEW_POINTS)}
    layers = [
        _diagonal(),
        layer("line", points, _LINE, order={"field": "at"}),
        layer("point", points, marks, **SAID),
    ]
    caption = (
        "Each threshold holds back some of the hallucinated answers, and some of the others with "
        f"them. The area under the curve is {roc.auc:.2f}: the share of pairs in which a "
        "hallucinated answer scores lower than another one. Chance would be 0.5, the dotted line."
    )
    if any(point["name"] == "none" for point in points):
        caption += (
            " No threshold decides about answers that state nothing to check: they are one end."
        )
    rows = [
        (points[at]["name"], percent(points[at]["y"]), percent(points[at]["x"]))
        for at in thinned(len(points), MOST_ROWS)
    ]
    heads = ("threshold", "hallucinated held back", "others held back")
    across, up = {"title": heads[2], **_SHARES}, {"title": heads[1], **_SHARES}
    return Chart("roc", "ROC curve", caption, heads, rows, picture(layers, across, up))


def reliability_curve(reliability: Reliability) -> Chart:
    """Draw whether a score can be read as the probability that an answer is not hallucinated."""
    points = list[dict[str, Any]]()
    for bin_ in reliability.bins:
        low, high = bin_.right.interval or (0.0, 1.0)
        share = f"{bin_.right.count:,} of {bin_.right.total:,}"
        says = f"score {score(bin_.mean)}: {percent(bin_.right.value)} not hallucinated, {share}"
        right = bin_.right.count / bin_.right.total
        points.append(
            {"x": drawable(bin_.mean), "y": right, "low": low, "high": high, "says": says}
        )
    bars = {"y": {"field": "low"}, "y2": {"field": "high"}}
    layers = [
        layer("errorbar", points, {"color": POINT, "ticks": True}, **bars),
        layer("line", points, _LINE),
        layer("point", points, _MARK, **SAID),
    ]
    scale: Any = {"zero": False}
    caption = "The share of answers with about this score that are not hallucinated (bars: 95 %)."
    if reliability.binning == "equal-width":
        layers.insert(0, _diagonal())
        scale = _SHARES["scale"]
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
    across = {"title": "mean score", "scale": scale}
    drawn = picture(layers, across, {"title": "not hallucinated", **_SHARES})
    return Chart("reliability", "Reliability", caption, heads, rows, drawn)


def _diagonal() -> Any:
    ends = [{"x": 0, "y": 0}, {"x": 1, "y": 1}]
    return layer("line", ends, {"stroke": QUIET, "strokeWidth": 1.5, "strokeDash": [2, 3]})
