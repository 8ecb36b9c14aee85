"""Hold claims about passages full of numbers and identifiers: one of them may be wrong.

Each claim has one number or one identifier that decides. A wrong claim is wrong in nothing else. A
right claim often spells it in another way than its passage. The texts are our own invention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from demur_research.texts import rows_of

WRONG_FORMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "number": (
            *("one digit", "year off by one", "unit", "power of ten", "swapped owners"),
            *("neighbouring cell", "date", "time"),
        ),
        "identifier": (
            *("one character changed", "two characters swapped", "one character missing"),
            "another of the passage",
        ),
    }
)
"""For each kind, what a wrong claim does to the string."""

RIGHT_FORMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "number": (
            *("rounded", "thousands", "decimal sign", "words", "unit spelled out"),
            *("date form", "time form", "as it stands"),
        ),
        "identifier": (
            *("case", "separators", "prefix", "slash or scheme", "call brackets"),
            "as it stands",
        ),
    }
)
"""For each kind, how a right claim spells the string."""


@dataclass(frozen=True)
class ExactClaim:
    """Hold one claim, its passage, and the number or identifier that decides."""

    id: str
    passage_id: str
    language: str
    """The language of claim and passage, as a code of two letters."""
    kind: str
    """What decides: "number" or "identifier"."""
    what: str
    """What the number or identifier is, such as "dose" or "order number"."""
    form: str
    """What was planted, or how the spelling differs; one of the forms of the kind."""
    claim: str
    passage: str
    """The whole text of the passage."""
    string: str
    """The number or identifier as the claim writes it."""
    stands: str
    """The right one, as the passage writes it."""
    supported: bool
    """Whether the passage supports the claim."""

    def __post_init__(self) -> None:
        """Refuse a claim whose fields contradict each other."""
        if self.kind not in WRONG_FORMS:
            raise ValueError(f"{self.id}: unknown kind {self.kind!r}; use number or identifier.")
        forms = (RIGHT_FORMS if self.supported else WRONG_FORMS)[self.kind]
        if self.form not in forms:
            raise ValueError(f"{self.id}: unknown form {self.form!r}; use {', '.join(forms)}.")
        if self.claim.count(self.string) != 1:
            raise ValueError(f"{self.id}: {self.string!r} does not stand in the claim just once.")
        if self.stands not in self.passage:
            raise ValueError(f"{self.id}: {self.stands!r} does not stand in the passage.")
        if (self.string == self.stands) != (self.form == "as it stands"):
            raise ValueError(f"{self.id}: the form {self.form!r} does not fit {self.string!r}.")


@cache
def exact_claims() -> tuple[ExactClaim, ...]:
    """Return all claims, in the order of the file."""
    rows = rows_of(Path(__file__).with_suffix(".jsonl"))
    texts = {row["id"]: row["text"] for row in rows if "text" in row}
    return tuple(
        ExactClaim(**{**row, "passage_id": row["passage"], "passage": texts[row["passage"]]})
        for row in rows
        if "text" not in row
    )
