"""Compare pairs of answers by a judge, in both orders, as the FEWL papers do for win rates."""

from demur_research.pairwise.judge import Comparison, PairwiseJudge, PairwiseVerdict
from demur_research.pairwise.rates import WinRates, win_rates

__all__ = ["Comparison", "PairwiseJudge", "PairwiseVerdict", "WinRates", "win_rates"]
