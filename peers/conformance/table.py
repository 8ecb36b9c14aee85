"""Write the results as Markdown: one table for each check, and the versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from bench.measuring import line

from .checks import CHECKS
from .runner import Guard

Found = Mapping[str, Any]
"""What the checks found of one guard, by check."""
_MODES = ("whole", "stream", "astream", "updates", "events")
_BEHAVIOURS = ("500", "429", "garbage", "empty", "silent")
_LOUD = ("let through", "leaked, then raised", "leaked, then stopped", "hung")


def markdown(
    guards: Sequence[Guard], results: Mapping[str, Found], versions: str, today: date
) -> str:
    """Return all tables of the figures.

    Args:
        guards: The guards, in the order of the rows.
        results: What `checks` found, by guard.
        versions: The versions of the products, as a sentence.
        today: The date of the measurement.
    """
    parts = [f"Measured on {today.isoformat()} by `python -m peers.conformance`: {versions}."]
    for check, (heads, row) in _TABLES.items():
        name = check.partition(",")[0]
        rows = [(guard, results[guard.name].get(name)) for guard in guards]
        if any(found is not None for _, found in rows):
            lines = [line(["guard", *heads]), line(["---"] * (len(heads) + 1))]
            lines += [line([f"`{g.name}`", *_cells(row, found, heads)]) for g, found in rows]
            told = f"{CHECKS[name].__doc__} `--check {name}`"
            parts.append("\n".join([f"### {check}", "", told, "", *lines]))
    return "\n\n".join(parts)


def _cells(
    row: Callable[[Found], list[str]], found: Found | None, heads: Sequence[str]
) -> list[str]:
    if found is None:
        return ["not run", *[""] * (len(heads) - 1)]
    if "none" in found:
        return [str(found["none"]), *[""] * (len(heads) - 1)]
    return row(found)


def _leak(found: Found) -> list[str]:
    told = [_of(found.get(mode)) for mode in _MODES]
    put = found["put right"]
    return [*told, f"{put['whole']} of {put['wrong']}"]


def _of(told: Found | None) -> str:
    """Return how many wrong answers leaked, and how many right ones came whole."""
    if told is None:
        return ""
    leaked = f"**{told['leaked']}**" if told["leaked"] else "0"
    return f"{leaked} of {told['wrong']}, {told['whole']} of {told['right']}"


def _fails(mode: str) -> Callable[[Found], list[str]]:
    def row(found: Found) -> list[str]:
        streamed = "astream" if "astream, 500" in found else "stream"
        name = streamed if mode == "streamed" else mode
        told = [found[f"{name}, {behaviour}"] for behaviour in _BEHAVIOURS]
        return [*(_fates(one) for one in told), f"{told[-1]['seconds']}"]

    return row


def _fates(told: Found) -> str:
    """Return what happened to the wrong answers, and to the right ones if it differs."""
    wrong, right = _fate(told["wrong"]), _fate(told["right"])
    plain = wrong.replace("**", "").removeprefix("leaked, then ")
    return wrong if plain == right.replace("**", "") else f"{wrong}; right ones: {right}"


def _fate(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    told = []
    for name, count in sorted(counts.items()):
        loud = f"**{name}**" if name in _LOUD else name
        told.append(loud if count == total else f"{count} of {total} {loud}")
    return ", ".join(told)


def _padding(found: Found) -> list[str]:
    cells = []
    for name in ("answer", "evidence"):
        told = found[name]
        if "none" in told:
            cells += [str(told["none"]), ""]
        elif told["seen"] is None:
            cells += ["judges itself", _of(told)]
        else:
            cells += [f"{told['seen']} of {told['wrong']}", _of(told)]
    return cells


def _crowd(found: Found) -> list[str]:
    cells = []
    for mode in ("whole", "astream", "stream"):
        if mode not in found:
            cells += ["", ""]
            continue
        told = found[mode]
        other = {
            **told["errors"],
            f"not done after {told['patience']:.0f} s": told["hung"],
            "mixed up": told["mixed"],
        }
        other["prompts mixed up"] = told["mixed prompts"]
        trouble = "".join(f", **{count} {name}**" for name, count in other.items() if count)
        cells += [f"{_of(told)}{trouble}", f"{told['wall']}"]
    requests = sum(found["whole"]["requests"].values())
    calls = found["whole"]["wrong"] + found["whole"]["right"]
    return [*cells, f"{requests / calls:.1f}"]


def _cancel(found: Found) -> list[str]:
    cells = []
    for name in ("chain", "judge"):
        told = found[name]
        kept = {**told["open"], "tasks": told["tasks"], "threads": told["threads"]}
        left = ", ".join(f"**{count} {what}**" for what, count in kept.items() if count > 0)
        cells += [left or "nothing", f"{told['held']}"]
    works = all(found[name]["next"] for name in ("chain", "judge"))
    return [*cells, "works" if works else "**fails**"]


def _forged(found: Found) -> list[str]:
    return [f"{found['seen']} of {found['wrong']}", _of(found)]


_TABLES: dict[str, tuple[list[str], Callable[[Found], list[str]]]] = {
    "leak": (
        ["whole", "sync stream", "async stream", "updates", "events", "put right"],
        _leak,
    ),
    "fails": (
        ["HTTP 500", "HTTP 429", "garbage", "empty", "silent", "s until silence ends"],
        _fails("whole"),
    ),
    "fails, streamed": (
        ["HTTP 500", "HTTP 429", "garbage", "empty", "silent", "s until silence ends"],
        _fails("streamed"),
    ),
    "padding": (
        ["answer: judge saw", "leaked, whole", "evidence: judge saw", "leaked, whole"],
        _padding,
    ),
    "crowd": (
        ["at once", "s", "streams", "s", "sync streams", "s", "requests a call"],
        _crowd,
    ),
    "cancel": (
        ["left open: chain writes", "s held", "left open: judge thinks", "s held", "next call"],
        _cancel,
    ),
    "forged": (["judge saw", "leaked, whole"], _forged),
}
