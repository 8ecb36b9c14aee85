"""Make the tables of the figures, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measuring import table

from peers.speed.rows import ideal
from peers.speed.running import Failed, Measured, Run


def cost(found: Sequence[Measured], latency: float) -> str:
    """Return the table of what an answer costs, and how close each row comes to its own ideal."""
    levels = _levels(found)
    heads = ["", "version", "calls", "tokens", "in sequence"]
    heads += [f"wall, {level} at once" for level in levels]
    heads += ["CPU ms", "peak MiB", "import s"]
    return table(heads, [_cost(one, latency) for one in found])


def _cost(one: Measured, latency: float) -> list[str]:
    tokens = one.per_answer("prompt_tokens") + one.per_answer("completion_tokens")
    return [
        one.row.name,
        one.version,
        f"{one.per_answer('requests'):.1f}",
        f"{tokens:.0f}",
        str(one.row.depth),
        *(f"{over(run, one.row.depth, latency):.2f}" for run in one.clean),
        f"{one.cpu_ms:.1f}",
        f"{max(run.peak_mib for run in one.clean):.0f}",
        f"{one.import_seconds:.1f}",
    ]


def against_one_call(found: Sequence[Measured], latency: float) -> str:
    """Return the table of each row's time as a multiple of the least possible time.

    That is the time of one call for each answer.
    """
    heads = ["", *(f"{level} at once" for level in _levels(found)), "requests at a time"]
    rows = [
        [
            one.row.name,
            *(f"{over(run, 1, latency):.2f}" for run in one.clean),
            str(max(run.counts["most_at_once"] for run in one.clean)),
        ]
        for one in found
    ]
    return table(heads, rows)


def spoiled(found: Sequence[Measured]) -> str:
    """Return the table of what happened to the answers while requests were spoiled."""
    heads = ["", "right", "undetermined or error", "wrong", "lost", "requests", "spoiled", "s"]
    return table(heads, [_spoiled(one, one.spoiled) for one in found if one.spoiled])


def _spoiled(one: Measured, run: Run) -> list[str]:
    grades = [str(run.grades.get(name, 0)) for name in ("right", "none", "wrong", "lost")]
    seen = [str(run.counts[name]) for name in ("requests", "spoiled")]
    return [one.row.name, *grades, *seen, f"{run.wall:.0f}"]


def over(run: Run, depth: int, latency: float) -> float:
    """Return a run's wall time as a multiple of the ideal, with `depth` requests in sequence."""
    return run.wall / ideal(run.answers, run.at_once, depth, latency)


def notes(found: Sequence[Measured], failed: Sequence[Failed]) -> list[str]:
    """Return what a reader of the tables has to know beside them."""
    said = [f"{one.row.name}: not measured: {one.why}" for one in failed]
    for one in found:
        asked = sum(run.answers for run in one.clean)
        right = sum(run.grades.get("right", 0) for run in one.clean)
        if right < asked:
            reasons = [reason for run in one.clean for reason in run.said]
            said.append(f"{one.row.name}: {right} of {asked} right with nothing spoiled: {reasons}")
        unknown = sum(run.counts["unknown"] for run in one.clean)
        if unknown:
            said.append(f"{one.row.name}: the server did not know {unknown} of its requests")
    for one in found:
        if one.spoiled and one.spoiled.grades.get("lost"):
            said.append(f"{one.row.name}: lost with requests spoiled: {one.spoiled.said}")
    latest = max((run.counts["latest_ms"] for one in found for run in one.clean), default=0.0)
    return [*said, f"The server's latest reply left {latest:.0f} ms after its time."]


def _levels(found: Sequence[Measured]) -> list[int]:
    return [run.at_once for run in found[0].clean] if found else []
