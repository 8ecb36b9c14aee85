"""What all figures have in common: their form, their look, and which points are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Variables of demur.views's style, which the page's script turns into colours.
INK, GRID, PAPER = "var(--demur-ink)", "var(--demur-line)", "var(--demur-page)"
POINT, QUIET = "var(--demur-good-line)", "var(--demur-open-line)"

MOST_ON_A_LINE = 400
"""Points of a line."""
MOST_ROWS = 24
"""Rows of a table of numbers."""


@dataclass(frozen=True)
class Chart:
    """A figure."""

    key: str
    """Which one it is, for ids and style."""
    title: str
    caption: str
    """How to read it."""
    heads: tuple[str, ...]
    """Of the table of its numbers."""
    rows: Sequence[tuple[str, ...]]
    figure: dict[str, Any] = field(repr=False)
    """For Plotly, as JSON values."""


def thinned(count: int, most: int) -> list[int]:
    """So many places of a number, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(at) for at in np.linspace(0, count - 1, most)})


def figure(traces: list[dict[str, Any]], layout: dict[str, Any]) -> dict[str, Any]:
    """A figure as JSON values; Plotly checks that there is such a thing."""
    import plotly.graph_objects as go

    drawn: dict[str, Any] = go.Figure(data=traces, layout=layout).to_plotly_json()
    return drawn


def layout(across: str, up: str, **more: Any) -> dict[str, Any]:
    """The look of a figure, with what its axes are called."""
    axis = {
        "gridcolor": GRID,
        "linecolor": GRID,
        "zeroline": False,
        "ticks": "",
        "automargin": True,
        "fixedrange": True,
    }
    return {
        "template": "none",
        "autosize": True,
        "margin": {"l": 8, "r": 20, "t": 28, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": INK, "size": 13, "family": "system-ui, sans-serif"},
        "hoverlabel": {"bgcolor": PAPER, "font": {"color": INK}},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "traceorder": "normal",
        },
        "xaxis": {**axis, "showgrid": False, "title": {"text": across}},
        "yaxis": {**axis, "title": {"text": up}},
        **more,
    }
