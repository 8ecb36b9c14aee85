"""Which runs of a log are meant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from demur.schema import Finding

By = Literal["evaluator", "model", "day"]
"""What sums may be told apart by."""


@dataclass(frozen=True)
class Filters:
    """Which runs of a log. Without any, all.

    `evaluator` and `finding` are about what one evaluator says of one answer of the run, of a
    guard's any attempt; where it judged sentence by sentence, about the worst finding.

    Raises:
        ValueError: A value is none of those expected.
    """

    evaluator: str | None = None
    """The name of an evaluator that judged it."""
    finding: Finding | None = None
    """What an evaluator says."""
    model: str | None = None
    """The chat model that answered."""
    since: datetime | None = None
    """The earliest end of the run."""
    until: datetime | None = None
    """The run ended before."""
    text: str | None = None
    """Stands in the question or the last answer, in letters of either case. Which letters have two
    is known to Unicode, and in PostgreSQL to the database's collation."""

    def __post_init__(self) -> None:
        if self.finding is not None and self.finding not in get_args(Finding):
            known = ", ".join(get_args(Finding))
            raise ValueError(f"finding: expected one of {known}, got {self.finding!r}")
        for name in ("since", "until"):
            time = getattr(self, name)
            if time is not None and time.tzinfo is None:
                raise ValueError(f"{name}: expected a time with a time zone, got {time}")


EVERY = Filters()
"""Matches every run."""
