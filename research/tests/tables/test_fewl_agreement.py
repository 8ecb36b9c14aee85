"""Test the similarity that asks a model whether two answers agree."""

from __future__ import annotations

import math

import pytest
from langchain_core.language_models import FakeListChatModel

from demur import DemurError
from demur_research.tables.fewl.agreement import Agreement, share_of_yes


@pytest.mark.parametrize(
    ("tokens", "share"),
    [
        ({"yes": math.log(0.6), "no": math.log(0.2), "maybe": -2.0}, 0.75),
        ({"Yes": math.log(0.3), " yes": math.log(0.3), "NO.": math.log(0.2)}, 0.75),
        ({"no": -0.1}, 0.0),
    ],
)
def test_the_share_of_yes(tokens: dict[str, float], share: float) -> None:
    assert share_of_yes(tokens) == pytest.approx(share)


def test_it_says_what_it_cannot_read() -> None:
    with pytest.raises(DemurError, match="neither yes nor no"):
        share_of_yes({"perhaps": -0.1})
    silent = Agreement(FakeListChatModel(responses=["yes"]))
    with pytest.raises(DemurError, match="log-probabilities"):
        silent([("a", "b")])
