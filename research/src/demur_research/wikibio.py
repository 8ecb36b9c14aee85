"""Reverse Validation on WikiBio-GPT3, from recorded replies: the paper's table 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demur_research.datasets.published import PublishedReplies
from demur_research.datasets.wikibio import Biography
from demur_research.detection import Ratio, share
from demur_research.replay import PERCENTAGE, Judging, chosen, replay


@dataclass(frozen=True)
class Row:
    """The figures of one method. No passage of the subset is factual."""

    method: str
    matcher: str | None
    passages: int
    """Those that were decided on."""
    rejected: int
    accuracy: Ratio
    """The share of passages that are rejected, in percent."""
    min_ratio: float | None
    """Of the rejected passages, the lowest share of sentences that are not accurate, in percent;
    None where none is rejected."""
    undetermined: int
    """Passages on which the method decides nothing: not in the figures."""
    missing: int
    """Passages without a record: not in the figures."""

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            **{"method": self.method, "matcher": self.matcher},
            **{"passages": self.passages, "rejected": self.rejected},
            **{"accuracy": self.accuracy.value, "accuracy_interval": self.accuracy.interval},
            **{"min_ratio": self.min_ratio, "undetermined": self.undetermined},
            **{"missing": self.missing},
        }


def table(
    passages: Sequence[Biography],
    records: PublishedReplies,
    matcher: str | None = None,
    percentage: float = PERCENTAGE,
) -> list[Row]:
    """One row for each method and matcher; with a matcher, those that it decides.

    Raises:
        ValueError: The matcher is not known, or there is nothing recorded that it decides on.
    """
    return [_row(one, passages) for one in chosen(replay(passages, records, percentage), matcher)]


def _row(one: Judging, passages: Sequence[Biography]) -> Row:
    verdicts = [one.verdicts[p.key] for p in passages if p.key in one.verdicts]
    decided = [verdict for verdict in verdicts if verdict is not None]
    ratios = [p.ratio for p in passages if one.verdicts.get(p.key)]
    return Row(
        method=one.method,
        matcher=one.matcher,
        passages=len(decided),
        rejected=len(ratios),
        accuracy=share(len(ratios), len(decided)),
        min_ratio=100 * min(ratios) if ratios else None,
        undetermined=len(verdicts) - len(decided),
        missing=len(passages) - len(verdicts),
    )
