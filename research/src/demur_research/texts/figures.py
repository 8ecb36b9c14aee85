"""Hold claims with a figure that stands in no passage, and has to be worked out from them.

A right claim worked it out rightly. A wrong one slipped in the arithmetic, or read the wrong
numbers; in a few the figure is right and its direction is wrong ("fell by" for "rose by"). The
texts are our own invention. Their authors did not know how demur judges them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from demur_research.texts import rows_of

OPERATIONS = (
    *("sum", "difference", "product", "share", "percentage of an amount", "change", "mean"),
    *("fraction", "rounding", "clock", "dates", "units"),
)
"""What works the figure out. "share" is a part of a whole, "change" the percentage of a change,
"fraction" the same number in another notation, "clock" the time between two times of day, and
"dates" the time between two dates or years."""

FORMS = ("sentences", "list", "table", "data")
"""How a passage is laid out; "data" is JSON, or lines of a key and a value."""


@dataclass(frozen=True)
class WorkedOut:
    """Hold one claim, its passages, and the figure that is worked out from them."""

    id: str
    passage_id: str
    """The group of claims about the same passages."""
    language: str
    """The language of claim and passages, as a code of two letters."""
    form: str
    """How the passages are laid out; one of `FORMS`."""
    operation: str
    """What works the figure out; one of `OPERATIONS`."""
    passages: tuple[str, ...]
    """The whole texts of the passages; the figure may need more than one."""
    claim: str
    figure: str
    """The worked-out figure as the claim writes it."""
    right: str
    """The right figure in the same spelling. A wrong claim has it too if its direction is wrong."""
    supported: bool
    """Whether the claim follows from the passages."""
    held_out: bool
    """Whether the claim is set apart, unread, to measure a checker that was made on the others."""
    question: str | None = None
    """The question that the claim answers, if one was asked."""

    def __post_init__(self) -> None:
        """Refuse a claim whose fields contradict each other."""
        if self.operation not in OPERATIONS:
            raise ValueError(
                f"{self.id}: unknown operation {self.operation!r}; use {', '.join(OPERATIONS)}."
            )
        if self.form not in FORMS:
            raise ValueError(f"{self.id}: unknown form {self.form!r}; use {', '.join(FORMS)}.")
        if not self.passage.strip():
            raise ValueError(f"{self.id} has no passage; expected one or more.")
        if self.claim.count(self.figure) != 1:
            raise ValueError(f"{self.id}: {self.figure!r} does not stand in the claim just once.")
        if self.supported and self.figure != self.right:
            raise ValueError(
                f"{self.id}: expected the right figure {self.right!r}, for the claim is supported."
            )

    @property
    def passage(self) -> str:
        """Return all passages as one text, with a blank line between them."""
        return "\n\n".join(self.passages)


@cache
def worked_out_claims() -> tuple[WorkedOut, ...]:
    """Return all claims, in the order of the file."""
    rows = rows_of(Path(__file__).with_suffix(".jsonl"))
    groups = {
        row["id"]: {
            "passage_id": row["id"],
            "language": row["language"],
            "form": row["form"],
            "passages": tuple(row["passages"]),
            "held_out": row["held_out"],
        }
        for row in rows
        if "passages" in row
    }
    return tuple(
        WorkedOut(**groups[row["text"]], **{key: row[key] for key in row if key != "text"})
        for row in rows
        if "text" in row
    )
