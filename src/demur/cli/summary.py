"""Show the summary of a scored data set on a terminal, in a pipe, or as JSON."""

from __future__ import annotations

import dataclasses
from typing import Any

from rich.console import Console

from demur.cli.console import table
from demur.schema import Prices, Usage
from demur.scoring import Summary
from demur.views import USAGE_HEADS, terminal, usage_cells


def spent(usage: Usage, prices: Prices | None) -> str:
    """Return what was spent, in words."""
    tokens = f"{usage.calls:,} calls, {usage.input_tokens:,} + {usage.output_tokens:,} tokens"
    return tokens if prices is None else f"{tokens}, cost {usage.price(*prices):,.4f}"


def as_json_values(summary: Summary, prices: Prices | None) -> dict[str, Any]:
    """Return the summary as JSON values."""
    told = dataclasses.asdict(summary)
    if prices is not None:
        for figure in told["figures"]:
            figure["cost"] = figure["usage"].price(*prices)
    return told


def show(console: Console, summary: Summary, prices: Prices | None) -> None:
    """Print the summary."""
    heads = ["answers", "undetermined", "nothing to check", "mean score", "95 %", "passed"]
    heads += [*USAGE_HEADS, *(["cost"] if prices else [])]
    rows = []
    for figure in summary.figures:
        usage = figure.usage
        row = [
            *(figure.evaluator, f"{figure.answers:,}", f"{figure.undetermined:,}"),
            f"{figure.nothing_to_check:,}",
            "-" if figure.mean is None else f"{figure.mean:.4f}",
            _range(figure.interval, "{:.4f} to {:.4f}"),
            f"{figure.passed / figure.decided:.1%} of {figure.decided:,}"
            if figure.decided
            else "-",
            *usage_cells(usage),
        ]
        rows.append([*row, f"{usage.price(*prices):,.4f}"] if prices else row)
    table(console, [""], heads, rows)
    if summary.spent.calls:
        terminal.say(console, f"on references: {spent(summary.spent, prices)}")
    if summary.above:
        rows = []
        for above in summary.above:
            preference = above.preference
            compared = preference.wins + preference.ties + preference.losses
            rows.append(
                [
                    above.evaluator,
                    f"{above.first} > {'all others' if above.other is None else above.other}",
                    "-" if preference.rate is None else f"{preference.rate:.1%}",
                    _range(preference.interval, "{:.1%} to {:.1%}"),
                    *(f"{compared:,}", f"{preference.ties:,}", f"{preference.missing:,}"),
                ]
            )
        heads = ["wins", "95 %", "rows", "ties", "missing"]
        table(console, ["scored above", ""], heads, rows)


def _range(interval: tuple[float, float] | None, form: str) -> str:
    return "-" if interval is None else form.format(*interval)
