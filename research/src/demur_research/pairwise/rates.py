"""Compute how often the first of two answers wins, from verdicts of a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from demur.schema import Share
from demur_research.pairwise.judge import PairwiseVerdict


@dataclass(frozen=True)
class WinRates:
    """Count how often the first answer is better than the second one."""

    wins: int
    """The number of verdicts for the first answer, in both orders."""
    losses: int
    """The number of verdicts for the second answer, in both orders."""
    inconsistent: int
    """The number of verdicts whose winner changed with the order."""
    unsure: int
    same: int
    undetermined: int
    shown_first: int
    """The number of replies that chose the answer shown first."""
    letters: int
    """The number of replies that chose an answer: A or B."""

    @property
    def ties(self) -> int:
        """Return the number of verdicts that are inconsistent, unsure or same."""
        return self.inconsistent + self.unsure + self.same

    @property
    def decided(self) -> Share:
        """Return the share of wins among wins and losses (v1, Table 7; v2, Table 6)."""
        return Share(self.wins, self.wins + self.losses)

    @property
    def with_ties(self) -> tuple[Share, Share, Share]:
        """Return the shares of wins, ties and losses (v1, Table 6; v2, Table 5).

        They are shares of all verdicts that are not undetermined.
        """
        total = self.wins + self.ties + self.losses
        return Share(self.wins, total), Share(self.ties, total), Share(self.losses, total)

    @property
    def position_bias(self) -> Share:
        """Return the share of choices that fell on the answer shown first.

        Each answer is shown first once. So 0.5 means no bias, and 1 means a judge that looks only
        at the order.
        """
        return Share(self.shown_first, self.letters)


def win_rates(verdicts: Sequence[PairwiseVerdict]) -> WinRates:
    """Return the win rates of verdicts, one for each question."""
    reasons = Counter(verdict.reason for verdict in verdicts)
    winners = Counter(verdict.winner for verdict in verdicts)
    choices = Counter(choice for verdict in verdicts for choice in verdict.choices)
    return WinRates(
        wins=winners["first"],
        losses=winners["second"],
        inconsistent=reasons["inconsistent"],
        unsure=reasons["unsure"],
        same=reasons["same"],
        undetermined=reasons["undetermined"],
        shown_first=choices["A"],
        letters=choices["A"] + choices["B"],
    )
