"""Describe which runs of a log to read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from demur.schema import Finding

By = Literal["evaluator", "model", "day"]
"""What a summary can be grouped by."""


@dataclass(frozen=True)
class Filters:
    """Select runs of a log; without any filter, all runs.

    `evaluator` and `finding` must hold for the result of one evaluator on one answer of the run. In
    a guard's call, this may be the answer of any attempt. If the evaluator judged sentence by
    sentence, its worst finding counts.

    Raises:
        ValueError: `finding` is unknown, or a time has no time zone.
    """

    evaluator: str | None = None
    """The name of an evaluator that judged an answer of the run."""
    finding: Finding | None = None
    """The finding of an evaluator."""
    model: str | None = None
    """The chat model that answered."""
    since: datetime | None = None
    """The run ended at this time or later."""
    until: datetime | None = None
    """The run ended before this time."""
    text: str | None = None
    """A text that the question or the last answer contains, in upper or lower case. Letters are
    compared by the rules of Unicode; in PostgreSQL, by those of the database's collation."""

    def __post_init__(self) -> None:
        if self.finding is not None and self.finding not in get_args(Finding):
            known = ", ".join(get_args(Finding))
            raise ValueError(f"finding: expected one of {known}, got {self.finding!r}")
        for name in ("since", "until"):
            time = getattr(self, name)
            if time is not None and time.tzinfo is None:
                raise ValueError(f"{name}: expected a time with a time zone, got {time}")


EVERY = Filters()
"""The filter that matches every run."""
