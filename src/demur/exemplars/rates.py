"""How often one of two answers wins: verdicts of a judge -> win rates with their intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from demur._share import Share
from demur.exemplars.judge import PairwiseVerdict


@dataclass(frozen=True)
class WinRates:
    """How often the first answer is better than the second one."""

    wins: int
    """Verdicts for the first answer, in both orders."""
    losses: int
    """Verdicts for the second one."""
    inconsistent: int
    """Verdicts whose winner changed with the order."""
    unsure: int
    same: int
    undetermined: int
    shown_first: int
    """Replies that chose the answer shown first."""
    letters: int
    """Replies that chose an answer: A or B."""

    @property
    def ties(self) -> int:
        """Inconsistent, unsure and same."""
        return self.inconsistent + self.unsure + self.same

    @property
    def decided(self) -> Share:
        """Wins of what is consistent, the rest being removed (version 1, Table 7; v2, Table 6)."""
        return Share(self.wins, self.wins + self.losses)

    @property
    def with_ties(self) -> tuple[Share, Share, Share]:
        """Wins, ties, losses of all that is not undetermined (version 1, Table 6; v2, Table 5)."""
        total = self.wins + self.ties + self.losses
        return Share(self.wins, total), Share(self.ties, total), Share(self.losses, total)

    @property
    def position_bias(self) -> Share:
        """The choices that fell on the answer shown first.

        As each answer is shown first once, 0.5 is no bias, and 1 a judge that sees only the order.
        """
        return Share(self.shown_first, self.letters)


def win_rates(verdicts: Sequence[PairwiseVerdict]) -> WinRates:
    """How often the first answer wins, and what is removed to say so: one verdict per question."""
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
