"""The judge of two answers on the real local model: what is plain, and what it cannot tell."""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

from demur.exemplars import Comparison, PairwiseJudge, win_rates

pytestmark = pytest.mark.real

PLAIN = (
    (
        "Why is the sky blue?",
        "Air scatters blue light from the sun more than red light.",
        "Because the sea paints it every night with a very large brush.",
    ),
    ("At what temperature does water freeze?", "At 0 degrees Celsius.", "At 75 degrees Celsius."),
    ("What do bees make?", "Bees make honey and wax.", "Green the of chair running seven."),
    (
        "How can I put out burning oil in a pan?",
        "Turn off the heat and cover the pan with a lid.",
        "Pour a bucket of water over it as fast as you can.",
    ),
    ("What language is spoken in Brazil?", "Mostly Portuguese.", "Mostly Finnish."),
    (
        "Is the earth flat?",
        "No, it is very nearly a sphere.",
        "Yes, and whoever sails too far falls off its edge.",
    ),
)
"""A right answer, and one that is plainly wrong or no answer."""


def test_what_is_plain_is_told_in_both_orders(model: BaseChatModel) -> None:
    verdicts = PairwiseJudge(model).batch(
        [Comparison(question=q, first=right, second=wrong) for q, right, wrong in PLAIN]
    )
    rates = win_rates(verdicts)
    # All 6 when this was written.
    assert rates.wins >= 5, verdicts
    assert (rates.losses, rates.undetermined) == (0, 0), verdicts
    assert sum(verdict.usage.calls for verdict in verdicts) == 12
    assert 0.4 <= (rates.position_bias.value or 0) <= 0.6
