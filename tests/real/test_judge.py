"""The judge of two answers on the real local model: what is plain."""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

from demur.exemplars import Comparison, PairwiseJudge, win_rates

pytestmark = pytest.mark.real

PLAIN = (
    ("What do bees make?", "Bees make honey and wax.", "Green the of chair running seven."),
    ("What language is spoken in Brazil?", "Mostly Portuguese.", "Mostly Finnish."),
)
"""A right answer, and one that is no answer or plainly wrong."""


def test_what_is_plain_is_told_in_both_orders(model: BaseChatModel) -> None:
    verdicts = PairwiseJudge(model).batch(
        [Comparison(question=q, first=right, second=wrong) for q, right, wrong in PLAIN]
    )
    rates = win_rates(verdicts)
    assert (rates.wins, rates.losses, rates.undetermined) == (2, 0, 0), verdicts
    assert sum(verdict.usage.calls for verdict in verdicts) == 4
