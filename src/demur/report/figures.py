"""How scores are distributed, and how they change: with the labels where there are any."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np

from demur.report.drawing import (
    INK,
    MOST_ON_A_LINE,
    MOST_ROWS,
    PAPER,
    POINT,
    QUIET,
    Chart,
    figure,
    layout,
    thinned,
)
from demur.report.words import score

BINS = 20
"""Of the distribution."""
MOST_POINTS = 1500
"""Drawn one by one; more would be slow, and a blot."""
_LEAST_FOR_MEDIAN = 15

_BY_LABEL = {
    False: ("not hallucinated", POINT, "circle"),
    True: ("hallucinated", "var(--demur-bad-line)", "x"),
    None: ("no label", QUIET, "circle-open"),
}
_HATCHED = {
    "shape": "/",
    "fillmode": "overlay",
    "fgcolor": PAPER,
    "fgopacity": 0.7,
    "size": 7,
    "solidity": 0.25,
}
"""Told apart without a colour."""


@dataclass(frozen=True)
class Scores:
    """What there is to draw of one evaluator: answers with a score, in the order of time."""

    values: Sequence[float]
    labels: Sequence[bool | None]
    times: Sequence[int]
    """Milliseconds since 1970."""

    @property
    def labelled(self) -> tuple[list[float], list[bool]]:
        """The scores of answers with a label, and those labels."""
        pairs = zip(self.values, self.labels, strict=True)
        known = [(value, label) for value, label in pairs if label is not None]
        return [value for value, _ in known], [label for _, label in known]

    @property
    def kinds(self) -> list[bool | None]:
        """The labels that there are; none tells nothing apart."""
        kinds = set(self.labels)
        return [kind for kind in _BY_LABEL if kind in kinds]


def distribution(scores: Scores, line: float, marked: float | None = None) -> Chart:
    """How many answers have which score.

    Args:
        scores: The scores.
        line: The threshold that the slider stands at; the page's script moves it.
        marked: A threshold that is marked besides.
    """
    values = np.asarray(scores.values, dtype=float)
    edges = _edges(values)
    # A bin holds its lower edge, so that what passes at an edge stands to the right of it.
    bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    counts = {
        kind: np.bincount(
            bins[[label is kind for label in scores.labels]], minlength=len(edges) - 1
        )
        for kind in scores.kinds
    }
    middles, widths = edges[:-1] / 2 + edges[1:] / 2, np.diff(edges)
    names = [
        score(a) if a == values.max() else f"{score(a)} to {score(b)}"
        for a, b in itertools.pairwise(edges)
    ]
    apart = scores.kinds != [None]
    traces = [
        {
            "type": "bar",
            "name": _BY_LABEL[kind][0],
            "x": middles.tolist(),
            "y": numbers.tolist(),
            "width": (widths * 0.92).tolist(),
            "customdata": names,
            "hovertemplate": "%{customdata}: %{y}<extra></extra>",
            "marker": {
                "color": _BY_LABEL[kind][1] if apart else POINT,
                "pattern": _HATCHED if kind else {},
                "line": {"width": 0},
            },
        }
        for kind, numbers in counts.items()
    ]
    look = layout("score", "answers", barmode="stack", showlegend=apart, bargap=0)
    look["yaxis"]["rangemode"] = "tozero"
    look["shapes"] = [_upright(line, "solid")]
    if marked is not None:
        look["shapes"].append(_upright(marked, "dot"))
        look["legend"]["y"] = 1.1  # above the word
        look["margin"]["t"] += 16
        look["annotations"] = [
            {
                "text": "given",
                "x": marked,
                "y": 1,
                "yref": "paper",
                "yanchor": "bottom",
                "showarrow": False,
            }
        ]
    heads = ("score", *(_BY_LABEL[kind][0] if apart else "answers" for kind in counts))
    rows = [
        (name, *(f"{numbers[at]:,}" for numbers in counts.values()))
        for at, name in enumerate(names)
    ]
    caption = "How many answers have which score. The line is the threshold chosen above"
    return Chart("scores", "Scores", f"{caption}.", heads, rows, figure(traces, look))


def _upright(at: float, dash: str) -> dict[str, Any]:
    line = {"color": INK, "width": 2, "dash": dash}
    return {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _edges(values: Any) -> Any:
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        # A score of 1, which many evaluators often give, has a bin of its own: as a threshold it
        # stands to the left of those that pass it.
        return np.arange(BINS + 1 + (high == 1)) / BINS
    if low == high:
        return np.asarray([low, min(low + max(abs(low) / 2, 0.5), sys.float_info.max)])
    # By halves, since the range itself may be more than a number can hold.
    return np.linspace(low / 2, high / 2, BINS + 1) * 2


def over_time(scores: Scores) -> Chart:
    """How scores change from answer to answer."""
    values, count = np.asarray(scores.values, dtype=float), len(scores.values)
    dated = scores.times[0] != scores.times[-1]
    places: Sequence[Any] = [_iso(time) for time in scores.times] if dated else range(1, count + 1)
    drawn = thinned(count, MOST_POINTS)
    apart = scores.kinds != [None]
    traces: list[dict[str, Any]] = []
    for kind in scores.kinds:
        name, colour, sign = _BY_LABEL[kind]
        chosen = [at for at in drawn if scores.labels[at] is kind]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": [places[at] for at in chosen],
                "y": values[chosen].tolist(),
                "marker": {
                    "color": colour if apart else POINT,
                    "symbol": sign if apart else "circle",
                    "size": 6 if count < 300 else 4,
                    "opacity": 0.6,
                },
                "hovertemplate": "%{x}: %{y:.3f}<extra></extra>",
            }
        )
    caption = "Each point is an answer" + (", by the time it was given (UTC)." if dated else ".")
    if len(drawn) < count:
        caption = f"Points are {len(drawn):,} of the {count:,} answers, evenly chosen."
    around = _around(count)
    if around:
        at = thinned(count, MOST_ON_A_LINE)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "median",
                "x": [places[place] for place in at],
                "y": [_median(values, place, around) for place in at],
                "line": {"color": INK, "width": 2},
                "hovertemplate": "%{x}: median %{y:.3f}<extra></extra>",
            }
        )
        caption += f" The line is the median of {2 * around + 1} answers around."
    look = layout("", "score", showlegend=apart)
    if dated:
        look["xaxis"]["type"] = "date"
    else:
        look["xaxis"]["title"] = {"text": "answers in order"}
    heads = ("from" if dated else "from answer", "to", "answers", "lowest", "median", "highest")
    rows = []
    for part in np.array_split(np.arange(count), min(count, MOST_ROWS)):
        first, last, some = int(part[0]), int(part[-1]), values[part]
        figures = (float(some.min()), _middle(some), float(some.max()))
        ends = [
            _iso(scores.times[at])[:16].replace("T", " ") if dated else f"{at + 1:,}"
            for at in (first, last)
        ]
        rows.append((*ends, f"{len(part):,}", *map(score, figures)))
    return Chart("time", "Scores over time", caption, heads, rows, figure(traces, look))


def _around(count: int) -> int:
    """How many neighbours on either side a median is of; 0 of too few answers."""
    return 0 if count < _LEAST_FOR_MEDIAN else max(5, count // 40)


def _median(values: Any, at: int, around: int) -> float:
    return _middle(values[max(0, at - around) : at + around + 1])  # fewer at the ends


def _middle(values: Any) -> float:
    return float(np.median(values / 2)) * 2  # the sum of two may be more than a number can hold


def _iso(time: int) -> str:
    moment = datetime.fromtimestamp(time / 1000, timezone.utc).replace(tzinfo=None)
    return moment.isoformat(timespec="milliseconds")
