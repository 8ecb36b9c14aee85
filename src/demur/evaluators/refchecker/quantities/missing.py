"""Compare the quantities of a claim with those of its evidence."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

from demur.evaluators.refchecker.quantities.atoms import Atom
from demur.evaluators.refchecker.quantities.reading import quantities

# Digits that are not part of an answer's statements: in links, in citations, as list numbers.
_ASIDE = re.compile(r"https?://\S+|\[\d+(?:[,-] ?\d+)*\]|^[ \t]{0,8}\d{1,2}[.)][ \t]", re.MULTILINE)


def missing_quantities(claim: str, evidence: Sequence[str]) -> tuple[str, ...]:
    """Return the quantities of `claim`, as written there, that stand nowhere in `evidence`.

    Numbers, number words, shares, dates, times and years are compared by value, whatever their
    form: 1,000 is one thousand, 50 % is half, 3 May 1712 is 1712-05-03, 5 km is 5,000 m. A date in
    the evidence also states its month and its year, but a year does not state a date. If in doubt,
    a quantity counts as found. The following are not quantities: a single "one", "two", "first" or
    "zero" in words, Roman numerals, and digits within a name (B12, COVID-19).

    Args:
        claim: A statement in English. In other languages, only digits are read.
        evidence: The texts that the claim is checked against.
    """
    blank = _ASIDE.sub(lambda aside: " " * len(aside.group()), claim)
    stated = [quantity for quantity in quantities(blank) if quantity.readings]
    if not stated:
        return ()
    known = [_index(text) for text in evidence]
    return tuple(
        dict.fromkeys(
            claim[quantity.start : quantity.end].strip()
            for quantity in stated
            if not any(all(_holds(known, atom) for atom in atoms) for atoms in quantity.readings)
        )
    )


@lru_cache(maxsize=256)  # the claims of an answer are checked against the same texts
def _index(text: str) -> dict[str, list[float]]:
    values: defaultdict[str, set[float]] = defaultdict(set)
    for quantity in quantities(text):
        for atom in quantity.evidence:
            values[atom.kind].add(atom.value)
    return {kind: sorted(numbers) for kind, numbers in values.items()}


def _holds(known: Iterable[dict[str, list[float]]], atom: Atom) -> bool:
    for index in known:
        values = index.get(atom.kind, [])
        at = bisect_left(values, atom.low)
        if at < len(values) and values[at] <= atom.high:
            return True
    return False
