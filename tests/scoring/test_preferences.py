"""Test how often one answer is scored above another, and what is refused."""

from collections.abc import Callable
from math import nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.scoring import Preference, best_of, preference

SCORES = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.2, 0.3]))
COUNTED = ("wins", "ties", "losses", "missing")


def counts(found: Preference) -> tuple[int, ...]:
    return tuple(getattr(found, name) for name in COUNTED)


# -- pairs -------------------------------------------------------------------------------------


def test_a_tie_is_no_win_and_what_is_missing_is_no_pair() -> None:
    found = preference([0.5, 0.4, 0.3, 0.2, None, 0.9], [0.1, 0.4, 0.4, 0.1, 0.3, None])
    assert counts(found) == (2, 1, 1, 2)
    assert found.rate == 0.5


def test_without_a_pair_there_is_no_rate() -> None:
    for found in (preference([], []), preference([None], [0.3])):
        assert found.rate is None
        assert found.interval is None


@given(st.lists(st.tuples(SCORES, SCORES), max_size=30))
def test_every_pair_is_counted_once(pairs: list[tuple[float | None, float | None]]) -> None:
    better, worse = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found, turned = preference(better, worse), preference(worse, better)
    assert sum(counts(found)) == len(pairs)
    assert counts(turned) == (found.losses, found.ties, found.wins, found.missing)
    if found.interval is not None:
        assert found.rate is not None
        assert 0 <= found.interval[0] <= found.rate <= found.interval[1] <= 1


def test_the_interval_is_that_of_questions_drawn_with_replacement() -> None:
    better, worse = [1.0] * 120 + [0.0] * 60 + [0.5] * 20, [0.5] * 200
    found = preference(better, worse)
    won = np.array(better) > np.array(worse)
    generator = np.random.default_rng(7)
    drawn = [won[generator.integers(200, size=200)].mean() for _ in range(4000)]
    assert found.interval == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.011)
    assert found.interval == pytest.approx(
        [0.6 - 1.96 * sqrt(0.24 / 200), 0.6 + 1.96 * sqrt(0.24 / 200)], abs=0.011
    )


def test_the_bootstrap_repeats_itself_for_a_seed() -> None:
    better, worse = list(np.linspace(0, 1, 97)), list(np.linspace(0.9, 0.3, 97))
    assert preference(better, worse, seed=3) == preference(better, worse, seed=3)
    assert len({preference(better, worse, seed=seed).interval for seed in range(20)}) > 1


# -- the best of several -----------------------------------------------------------------------


def test_the_best_answer_has_to_be_above_all_others() -> None:
    found = best_of(
        [0.9, 0.9, 0.9, 0.9, None], [[0.1, 0.8], [0.1, 0.9], [0.95, 0.1], [0.1, None], [0.2]]
    )
    assert counts(found) == (1, 1, 1, 2)
    assert found.rate == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: preference([0.1], [0.1, 0.2]), "better: 1, worse: 2"),
        (lambda: preference([nan], [0.1]), r"better\[0\]: expected a finite number"),
        (lambda: best_of([0.1], [[]]), r"others\[0\]: expected the score of at least one"),
    ],
)
def test_bad_input_is_refused_with_the_reason(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
