"""Which candidates an eviction takes away."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from demur.exemplars.entries import Candidate, Entry, candidate_key, is_score


@dataclass(frozen=True)
class Eviction:
    """What is said of the candidates that go: all of it has to fit.

    Raises:
        ValueError: `below` is no finite number, or `before` no time with a zone.
    """

    answer: str | None = None
    """The answer itself."""
    below: float | None = None
    """They score less, and their scores count."""
    before: datetime | None = None
    """They were scored earlier."""

    def __post_init__(self) -> None:
        if self.below is not None and not is_score(self.below):
            raise ValueError(f"expected a finite number as below, got {self.below!r}")
        if self.before is not None and not _has_zone(self.before):
            raise ValueError(f"expected a time with a zone as before, got {self.before!r}")

    def keys(self, entry: Entry) -> list[str]:
        """The keys of those candidates of a question that go."""
        those = entry.all if self.below is None else entry.candidates
        keyed = ((candidate_key(candidate.answer), candidate) for candidate in those)
        return [key for key, entry in keyed if self._fits(key, entry)]

    def _fits(self, key: str, candidate: Candidate) -> bool:
        return (
            (self.answer is None or candidate_key(self.answer) == key)
            and (self.below is None or candidate.score < self.below)
            and (self.before is None or datetime.fromisoformat(candidate.scored_at) < self.before)
        )


def _has_zone(time: object) -> bool:
    return isinstance(time, datetime) and time.tzinfo is not None
