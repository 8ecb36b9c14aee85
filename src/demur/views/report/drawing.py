"""Define what all figures share: their form, their look, and how they become SVG."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup

from demur.errors import needs

# Variables of demur.views' style, so that a figure changes its colours with the page.
INK, GRID, PAPER = "var(--demur-ink)", "var(--demur-line)", "var(--demur-page)"
POINT, BAD, QUIET = "var(--demur-good-line)", "var(--demur-bad-line)", "var(--demur-open-line)"

WIDTH, HEIGHT = 400, 230
"""The size of the space between the axes, in units of the SVG."""
MOST_ON_A_LINE = 200
"""The most points of a line."""
MOST_ROWS = 24
"""The most rows of a table of numbers."""
_LARGEST = 1e300
"""The largest number that is drawn: differences of larger numbers overflow."""

_LABELS = {"labelColor": INK, "labelFontSize": 12}
_LOOK = {
    "aria": False,
    "background": None,
    "font": "sans-serif",  # used to measure texts; the page's style sets the real font
    "view": {"stroke": None},
    "axis": {
        **_LABELS,
        "labelPadding": 6,
        "titleColor": INK,
        "titleFontSize": 12.5,
        "titleFontWeight": "normal",
        "domainColor": GRID,
        "gridColor": GRID,
        "ticks": False,
        "tickCount": 5,
    },
    "axisX": {"grid": False, "titlePadding": 8},
    # The same width for all labels, so that all figures of a page have the same scale.
    "axisY": {"domain": False, "minExtent": 44, "maxExtent": 44},
    "legend": {
        **_LABELS,
        "orient": "top",
        "title": None,
        "offset": 16,
        "columnPadding": 24,  # the page's letters may be wider than the measured ones
        "symbolOpacity": 1,
    },
}


@dataclass(frozen=True)
class Chart:
    """Describe a figure, and draw it."""

    key: str
    """The figure's name, for ids and style."""
    title: str
    caption: str
    """How to read it."""
    heads: tuple[str, ...]
    """The heads of the table with its numbers."""
    rows: Sequence[tuple[str, ...]]
    picture: Mapping[str, Any] | None = field(default=None, repr=False)
    """The description for Vega-Lite; None if the figure is a table only."""

    @property
    def svg(self) -> Markup:
        """Draw the figure, and return it as SVG.

        Raises:
            MissingExtraError: vl-convert is not installed.
        """
        with needs("vl-convert-python", "cli", "a report"):
            import vl_convert
        drawn = vl_convert.vegalite_to_svg({**(self.picture or {}), "config": _LOOK})
        return Markup(_smaller(drawn))  # made of numbers, and of words in this package


def _smaller(svg: str) -> str:
    """Return an SVG without what a picture does not need: most digits, and roles.

    Descriptions become titles, since browsers show only titles beside the pointer.
    """
    svg = re.sub(r' (?:role|aria-(?:hidden|roledescription))="[^"]*"', "", svg)
    svg = re.sub(r' (?:d|transform)="[^"]*"', lambda found: _DIGITS.sub(r"\1", found[0]), svg)
    return _DESCRIBED.sub(r"<\1\3><title>\2</title></\1>", svg)


_DIGITS = re.compile(r"(\.\d)\d+")
_DESCRIBED = re.compile(r'<(path|line) aria-label="([^"]*)"([^>]*)/>')


SAID = {"description": {"field": "says"}}
"""The encoding that shows the `says` of a value beside the pointer."""


def picture(layers: Iterable[Mapping[str, Any]], across: Any, up: Any) -> Any:
    """Return a `Chart`'s picture: layers over each other, with axes as Vega-Lite describes them."""
    axes = {
        "x": {"field": "x", "type": "quantitative", **across},
        "y": {"field": "y", "type": "quantitative", **up},
    }
    return {"width": WIDTH, "height": HEIGHT, "layer": [*layers], "encoding": axes}


def layer(mark: str, values: Iterable[Mapping[str, Any]], look: Any, **encoding: Any) -> Any:
    """Return marks of one kind: one for each value, or a line through all of them.

    Args:
        mark: The kind, as Vega-Lite calls it.
        values: The values, with their places as `x` and `y`.
        look: The look that all these marks share.
        encoding: How the marks differ by their values; see `SAID`.
    """
    drawn = {"type": mark, **look}
    return {"data": {"values": [*values]}, "mark": drawn, "encoding": encoding}


def thinned(count: int, most: int) -> list[int]:
    """Return at most `most` of the indices below `count`, with the first and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(at) for at in np.linspace(0, count - 1, most)})


def drawable(value: float) -> float:
    """Return a score, or the nearest number that can be drawn."""
    return min(max(value, -_LARGEST), _LARGEST)
