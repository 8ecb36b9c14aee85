"""Write a comparison of detectors as one page: quality against cost, and the tables behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from demur import __version__
from demur._text import one_line
from demur.comparing import (
    COSTS,
    QUALITY,
    Compared,
    Comparison,
    Cost,
    about,
    cost_heads,
    cost_rows,
    interval,
    pareto,
    quality_rows,
)
from demur.views.report.drawing import INK, POINT, QUIET, SAID, Chart, layer, picture
from demur.views.report.templating import page_style, template

_SIZE = {"width": 720, "height": 380}
"""The size of the space between the axes; this is the only figure of its page."""
_LINE = {"stroke": POINT, "strokeWidth": 2, "interpolate": "step-after"}
_CHANCE = {"stroke": QUIET, "strokeWidth": 1.5, "strokeDash": [2, 3]}


def comparison_page(comparison: Comparison) -> str:
    """Return the comparison as an HTML page that needs no network and runs no script.

    Raises:
        MissingExtraError: Jinja or vl-convert is not installed.
    """
    page: str = template("comparison.html").render(
        style=page_style(),
        title=f"Detectors compared on {one_line(comparison.name)}",
        version=__version__,
        written=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M"),
        lede=pareto(comparison),
        about=about(comparison),
        chart=quality_against_cost(comparison),
        quality_heads=["detector", "on the line", *QUALITY],
        quality=quality_rows(comparison),
        cost_heads=["detector", *cost_heads(comparison)],
        cost=cost_rows(comparison),
        left_out=comparison.left_out,
    )
    return page


def quality_against_cost(comparison: Comparison) -> Chart:
    """Draw the AUROC of each detector over the cost of an answer, with the Pareto line.

    The axis of costs is logarithmic except at its beginning, so that zero is on it.
    """
    cost = comparison.cost
    points = [
        _point(one, *point)
        for one in comparison.detectors
        if (point := one.point(cost)) is not None
    ]
    caption = (
        "Higher is better, and further left is cheaper. The line is the best AUROC for each cost: "
        "on it are the detectors that no other one beats. Bars are intervals of 95 %. The dotted "
        "line at 0.5 is chance."
    )
    rows = [
        (point["name"], f"{point['y']:.3f}", point["between"], f"{point['x']:,.6g}")
        for point in points
    ]
    heads = ("detector", "AUROC", "95 %", COSTS[cost])
    drawn = None
    if points:
        scale = _Scale([point["x"] for point in points])
        drawn = {**picture(_layers(points, scale), _across(cost, scale), _up(points)), **_SIZE}
    return Chart("quality-cost", "Quality against cost", caption, heads, rows, drawn)


def _point(one: Compared, quality: float, cost: float) -> dict[str, Any]:
    low, high = one.quality.auroc.interval or (quality, quality)
    name = one_line(one.name)
    between = interval(one.quality.auroc)
    says = f"{name}: AUROC {quality:.3f} ({between}), {cost:,.6g} an answer"
    point = {"x": cost, "y": quality, "low": low, "high": high, "says": says, "name": name}
    return {**point, "between": between, "on": one.on_line}


class _Scale:
    """Place costs on an axis as Vega's symlog does: about linear below the least cost above 0."""

    def __init__(self, costs: Sequence[float]) -> None:
        self.most = max(costs) or 1.0
        self.constant = min((cost for cost in costs if cost), default=self.most) / 2

    def place(self, cost: float) -> float:
        """Return the place of a cost on the axis, in [0, 1]."""
        return math.log1p(cost / self.constant) / math.log1p(self.most / self.constant)

    @property
    def marks(self) -> list[float]:
        """Return the costs that the axis is labelled with: zero, and powers of ten."""
        first, last = (math.floor(math.log10(cost)) for cost in (2 * self.constant, self.most))
        return [0, *(10.0**power for power in range(first, last + 1))]


def _layers(points: Sequence[dict[str, Any]], scale: _Scale) -> list[Any]:
    on, off = [p for p in points if p["on"]], [p for p in points if not p["on"]]
    on.sort(key=lambda point: (point["x"], point["y"]))
    bars = {"y": {"field": "low"}, "y2": {"field": "high"}}
    right = [point for point in on if scale.place(point["x"]) < 0.6]
    left = [point for point in on if scale.place(point["x"]) >= 0.6]
    words = {"text": {"field": "name"}}
    ends = [{"x": 0, "y": 0.5}, {"x": scale.most, "y": 0.5}]
    layers = [
        layer("line", ends, _CHANCE),
        layer("rule", off, {"color": QUIET, "opacity": 0.5}, **bars),
        layer("rule", on, {"color": POINT, "strokeWidth": 1.5}, **bars),
        layer("line", on, _LINE, order={"field": "x"}),
        layer("point", off, {"stroke": QUIET, "fill": None, "size": 55, "opacity": 1}, **SAID),
        layer("point", on, {"fill": POINT, "strokeWidth": 0, "size": 80, "opacity": 1}, **SAID),
        layer("text", right, {**_LABEL, "align": "left", "dx": 8}, **words),
        layer("text", left, {**_LABEL, "align": "right", "dx": -8}, **words),
    ]
    return [each for each in layers if each["data"]["values"]]


_LABEL = {"color": INK, "fontSize": 12, "dy": -9}


def _across(cost: Cost, scale: _Scale) -> dict[str, Any]:
    domain = {"domain": [0, scale.most * 1.1], "nice": False}
    return {
        "title": COSTS[cost],
        "scale": {"type": "symlog", "constant": scale.constant, **domain},
        "axis": {"values": scale.marks, "format": "~g" if scale.most < 1 else ",~r"},
    }


def _up(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    least = min(0.45, *(point["low"] for point in points))
    domain = [max(0.0, math.floor(least * 20) / 20), 1.01]
    return {"title": "AUROC", "scale": {"domain": domain, "nice": False}, "axis": {"format": ".2f"}}
