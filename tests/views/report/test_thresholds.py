"""Test the slider's figures, which are recounted answer by answer."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur import Threshold
from demur.views.report.embedding import as_data
from demur.views.report.rows import Column, Rows
from demur.views.report.thresholds import FEW, EvaluatorSection, evaluator_section

FINITE = st.floats(-1e300, 1e300)
JUDGED = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 1.0]), FINITE),
        st.sampled_from([True, False, None]),
    ),
    max_size=40,
)
PRINTS = {"model": "m", "prompts": "p"}


def _tell(
    judged: list[tuple[float | None, bool | None]],
    findings: list[Any] | None = None,
    threshold: Threshold | None = None,
    prints: Counter[Any] | None = None,
) -> EvaluatorSection:
    count = len(judged)
    rows = Rows(times=[*range(count)], labels=[label for _, label in judged])
    scores = [score for score, _ in judged]
    own = tuple(sorted(PRINTS.items()))
    number = count - scores.count(None)
    counted = prints if prints is not None else Counter({own: number})
    found = findings or [None if one is None else "scored" for one in scores]
    return evaluator_section(Column("RefChecker", found, scores, counted), rows, threshold)


def _given(**fields: Any) -> Threshold:
    """Return a threshold of 0.6 that was chosen for the scores of `_tell`."""
    counted = {"samples": 9, "passed": 5, "fingerprints": PRINTS}
    return Threshold.model_validate({"on_abstain": "pass", "value": 0.6, **counted, **fields})


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 5) if whole else None


@given(JUDGED)
def test_each_point_says_what_would_pass(judged: list[tuple[float | None, bool | None]]) -> None:
    told = _tell(judged)
    scored = [(score, label) for score, label in judged if score is not None]
    if not scored:
        assert told.slider is None
        assert "no threshold" in told.notices[0]
        return
    assert told.slider is not None
    points = told.slider.points
    as_data(points)
    assert points["total"] == len(scored)
    known = [(score, label) for score, label in scored if label is not None]
    wrong = sum(label for _, label in known)
    assert 0 <= told.slider.start <= told.slider.last
    assert set(points["thresholds"][:-1]) == {score for score, _ in scored}
    for at, threshold in enumerate(points["thresholds"][:-1]):
        assert points["passed"][at] == sum(score >= threshold for score, _ in scored)
        if not known:
            assert "f1" not in points
            continue
        held = [label for score, label in known if score < threshold]
        found = sum(held)
        assert points["leak"][at] == (None if not wrong else round(1 - round(found / wrong, 5), 5))
        assert points["precision"][at] == _ratio(found, len(held))
        assert points["recall"][at] == _ratio(found, wrong)
        assert points["f1"][at] == (_ratio(2 * found, len(held) + wrong) if wrong else None)
    assert points["passed"][-1] == 0
    assert all(len(chart.heads) == len(row) for chart in told.charts for row in chart.rows)


def test_the_slider_begins_at_the_threshold_that_was_given() -> None:
    guaranteed = {"method": "learn-then-test", "target": 0.05, "confidence": 0.9}
    known = {"samples": 500, "passed": 300, "hallucinated": 100, "passed_hallucinated": 1}
    given = _given(evaluator="RefChecker", **guaranteed, **known)
    told = _tell([(0.1, True), (0.6, False), (0.9, False)], threshold=given)
    assert told.slider is not None
    assert told.slider.points["thresholds"][told.slider.start] == 0.6
    assert told.given == "0.6"
    assert told.guarantee is not None
    assert "at most 5.0 % of hallucinated answers pass" in told.guarantee
    assert "90 %" in told.guarantee
    assert "500 answers, 100 of them hallucinated" in told.guarantee
    assert not told.notices
    above = _tell([(0.1, True)], threshold=given.model_copy(update={"value": 2.0})).slider
    assert above is not None
    assert above.start == above.last


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("best-f1", {"hallucinated": 3, "passed_hallucinated": 1}),
        ("percentile", {"percentile": 10.0}),
    ],
)
def test_a_threshold_without_guarantee_says_so(method: Any, more: dict[str, Any]) -> None:
    told = _tell([(0.1, None)], threshold=_given(method=method, **more))
    assert "guarantees nothing" in (told.guarantee or "")


def test_a_threshold_for_other_scores_is_told_apart() -> None:
    given = _given(method="percentile", percentile=20, fingerprints={"model": "other"})
    (notice,) = _tell([(0.1, None), (0.2, None), (None, None)], threshold=given).notices
    assert "2 scores of 2" in notice
    assert "guarantees nothing for them" in notice
    (notice,) = _tell(
        [(0.1, None)], threshold=given.model_copy(update={"fingerprints": {}})
    ).notices
    assert "does not say which models" in notice


def test_scores_that_depend_on_different_things_are_told_apart() -> None:
    prints = Counter({(("model", "a"), ("prompts", "x")): 3, (("model", "b"), ("prompts", "x")): 1})
    told = _tell([(0.1, None)] * 4, prints=prints)
    assert "cannot all be compared" in told.notices[0]
    (said,) = told.differences
    assert "model" in said
    assert "3" in said
    assert "prompts" not in said
    assert not _tell([(0.1, None)] * 4).differences


def test_the_slider_begins_where_the_evaluator_drew_the_line() -> None:
    judged: list[tuple[float | None, bool | None]] = [(0.2, None), (0.5, True), (0.7, None)]
    told = _tell(judged, findings=["failed", "passed", "passed"]).slider
    assert told is not None
    assert told.points["thresholds"][told.start] == 0.5
    assert "itself drew the line" in told.note
    mixed = _tell(judged, findings=["passed", "failed", "passed"]).slider
    assert mixed is not None
    assert "a tenth" in mixed.note  # All labels are of one kind, so there is no F1.
    both = _tell([(0.2, True), (0.5, False)]).slider
    assert both is not None
    assert both.points["thresholds"][both.start] == 0.5
    assert "best F1" in both.note


def test_curves_need_both_labels_and_say_when_there_are_few() -> None:
    def told(*judged: tuple[float | None, bool | None]) -> dict[str, str]:
        return {chart.key: chart.caption for chart in _tell([*judged]).charts}

    assert set(told((0.1, None))) == {"scores", "time", "thresholds"}
    assert "need both kinds" in told((0.1, True), (0.2, None))["curves"]
    assert "are not hallucinated" in told((0.1, False))["curves"]
    few = told((0.1, True), (0.2, False))
    assert "1 hallucinated, 1 not" in few["roc"]
    assert "says little" in few["reliability"]
    enough = [(0.1, True), (0.2, False)] * FEW
    assert "says little" not in told(*enough)["roc"]


@pytest.mark.parametrize("on_abstain", ["pass", "fail"])
def test_answers_that_state_nothing_are_counted_as_the_guard_treats_them(on_abstain: Any) -> None:
    judged = [(0.1, True), (0.6, False), (0.9, False), (None, True), (None, False), (None, None)]
    findings = ["scored"] * 3 + ["nothing_to_check"] * 3
    known = {"samples": 6, "passed": 2, "hallucinated": 2, "passed_hallucinated": 0}
    given = _given(on_abstain=on_abstain, method="best-f1", **known)
    told = _tell(judged, findings, given)
    passing = on_abstain == "pass"
    assert told.notices == (
        "3 answers state nothing to check. They have no score and "
        f"{'pass any' if passing else 'fail at any'} threshold, as in a guard with "
        f'on_abstain="{on_abstain}".',
    )
    assert told.slider is not None
    points = told.slider.points
    assert points["total"] == 6
    assert points["passed"] == ([6, 5, 4, 3] if passing else [3, 2, 1, 0])
    assert points["hallucinated"] == 2
    assert points["leak"] == ([1, 0.5, 0.5, 0.5] if passing else [0.5, 0, 0, 0])
    (roc,) = [chart for chart in told.charts if chart.key == "roc"]
    assert [row[0] for row in roc.rows].count("none") == 1
    assert "they are one end" in roc.caption
    # Without a threshold, they pass, as a guard passes them.
    alone = _tell(judged, findings).slider
    assert alone is not None
    assert alone.points["passed"] == [6, 5, 4, 3]
