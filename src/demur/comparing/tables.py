"""Show a comparison as tables: of texts for terminals, Markdown and pages, of numbers for CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from demur._text import one_line
from demur.comparing.comparison import Comparison, Cost
from demur.comparing.figures import Estimate

QUALITY = (
    *("AUROC", "95 %", "AUPRC", "balanced accuracy", "F1"),
    *("own balanced accuracy", "own F1"),
)
COSTS: Mapping[Cost, str] = {
    "tokens": "tokens an answer",
    "seconds": "seconds an answer",
    "calls": "calls an answer",
    "money": "cost of an answer",
}
"""The name of each cost in tables and sentences."""
COUNTS = ("answers", "scored", "undetermined", "nothing to check", "calls", "tokens", "seconds")
_COUNTED = ("answers", "scored", "hallucinated", "decided", "undetermined", "nothing_to_check")
_FORMS: Mapping[Cost, str] = {
    "calls": "{:.1f}",
    "tokens": "{:,.0f}",
    "seconds": "{:,.2f}",
    "money": "{:.6f}",
}
ON_LINE = "●"
"""The sign for a detector on the Pareto line."""


def quality_rows(comparison: Comparison) -> list[list[str]]:
    """Return a row for each detector: its name, the sign of the Pareto line, and `QUALITY`."""
    rows = []
    for one in comparison.detectors:
        quality = one.quality
        others = (
            *(quality.auprc, quality.balanced_accuracy, quality.f1),
            *(quality.own_balanced_accuracy, quality.own_f1),
        )
        auroc = [decimal(quality.auroc), interval(quality.auroc)]
        line = ON_LINE if one.on_line else ""
        rows.append([one_line(one.name), line, *auroc, *map(decimal, others)])
    return rows


def cost_heads(comparison: Comparison) -> list[str]:
    """Return `COUNTS`, and the cost in money if there are prices."""
    return [*COUNTS, *(["cost"] if comparison.prices else [])]


def cost_rows(comparison: Comparison) -> list[list[str]]:
    """Return a row for each detector: its name, and the values for `cost_heads`.

    Costs are those of an answer.
    """
    rows = []
    for one in comparison.detectors:
        counts = (one.answers, one.scored, one.undetermined, one.nothing_to_check)
        costs = [
            "–" if (cost := one.cost[name]) is None else form.format(cost)
            for name, form in _FORMS.items()
            if name != "money" or comparison.prices
        ]
        rows.append([one_line(one.name), *(f"{count:,}" for count in counts), *costs])
    return rows


def interval(estimate: Estimate) -> str:
    """Return the interval of a figure in words."""
    return "–" if estimate.interval is None else "{:.3f} to {:.3f}".format(*estimate.interval)


def about(comparison: Comparison) -> list[str]:
    """Return sentences about what was compared, and on which answers."""
    groups, answers = comparison.groups, comparison.answers
    lines = [
        f"{answers:,} labelled answers in {groups:,} groups; {comparison.hallucinated:,} of them "
        "are hallucinated."
    ]
    if comparison.model is not None:
        lines.append(f"The model is {one_line(comparison.model)}.")
    if comparison.unlabelled:
        lines.append(f"Answers without a label, which are left out: {comparison.unlabelled:,}.")
    if comparison.unknown:
        lines.append(f"Labels of answers that are not there: {comparison.unknown:,}.")
    return lines


def pareto(comparison: Comparison) -> str:
    """Return a sentence about the detectors on the Pareto line."""
    names = [one_line(one.name) for one in comparison.detectors if one.on_line]
    if not names:
        return "No detector has both an AUROC and a cost, so there is no Pareto line."
    return f"On the Pareto line of AUROC and {COSTS[comparison.cost]}: {', '.join(names)}."


def markdown(comparison: Comparison) -> str:
    """Return the comparison as Markdown, without a heading, so that it fits under any heading."""
    quality, cost = quality_rows(comparison), cost_rows(comparison)
    parts = [
        f"{_escaped(comparison.name)}: {' '.join(map(_escaped, about(comparison)))}",
        markdown_table(["detector", "line", *QUALITY], quality),
        _escaped(pareto(comparison)),
        markdown_table(["per answer", *cost_heads(comparison)], cost),
    ]
    if left_out := comparison.left_out.items():
        lines = [f"- {_escaped(name)}: {_escaped(why)}" for name, why in left_out]
        parts += ["Left out:", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def csv_table(comparison: Comparison) -> str:
    """Return the comparison as CSV with all digits.

    There is a line for each detector. Unknown values are empty.
    """
    lines = []
    for one in comparison.detectors:
        line: dict[str, Any] = {
            "detector": one_line(one.name),
            **{name: getattr(one, name) for name in _COUNTED},
        }
        for field in dataclasses.fields(one.quality):
            estimate = getattr(one.quality, field.name)
            low, high = estimate.interval or (None, None)
            line[field.name] = estimate.value
            line |= {f"{field.name}_low": low, f"{field.name}_high": high}
        line |= {f"{name}_per_answer": value for name, value in one.cost.items()}
        line["on_pareto_line"] = str(one.on_line).lower()
        lines.append(line)
    out = io.StringIO()
    writer = csv.DictWriter(out, [*lines[0]] if lines else ["detector"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def decimal(estimate: Estimate) -> str:
    """Return the value of a figure in words."""
    return "–" if estimate.value is None else f"{estimate.value:.3f}"


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; all columns but the first are aligned to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(_escaped(cell) for cell in line)} |" for line in lines)


def code_span(text: str) -> str:
    """Return a foreign text on one line as code in Markdown: no markup, link, name or reference."""
    line = one_line(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}"


def _escaped(text: str) -> str:
    """Return a text on one line, escaped so that it is plain text in Markdown."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", one_line(text))
