"""Hold claims that passages disagree about, and claims about which they only seem to.

The passages of a case are those that a retriever would find for its question. Two of them are about
the claim, which repeats one. Either both speak of the same thing and say different things of it, or
the other one is about another product, place, year or group. The texts are our own invention. Their
authors did not know how demur judges them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from demur_research.texts import rows_of


@dataclass(frozen=True)
class Disputed:
    """Hold one claim and the passages that disagree about it, or only seem to."""

    id: str
    language: str
    """The language of all texts, as a code of two letters."""
    kind: str
    """What the claim tells: a price, a time, a name, a policy, and so on."""
    question: str
    passages: tuple[str, ...]
    """Three to five passages."""
    pair: tuple[int, int]
    """The indices of the two passages that are about the claim."""
    claim: str
    contested: bool
    """Whether the two passages disagree about the claim."""
    held_out: bool
    """Whether the claim is set apart, unread, to measure limits that were chosen on the others."""

    def __post_init__(self) -> None:
        """Refuse a pair that is none."""
        if len({*self.pair}) != 2 or not all(0 <= at < len(self.passages) for at in self.pair):
            raise ValueError(
                f"{self.id}: expected two different indices of its {len(self.passages)} passages, "
                f"got {self.pair}"
            )


@cache
def disputed_claims() -> tuple[Disputed, ...]:
    """Return all claims, in the order of the file."""
    return tuple(
        Disputed(**{**row, "passages": tuple(row["passages"]), "pair": tuple(row["pair"])})
        for row in rows_of(Path(__file__).with_suffix(".jsonl"))
    )
