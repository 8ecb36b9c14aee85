"""Share what data sets of claims have in common: a claim, and the texts that it is judged by."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from demur_research.datasets.rows import LabelledRow, Reading

REPEATED = "repeated pairs"
CONTRADICTED = "pairs with two labels"
FILTERS = {
    REPEATED: "Repetitions of a claim with the same texts and the same label: they would count "
    "twice.",
    CONTRADICTED: "Claims that have different labels with the same texts: the set does not say "
    "which label holds.",
}
"""What `each_once` leaves out, and why."""


def digest(*texts: str) -> str:
    """Return a short name for texts that have none; equal texts have equal names."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:16]


def renamed(values: Any, names: Mapping[str, str]) -> Any:
    """Return a row of a file with its fields renamed to the form's names.

    Args:
        values: The row. If it is not an object, it is returned as it is.
        names: The form's name for each name in the file.
    """
    if not isinstance(values, dict):
        return values
    other = {names[name]: value for name, value in values.items() if name in names}
    return {**other, **values}


def each_once(
    found: Iterable[LabelledRow], part: Callable[[LabelledRow], object] = lambda row: None
) -> Reading:
    """Keep one row of each claim with its texts, and count the others by the names in `FILTERS`.

    Args:
        found: Rows with one answer each.
        part: A function from a row to the part of the data set that it is of. A claim may be in
            several parts.
    """
    alike: dict[tuple[object, ...], list[LabelledRow]] = defaultdict(list)
    for row in found:
        alike[part(row), row.question, row.answers[0].text, row.contexts].append(row)
    kept: list[LabelledRow] = []
    left_out: Counter[str] = Counter()
    for rows in alike.values():
        if len({(row.answers[0].hallucinated, row.answers[0].label) for row in rows}) > 1:
            left_out[CONTRADICTED] += len(rows)
        else:
            kept.append(rows[0])
            left_out[REPEATED] += len(rows) - 1
    return Reading(tuple(kept), dict(left_out))


def linked(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return a group for each pair, such that pairs with a text in common have the same group.

    Links are followed from pair to pair. If A and B share their first text, and B and C share their
    second text, all three are one group.
    """
    above: dict[tuple[int, str], tuple[int, str]] = {}

    def root(node: tuple[int, str]) -> tuple[int, str]:
        while (parent := above.setdefault(node, node)) != node:
            above[node] = above[parent]
            node = parent
        return node

    for first, second in pairs:
        above[root((0, first))] = root((1, second))
    return [digest(root((1, second))[1]) for _, second in pairs]
