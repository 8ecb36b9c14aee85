"""Draw right answers against wrong ones, as users get them, in a file that stands by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from demur.views import stylesheet
from demur.views.report import BAD, INK, POINT, Chart, layer, picture

_LABEL = {"color": INK, "fontSize": 12, "align": "right", "dx": -7, "dy": -8}


def draw(
    points: Mapping[str, tuple[float, ...]], curves: Mapping[str, Sequence[tuple[float, ...]]]
) -> str:
    """Return an SVG of named points and curves, in the colours that the reader's system has.

    Args:
        points: The percentages of wrong and right answers.
        curves: The same, for one limit after another.
    """
    moved = [
        {"x": x, "y": y, "at": at, "judge": f"{name}, limit moved"}
        for name, places in curves.items()
        for at, (x, y) in enumerate(places)
    ]
    looks = {"stroke": [POINT, BAD], "strokeDash": [[1, 0], [6, 3]]}  # not by colour alone
    kinds = {
        name: {"field": "judge", "type": "nominal", "scale": {"range": of}}
        for name, of in looks.items()
    }
    named = [{"x": x, "y": y, "name": name} for name, (x, y) in points.items()]
    layers = [
        layer("line", moved, {"strokeWidth": 2}, order={"field": "at"}, **kinds),
        layer("point", named, {"fill": INK, "strokeWidth": 0, "size": 60, "opacity": 1}),
        layer("text", named, _LABEL, text={"field": "name"}),
    ]
    across, up = (
        {
            "title": f"{name} answers delivered, % of the questions",
            "scale": {"domain": [0, max(place) + 6], "nice": False},  # names need room
        }
        for name, place in zip(("wrong", "right"), zip(*points.values(), strict=True), strict=True)
    )
    drawn = {**picture(layers, across, up), "width": 640, "height": 380}
    svg = str(Chart("guarded", "", "", (), (), drawn).svg)
    return svg.replace(">", f"><style>{_style()}</style>", 1)


def _style() -> str:
    """Return the light and dark colours of demur's views."""
    parts = stylesheet().split("@media")
    light, dark = (" ".join(re.findall(r"--demur-[\w-]+: #\w+;", part)) for part in parts[:2])
    own = "background: var(--demur-page); font-family: sans-serif;"
    return f"svg {{ {light} {own} }} @media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}"
