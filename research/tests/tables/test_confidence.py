"""Test what the judges' probabilities mean, by hand and with a scripted judge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches import LocalJudge, made, row_of, says_its_support, sure, values
from demur_research.bench import Result
from demur_research.datasets.rows import LabelledRow
from demur_research.tables import confidence


def rows(name: str, *claims: tuple[float, bool]) -> list[LabelledRow]:
    return [
        sure(f"{name} {at}", support, right, name) for at, (support, right) in enumerate(claims)
    ]


def make(table: str, path: Path, data: list[LabelledRow], **options: str) -> Result:
    model = LocalJudge(script=says_its_support)
    return made(table, path, model, {"aggrefact": data}, options=options)


def test_the_error_is_the_mean_distance_between_probability_and_share() -> None:
    # Two ranges: 0.1 twice with none supported, and 0.9 twice with one supported.
    probabilities, supported = [0.1, 0.1, 0.9, 0.9], [False, False, True, False]
    assert confidence.calibration_error(probabilities, supported) == pytest.approx(
        [(2 * 0.1 + 2 * 0.4) / 4]
    )
    # In a draw that has the second and the third claim twice each, the ranges are 0.1 off.
    times = np.array([[0.0, 2.0, 2.0, 0.0]])
    assert confidence.calibration_error(probabilities, supported, times) == pytest.approx([0.1])


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_the_error_is_a_share(claims: list[tuple[float, bool]]) -> None:
    probabilities, supported = [one for one, _ in claims], [right for _, right in claims]
    (error,) = confidence.calibration_error(probabilities, supported)
    assert 0 <= error <= 1


@given(st.floats(-2, 2), st.floats(0.3, 3))
def test_the_fit_finds_the_temperature_and_the_shift_that_the_claims_have(
    shift: float, slope: float
) -> None:
    odds = np.linspace(-3, 3, 41)
    shares = 1 / (1 + np.exp(-(slope * odds + shift)))
    # Each of the odds stands with 1,000 claims, of which its share is supported.
    held = [at < round(1000 * share) for share in shares for at in range(1000)]
    features = np.repeat(np.stack([odds, np.ones_like(odds)], axis=1), 1000, axis=0)
    assert confidence.fitted(features, held) == pytest.approx([slope, shift], abs=0.02)


def test_a_judge_that_is_too_sure_is_mended_by_a_temperature(tmp_path: Path) -> None:
    # Of what has 0.9, two thirds are supported; of what has 0.1, one third.
    claims = [(0.9, at % 3 > 0) for at in range(120)] + [(0.1, at % 3 == 0) for at in range(120)]
    found = make("judges-confidence", tmp_path / "r", rows("agg_one", *claims), judges="local")
    (cooler,) = [
        row
        for row in found.rows
        if row.name.startswith("local, temperature") and "shift" not in row.name
    ]
    own = row_of(found, "local")
    error, after = (values(found, row.name)[2] for row in (own, cooler))
    assert error is not None
    assert after is not None
    assert error > 20 > 10 > after
    ranges = [row.name for row in found.rows if "from" in row.name]
    assert ranges == ["local, from 0 to 20 %", "local, from 80 to 100 %"]
    assert sum(row_of(found, name).items or 0 for name in ranges) == own.items


def test_a_claim_without_a_verdict_is_counted_and_not_used(tmp_path: Path) -> None:
    data = rows("agg_one", *[(0.9, True), (0.2, False), (0.8, False), (0.3, True)] * 10)
    unread = sure("unread", "unreadable", True, "agg_one")
    found = make("judges-confidence", tmp_path / "r", [*data, unread], judges="local")
    assert row_of(found, "local").undetermined == 1
    assert values(found, "local") == values(
        make("judges-confidence", tmp_path / "s", data, judges="local"), "local"
    )
