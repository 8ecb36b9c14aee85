"""Test the pairwise judge with the real local model on a clear case."""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

pairwise = pytest.importorskip("demur_research.pairwise")
pytestmark = pytest.mark.real


@pytest.mark.smoke
def test_what_is_plain_is_told_in_both_orders(model: BaseChatModel) -> None:
    verdict = pairwise.PairwiseJudge(model).invoke(
        pairwise.Comparison(
            question="What language is spoken in Brazil?",
            first="Mostly Portuguese.",
            second="Mostly Finnish.",
        )
    )
    rates = pairwise.win_rates([verdict])
    assert (rates.wins, rates.losses, rates.undetermined) == (1, 0, 0), verdict
    assert verdict.usage.calls == 2
