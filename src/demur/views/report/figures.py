"""Draw how scores are distributed and how they change over time, with labels if there are any."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np

from demur.views.report.drawing import (
    BAD,
    HEIGHT,
    INK,
    MOST_ON_A_LINE,
    MOST_ROWS,
    PAPER,
    POINT,
    QUIET,
    SAID,
    Chart,
    drawable,
    layer,
    picture,
    thinned,
)
from demur.views.report.words import score

BINS = 20
"""The number of bins of the distribution."""
MOST_POINTS = 1000
"""The most answers that are drawn one by one; more would be slow and hard to read."""
_LEAST_FOR_MEDIAN = 15

_NAMES: dict[bool | None, str] = {
    False: "not hallucinated",
    True: "hallucinated",
    None: "no label",
}
_MEDIAN = "median"
# Each is by name. Signs and patterns tell the labels apart even without colours.
_COLOURS = dict(zip((*_NAMES.values(), _MEDIAN), (POINT, BAD, QUIET, INK), strict=True))
_BARS = {**_COLOURS, "hallucinated": "url(#hatched)"}
_INSIDES = {**dict.fromkeys(_COLOURS, "transparent"), "not hallucinated": POINT}
_SIGNS = {
    **dict.fromkeys(_COLOURS, "circle"),
    "hallucinated": "M-1,-1L1,1M-1,1L1,-1",
    _MEDIAN: "M-1.5,0L1.5,0",
}
_DATES = {"hours": "%H:%M", "minutes": "%H:%M"}
"""The formats of times, with hours from 0 to 23 instead of Vega's 12-hour clock."""


@dataclass(frozen=True)
class Scores:
    """Hold what is drawn of one evaluator: its answers with a score, in the order of time."""

    values: Sequence[float]
    labels: Sequence[bool | None]
    times: Sequence[int]
    """The times in milliseconds since 1970, UTC."""

    @property
    def kinds(self) -> list[bool | None]:
        """Return the labels that occur, with None for answers without a label."""
        kinds = set(self.labels)
        return [kind for kind in _NAMES if kind in kinds]


def distribution(scores: Scores, line: float, marked: float | None = None) -> Chart:
    """Draw how many answers have which score.

    Args:
        scores: The scores.
        line: The threshold at which the slider stands; the page's script moves it.
        marked: Another threshold to mark.
    """
    values = np.asarray(scores.values, dtype=float)
    edges = _edges(values)
    # A bin includes its lower edge, so that answers that pass at an edge stand to its right.
    bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    counts = {
        kind: np.bincount(
            bins[[label is kind for label in scores.labels]], minlength=len(edges) - 1
        )
        for kind in scores.kinds
    }
    names = [
        score(a) if a == values.max() else f"{score(a)} to {score(b)}"
        for a, b in itertools.pairwise(edges)
    ]
    apart = scores.kinds != [None]
    ends = [drawable(edge) for edge in edges.tolist()]
    bars = [
        {
            "kind": _NAMES[kind],
            "place": place,
            "x": low,
            "x2": high,
            "y": int(number),
            "says": f"{name}: {number:,}",
        }
        for place, (kind, numbers) in enumerate(counts.items())
        for (low, high), name, number in zip(itertools.pairwise(ends), names, numbers, strict=True)
        if number
    ]
    kinds = [_NAMES[kind] for kind in counts]
    signs = {"fill": _told_apart(_BARS, kinds) if apart else {"value": POINT}, **SAID}
    places = {"x": {"field": "x", "bin": "binned"}, "x2": {"field": "x2"}}
    stacked = {"order": {"field": "place"}}
    gaps = {"stroke": PAPER, "strokeWidth": 1.5}
    layers = [
        layer("bar", bars, gaps, **places, **stacked, **signs),
        {"name": "chosen", **_upright(line)},
    ]
    if marked is not None:
        layers.append({"name": "given", **_upright(marked, strokeDash=[2, 3])})
        word = {"text": "given", "baseline": "bottom", "color": INK, "fontSize": 12, "dy": -2}
        layers.append(layer("text", [{"x": drawable(marked)}], word, y={"value": 0}))
    # Thresholds may lie outside of all bars.
    shown = [*ends, drawable(line), *([] if marked is None else [drawable(marked)])]
    across = {"title": "score", "scale": {"domain": [min(shown), max(shown)], "nice": False}}
    up = {"title": "answers", "stack": "zero", "axis": {"tickMinStep": 1, "format": ",d"}}
    heads = ("score", *(_NAMES[kind] if apart else "answers" for kind in counts))
    rows = [
        (name, *(f"{numbers[at]:,}" for numbers in counts.values()))
        for at, name in enumerate(names)
    ]
    caption = "The number of answers with each score. The line is the threshold chosen above."
    return Chart("scores", "Scores", caption, heads, rows, picture(layers, across, up))


