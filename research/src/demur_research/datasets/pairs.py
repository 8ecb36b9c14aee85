"""Claims and the texts that they are judged by: what the sets of such pairs have in common."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from demur_research.datasets.rows import LabelledRow, Reading

REPEATED = "repeated pairs"
CONTRADICTED = "pairs with two labels"
FILTERS = {
    REPEATED: "The same claim with the same texts and the same label, after the first: it would "
    "count twice.",
    CONTRADICTED: "The same claim with the same texts under different labels, all of them: the set "
    "does not say which label holds.",
}
"""What `each_once` leaves out."""


def digest(*texts: str) -> str:
    """A short name for texts that have none, the same wherever the texts are the same."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:16]


def renamed(values: Any, names: Mapping[str, str]) -> Any:
    """A row of a file with other names for its fields, from those to the form's own."""
    if not isinstance(values, dict):
        return values
    other = {names[name]: value for name, value in values.items() if name in names}
    return {**other, **values}


def each_once(found: Iterable[LabelledRow]) -> Reading:
    """Keep one row of each claim and its texts, and count the others by the names in `FILTERS`.

    Args:
        found: Rows with one answer each.
    """
    alike: dict[tuple[object, ...], list[LabelledRow]] = defaultdict(list)
    for row in found:
        alike[row.question, row.answers[0].text, row.contexts].append(row)
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
    """A group for each pair, such that pairs with a text in common have the same group.

    The link is followed from pair to pair: if A shares its first text with B, and B its second
    text with C, all three are one group.
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
