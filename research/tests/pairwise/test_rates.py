"""Test win rates: every verdict is counted once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.schema import Share
from demur_research.pairwise import PairwiseVerdict, win_rates

FIRST = PairwiseVerdict(winner="first", reason="consistent", choices=("A", "B"))
SECOND = PairwiseVerdict(winner="second", reason="consistent", choices=("B", "A"))
ALWAYS_A = PairwiseVerdict(winner=None, reason="inconsistent", choices=("A", "A"))
ALWAYS_B = PairwiseVerdict(winner=None, reason="inconsistent", choices=("B", "B"))
UNSURE = PairwiseVerdict(winner=None, reason="unsure", choices=("A", "C"))
SAME = PairwiseVerdict(winner=None, reason="same")
FAILED = PairwiseVerdict(winner=None, reason="undetermined", choices=("B", None), error="away")


def test_win_rates_tell_what_was_removed_and_what_was_tied() -> None:
    verdicts = [FIRST] * 6 + [SECOND] * 2 + [ALWAYS_A] * 3 + [UNSURE] + [SAME] * 2 + [FAILED] * 2
    found = win_rates(verdicts)
    assert (found.wins, found.ties, found.losses) == (6, 6, 2)
    assert found.decided == Share(6, 8)
    assert found.with_ties == (Share(6, 14), Share(6, 14), Share(2, 14))
    counts = found.inconsistent, found.unsure, found.same, found.undetermined
    assert counts == (3, 1, 2, 2)
    # "A" was chosen in half of the 16 choices of consistent verdicts, in all 6 of the inconsistent,
    # in 1 of 1, and in 0 of 2.
    assert found.position_bias == Share(8 + 6 + 1, 16 + 6 + 1 + 2)


@pytest.mark.parametrize("verdicts", [[], [FAILED.model_copy(update={"choices": (None, None)})]])
def test_nothing_gives_no_rate_and_no_number(verdicts: list[PairwiseVerdict]) -> None:
    found = win_rates(verdicts)
    for one in (found.decided, *found.with_ties, found.position_bias):
        assert (one.value, one.interval) == (None, None)
    assert found.undetermined == len(verdicts)


@given(st.lists(st.sampled_from([FIRST, SECOND, ALWAYS_A, ALWAYS_B, UNSURE, SAME, FAILED])))
def test_every_verdict_is_counted_once(verdicts: list[PairwiseVerdict]) -> None:
    found = win_rates(verdicts)
    told = Counter(verdict.winner or verdict.reason for verdict in verdicts)
    assert (found.wins, found.losses) == (told["first"], told["second"])
    assert found.ties == told["inconsistent"] + told["unsure"] + told["same"]
    assert found.wins + found.ties + found.losses + found.undetermined == len(verdicts)
