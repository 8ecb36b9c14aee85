from collections.abc import Callable
from itertools import combinations
from math import nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.scoring import Preference
from demur_research.ranking import (
    kendall_tau,
    pairwise_agreement,
    rank_models,
    tqa_metric,
)

COUNTED = ("wins", "ties", "losses", "missing")


def counts(found: Preference) -> tuple[int, ...]:
    return tuple(getattr(found, name) for name in COUNTED)


# -- two models, question by question ----------------------------------------------------------


def test_the_tqa_metric_is_the_best_correct_less_the_best_incorrect_similarity() -> None:
    assert tqa_metric([0.4, 0.7], [0.2, 0.1, 0.3]) == pytest.approx(0.7 - 0.3, abs=1e-12)


def test_a_metric_is_right_where_it_prefers_the_truer_answer() -> None:
    found = pairwise_agreement(
        first=[0.9, 0.1, 0.5, 0.9, 0.3, None, 0.2, 0.1],
        second=[0.1, 0.9, 0.5, 0.1, 0.6, 0.1, 0.1, 0.2],
        truth_first=[0.5, -0.5, 0.2, -0.1, 0.0, 0.1, None, 0.3],
        truth_second=[0.1, 0.5, 0.1, 0.2, 0.0, 0.0, 0.1, None],
    )
    assert counts(found.preference) == (2, 1, 1, 3)
    assert found.preference.rate == 0.5
    assert found.undecided == 1


# -- models ------------------------------------------------------------------------------------


def test_models_are_ranked_over_the_questions_that_all_have_scores_for() -> None:
    found = rank_models({"x": [0.1, 0.2, 0.3, None], "y": [0.4, None, 0.6, 0.1]})
    assert [(m.model, m.rank, m.missing) for m in found.models] == [("y", 1, 1), ("x", 2, 1)]
    assert [m.mean for m in found.models] == pytest.approx([0.5, 0.2], abs=1e-12)
    assert (found.questions, found.left_out) == (2, 2)
    assert (found.tau, found.tau_interval) == (None, None)
    equal = rank_models({"x": [0.5, 0.1], "y": [0.5, 0.1], "z": [0.0, 0.1]})
    assert [(m.model, m.rank) for m in equal.models] == [("x", 1), ("y", 1), ("z", 3)]


def test_all_models_are_resampled_by_the_same_questions() -> None:
    """Let one model always be slightly ahead: the order is certain, but the intervals overlap."""
    hard = np.random.default_rng(2).uniform(0, 1, size=50)
    found = rank_models({"x": list(hard), "y": list(hard + 0.01)}, {"x": 0.2, "y": 0.4})
    first, second = found.models
    assert first.model == "y"
    assert second.interval[1] > first.interval[0]
    assert found.tau == 1
    assert found.tau_interval == (1, 1)


def test_the_paper_s_ranking_agrees_with_its_truth() -> None:
    """Rank five models as in version 1, Table 4."""
    truth = {"base": 0.2999, "a-large": 0.2564, "a-base": 0.2510, "large": 0.2415, "003": 0.1954}
    means = {"base": 0.0401, "a-large": 0.0295, "a-base": 0.0211, "large": 0.0202, "003": -0.0027}
    found = rank_models({name: [mean, mean] for name, mean in means.items()}, truth)
    assert [m.model for m in found.models] == list(truth)
    assert found.tau == pytest.approx(1)
    swapped = {**means, "large": 0.0211, "a-base": 0.0202}
    found = rank_models({name: [mean, mean] for name, mean in swapped.items()}, truth)
    assert found.tau == pytest.approx(0.8)


def test_tau_is_undefined_where_the_truth_makes_no_difference() -> None:
    found = rank_models({"x": [0.1], "y": [0.2]}, {"x": 0.5, "y": 0.5})
    assert found.tau is None
    assert found.tau_interval is None


NUMBERS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12)


@given(NUMBERS)
@settings(max_examples=25)
def test_tau_b_is_what_its_definition_gives(pairs: list[tuple[int, int]]) -> None:
    found = kendall_tau([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    moves = [(a[0] - b[0], a[1] - b[1]) for a, b in combinations(pairs, 2)]
    in_order = sum(x * y > 0 for x, y in moves) - sum(x * y < 0 for x, y in moves)
    untied = sum(x != 0 for x, _ in moves) * sum(y != 0 for _, y in moves)
    assert found == (pytest.approx(in_order / sqrt(untied), abs=1e-12) if untied else None)
    # Of six pairs four are in order, one is reversed, and one is tied in the second.
    assert kendall_tau([1, 2, 3, 4], [1, 3, 2, 3]) == pytest.approx(3 / sqrt(6 * 5), abs=1e-12)


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pairwise_agreement([0.1], [0.1], [0.1], []), "truth_second: 0"),
        (lambda: tqa_metric([], [0.1]), "at least one"),
        (lambda: rank_models({"x": [nan]}), r"scores\['x'\]\[0\]: expected a finite number"),
        (lambda: rank_models({}), "at least one model"),
        (lambda: rank_models({"x": [0.1, None], "y": [None, 1]}), "x: 1 missing, y: 1 missing"),
        (lambda: rank_models({"x": [0.1]}, {"y": 0.1}), "truth: expected the models x, got y"),
        (lambda: kendall_tau([1, 2], [1]), "finite numbers that are equally long"),
    ],
)
def test_bad_input_is_refused_with_the_reason(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