def _told_apart(range_: Mapping[str, str], kinds: Sequence[str]) -> dict[str, Any]:
    """Return an encoding of labels; all such encodings of a figure share one legend."""
    scale = {"domain": kinds, "range": [range_[kind] for kind in kinds]}
    return {"field": "kind", "type": "nominal", "scale": scale}


def _upright(at: float, **look: Any) -> Any:
    ends = {"y": {"value": 0}, "y2": {"value": HEIGHT}}
    look = {"color": INK, "strokeWidth": 2, **look}
    return layer("rule", [{"x": drawable(at)}], look, **ends)


def _edges(values: Any) -> Any:
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        # A score of 1, which many evaluators often give, has a bin of its own. So a threshold of 1
        # stands to the left of the answers that pass it.
        return np.arange(BINS + 1 + (high == 1)) / BINS
    if low == high:
        return np.asarray([low, min(low + max(abs(low) / 2, 0.5), sys.float_info.max)])
    # Computed with halves, since the range itself may overflow.
    return np.linspace(low / 2, high / 2, BINS + 1) * 2


def over_time(scores: Scores) -> Chart:
    """Draw how scores change from answer to answer."""
    values, count = np.asarray(scores.values, dtype=float), len(scores.values)
    dated = scores.times[0] != scores.times[-1]
    places: Sequence[int] = scores.times if dated else range(1, count + 1)
    drawn = thinned(count, MOST_POINTS)
    apart = scores.kinds != [None]

    points = [
        {
            "kind": _NAMES[scores.labels[at]],
            "x": places[at],
            "y": drawable(float(values[at])),
            "says": f"{_when(scores.times[at]) if dated else f'{at + 1:,}'}: {score(values[at])}",
        }
        for at in drawn
    ]
    around = _around(count)
    line = [
        {"x": places[at], "y": drawable(_median(values, at, around))}
        for at in (thinned(count, MOST_ON_A_LINE) if around else ())
    ]
    kinds = [*(_NAMES[kind] for kind in scores.kinds), *([_MEDIAN] if line else [])]
    look = {"size": 30 if count < 300 else 14, "strokeWidth": 1.5, "opacity": 0.6}
    signs: dict[str, Any] = {"fill": {"value": POINT}}
    if apart:
        ways = {"stroke": _COLOURS, "fill": _INSIDES, "shape": _SIGNS}
        signs = {way: _told_apart(range_, kinds) for way, range_ in ways.items()}
    layers = [layer("point", points, look, **SAID, **signs)]
    caption = "Each point is an answer" + (", by the time it was given (UTC)." if dated else ".")
    if len(drawn) < count:
        caption = f"Points are {len(drawn):,} of the {count:,} answers, evenly chosen."
    if line:
        layers.append(layer("line", line, {"stroke": INK, "strokeWidth": 2}))
        caption += f" The line is the median of {2 * around + 1} answers around."
    across: dict[str, Any] = {"title": "answers in order"}
    if dated:
        days = sorted({_when(scores.times[at])[:10] for at in (0, -1)})
        across = {"title": " to ".join(days), "type": "temporal", "scale": {"type": "utc"}}
        across["axis"] = {"format": _DATES, "labelOverlap": True}
    up = {"title": "score", "scale": {"zero": False}}
    heads = ("from" if dated else "from answer", "to", "answers", "lowest", "median", "highest")
    rows = []
    for part in np.array_split(np.arange(count), min(count, MOST_ROWS)):
        first, last, some = int(part[0]), int(part[-1]), values[part]
        figures = (float(some.min()), _middle(some), float(some.max()))
        ends = [_when(scores.times[at]) if dated else f"{at + 1:,}" for at in (first, last)]
        rows.append((*ends, f"{len(part):,}", *map(score, figures)))
    return Chart("time", "Scores over time", caption, heads, rows, picture(layers, across, up))


def _around(count: int) -> int:
    """Return how many neighbours on either side a median takes in; 0 if there are few answers."""
    return 0 if count < _LEAST_FOR_MEDIAN else max(5, count // 40)


def _median(values: Any, at: int, around: int) -> float:
    return _middle(values[max(0, at - around) : at + around + 1])  # there are fewer at the ends


def _middle(values: Any) -> float:
    return float(np.median(values / 2)) * 2  # halves, since the sum of two may overflow


def _when(time: int) -> str:
    return f"{datetime.fromtimestamp(time / 1000, timezone.utc):%Y-%m-%d %H:%M}"
