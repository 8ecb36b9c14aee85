"""Leave out rows that occur in what is evaluated, and set rows apart for a look at the training."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from demur_research.datasets import aggrefact
from demur_research.recipe.rows import TrainingRow

REPEATED = "repeated"
CLAIM_EVALUATED = "the claim is evaluated"
PASSAGES_EVALUATED = "the passages are evaluated"

RUN = 10
"""The words of a run."""
MOST_SHARED = 0.15
"""The greatest share of a row's runs that may occur in what is evaluated. Two may in any case."""
_SHORTEST_CLAIM = 4
"""Shorter claims, such as "In 1912.", are alike by chance."""


@dataclass(frozen=True)
class Evaluated:
    """Hold the claims that are evaluated, and the runs of ten words in their passages."""

    claims: frozenset[str] = frozenset()
    """The claims in small letters, without punctuation."""
    runs: frozenset[int] = frozenset()
    """Hashes of the runs, which are the same in this process only. The runs themselves would take
    gigabytes, and two with the same hash make a row share one run more at most."""


@dataclass(frozen=True)
class Kept:
    """Hold the rows that were kept, and the number of those that were dropped, by the reason."""

    rows: tuple[TrainingRow, ...]
    dropped: Mapping[str, int]


def read_evaluated(paths: Iterable[Path]) -> Evaluated:
    """Return what files of evaluation rows hold, in a form that `demur-bench judges` reads.

    Raises:
        ValueError: A file cannot be read, or has another form. The message says where.
    """
    files = {str(path): path for path in paths}
    found = aggrefact.read(files) if files else ()
    claims, runs = set[str](), set[int]()
    for row in found:
        claims.add(" ".join(_words(row.answers[0].text)))
        runs |= _runs("\n\n".join(row.contexts))
    return Evaluated(frozenset(claims), frozenset(runs))


def deduplicated(rows: Iterable[TrainingRow], evaluated: Evaluated) -> Kept:
    """Return the rows that are not evaluated, each once.

    A row is dropped if its claim is the claim of an evaluation row, but for punctuation and
    capitals, or if more than `MOST_SHARED` of the ten-word runs of its passages occur in the
    passages of evaluation rows.
    """
    kept: dict[tuple[str, str, str], TrainingRow] = {}
    dropped: Counter[str] = Counter()
    for row in rows:
        words = _words(row.shown)
        own = " ".join(_words(row.claim))
        key = (" ".join(_words(row.passages)), " ".join(words), row.label)
        runs = _runs(row.passages)
        shared = len(runs & evaluated.runs)
        if key in kept:
            dropped[REPEATED] += 1
        elif len(words) >= _SHORTEST_CLAIM and not evaluated.claims.isdisjoint((own, key[1])):
            dropped[CLAIM_EVALUATED] += 1
        elif shared > max(2, MOST_SHARED * len(runs)):
            dropped[PASSAGES_EVALUATED] += 1
        else:
            kept[key] = row
    return Kept(tuple(kept.values()), dict(dropped))


def split(
    rows: Sequence[TrainingRow], one_in: int = 60
) -> tuple[list[TrainingRow], list[TrainingRow]]:
    """Split rows into those to train on and those to look at, one in `one_in`.

    The passages decide by their hash. So all rows about the same passages are on the same side, and
    more rows move none of the earlier ones.
    """
    train: list[TrainingRow] = []
    held: list[TrainingRow] = []
    for row in rows:
        digest = hashlib.sha256(row.passages.encode("utf-8", "replace")).digest()
        (train if int.from_bytes(digest[:8], "big") % one_in else held).append(row)
    return train, held


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _runs(text: str) -> set[int]:
    words = _words(text)
    return {hash(tuple(words[at : at + RUN])) for at in range(len(words) - RUN + 1)}
