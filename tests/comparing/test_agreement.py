"""Test Cohen's kappa by its properties, and how raters are compared in slices."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from langchain_core.documents import Document

from demur.calibration import best_f1, percentile
from demur.comparing import Agreed, agreements, slices
from demur.comparing.figures import kappa
from demur.guard import Attempt
from support.records import attempt

ANSWERS = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3)), max_size=40)
"""Lists of what two raters say, and of how often each answer counts."""
Drawn = list[tuple[bool, bool, int]]


def _kappa(one: Any, other: Any, weights: Any = None) -> float:
    weights = np.ones(len(one)) if weights is None else weights
    return float(kappa(np.array(one, bool), np.array(other, bool), np.array(weights, float)))


def _plain(drawn: Drawn) -> float | None:
    """Return kappa by its definition, answer by answer, or None if it is not defined."""
    said = [(one, other) for one, other, times in drawn for _ in range(times)]
    if len(set(said)) < 2 and all(one == other for one, other in said):
        return None
    agree = sum(one == other for one, other in said) / len(said)
    chance = 0.0
    for label in (True, False):
        first = sum(one is label for one, _ in said) / len(said)
        chance += first * sum(other is label for _, other in said) / len(said)
    return (agree - chance) / (1 - chance)


# -- the formula -----------------------------------------------------------------------------------


def test_kappa_worked_out_by_hand() -> None:
    # They agree on 35 of 50. By chance it would be 0.5 * 0.6 + 0.5 * 0.4 = 0.5 of them.
    one = [True] * 25 + [False] * 25
    other = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15
    assert _kappa(one, other) == pytest.approx((0.7 - 0.5) / 0.5)


@given(ANSWERS)
def test_kappa_is_its_definition_with_answers_as_often_as_they_count(drawn: Drawn) -> None:
    found = _kappa(*([each[at] for each in drawn] for at in range(3)))
    expected = _plain(drawn)
    if expected is None:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(expected, abs=1e-12)
        assert -1 - 1e-12 <= found <= 1 + 1e-12


@given(ANSWERS)
def test_kappa_is_that_of_scikit_learn(drawn: Drawn) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    assume(_plain(drawn) is not None)
    one, other, weights = ([each[at] for each in drawn] for at in range(3))
    theirs = metrics.cohen_kappa_score(one, other, sample_weight=weights)
    assert _kappa(one, other, weights) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("label", [True, False])
def test_kappa_is_not_defined_where_both_always_say_the_same_and_0_where_only_one_does(
    label: bool,
) -> None:
    assert math.isnan(_kappa([label] * 4, [label] * 4))
    assert _kappa([label] * 4, [True, False, True, False]) == 0
    assert math.isnan(_kappa([], []))


# -- of a threshold --------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), min_size=2).filter(
        lambda drawn: len({label for _, label in drawn}) == 2 and len(set(drawn)) > 2
    )
)
def test_a_threshold_has_the_kappa_of_its_decisions_and_the_labels(
    drawn: list[tuple[float, bool]],
) -> None:
    scores, labels = zip(*drawn, strict=True)
    try:
        threshold = best_f1(scores, labels)
    except ValueError:
        assume(False)
    assert threshold.kappa is not None
    value, low, high = threshold.kappa
    assert value == pytest.approx(_kappa([s < threshold.value for s in scores], labels), abs=1e-9)
    assert -1 <= low <= value + 1e-12
    assert value - 1e-12 <= high <= 1
    assert low < high


def test_a_threshold_without_labels_or_with_one_label_has_no_kappa() -> None:
    assert percentile([0.1, 0.2, 0.9], 50).kappa is None
    one = best_f1([0.1, 0.9], [True, False])
    assert one.model_copy(update={"hallucinated": 0, "passed_hallucinated": 0}).kappa is not None
    passed = {"hallucinated": 0, "passed_hallucinated": 0, "passed": 2}
    assert one.model_copy(update=passed).kappa is None


def test_the_interval_of_a_threshold_is_not_certain_of_a_few_answers() -> None:
    threshold = best_f1([0.1] * 5 + [0.9] * 5, [True] * 5 + [False] * 5)
    assert threshold.kappa is not None
    value, low, high = threshold.kappa
    assert (value, high) == (1, 1)
    assert low < 0.5


# -- raters ----------------------------------------------------------------------------------------


def _raters(count: int = 40) -> dict[str, dict[str, bool]]:
    """Return a judge that is wrong about each eighth answer, and a person."""
    truth = {f"a{at}": at % 2 == 0 for at in range(count)}
    judge = {id: label is not (at % 8 == 0) for at, (id, label) in enumerate(truth.items())}
    return {"judge": judge, "anna": truth}


def _one(raters: Any, groups: Any = None, **slices: Any) -> Agreed:
    every = {"all": [*next(iter(raters.values()))], **slices}
    ids = {id: id for said in raters.values() for id in said} if groups is None else groups
    (found,) = (one for one in agreements(raters, ids, every) if one.slice == [*every][-1])
    return found


def test_two_raters_agree_on_what_both_decided() -> None:
    raters = _raters()
    raters["judge"].pop("a1")
    raters["anna"]["elsewhere"] = True
    found = _one(raters)
    shared = raters["judge"].keys() & raters["anna"].keys()
    columns = [[said[id] for id in sorted(shared)] for said in raters.values()]
    assert (found.raters, found.answers, found.same) == (("judge", "anna"), 39, 34)
    value = _kappa(*columns)
    assert found.kappa.value == pytest.approx(value)
    assert found.kappa.interval is not None
    low, high = found.kappa.interval
    assert low < value < high
    assert found.why is None


def test_people_are_compared_with_each_other_too() -> None:
    raters = {**_raters(), "ben": _raters()["anna"]}
    found = [*agreements(raters, {id: id for id in raters["anna"]}, {"all": [*raters["anna"]]})]
    assert [one.raters for one in found] == [("judge", "anna"), ("judge", "ben"), ("anna", "ben")]
    assert found[-1].kappa.value == 1


def test_answers_to_one_question_are_not_independent() -> None:
    raters = _raters(80)
    alone, grouped = _one(raters), _one(raters, {f"a{at}": str(at // 8) for at in range(80)})
    assert alone.kappa.value == grouped.kappa.value
    assert alone.kappa.interval != grouped.kappa.interval
    together = _one(raters, dict.fromkeys(raters["anna"], "one question"))
    assert together.kappa.interval is None
    assert together.why is not None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([True, False] * 9, "no interval: below 20 answers, 5 of a label or 2 questions"),
        ([True] * 4 + [False] * 60, "no interval: below 20 answers, 5 of a label or 2 questions"),
        ([True] * 30, "both always say the same, so kappa is not defined"),
        ([True] * 5 + [False] * 15, None),
    ],
)
def test_few_answers_and_rare_labels_have_no_interval_and_say_so(
    said: list[bool], why: str | None
) -> None:
    labels = {f"a{at}": label for at, label in enumerate(said)}
    found = _one({"judge": labels, "anna": labels})
    assert found.why == why
    assert (found.kappa.interval is None) is (why is not None)
    assert found.kappa.value == (1 if len({*said}) == 2 else None)


def test_a_slice_has_the_answers_that_are_in_it_and_an_empty_one_is_left_out() -> None:
    raters = _raters()
    found = _one(raters, part=["a0", "a1", "a2", "nobody"])
    assert (found.slice, found.answers, found.same) == ("part", 3, 2)
    groups = {id: id for id in raters["anna"]}
    assert [*agreements(raters, groups, {"none": ["nobody"]})] == []


# -- slices ----------------------------------------------------------------------------------------


def _attempt(text: str, *sources: str | None) -> Attempt:
    contexts = [
        Document(page_content="x", metadata={} if source is None else {"source": source})
        for source in sources
    ]
    return attempt(answer=text).model_copy(update={"contexts": tuple(contexts)})


def test_answers_are_sliced_by_language_length_and_each_source() -> None:
    found = slices(
        {
            "en": _attempt("The tower is in the middle of the old town.", "/docs/a.md", "b.md"),
            "de": _attempt("Der Turm ist in der alten Stadt, und er ist hoch.", "b.md", "b.md"),
            "name": _attempt("Lund", None),
        }
    )
    assert found == {
        "language: English": ["en"],
        "language: German": ["de"],
        "language: not recognised": ["name"],
        "words: below 10": ["name"],
        "words: 10 to 10": ["en"],
        "words: from 11": ["de"],
        "source: a.md": ["en"],
        "source: b.md": ["en", "de"],
    }


def test_answers_of_one_length_are_one_bin_and_no_answers_have_no_slices() -> None:
    found = slices({str(at): _attempt("one two three") for at in range(7)})
    assert [name for name in found if name.startswith("words")] == ["words: from 3"]
    assert slices({}) == {}


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_each_answer_is_in_one_bin_of_lengths_and_bins_do_not_overlap(lengths: list[int]) -> None:
    found = slices({str(at): _attempt("word " * n) for at, n in enumerate(lengths)})
    bins = [ids for name, ids in found.items() if name.startswith("words")]
    assert sorted(id for ids in bins for id in ids) == sorted(map(str, range(len(lengths))))
    for shorter, longer in pairwise(bins):
        assert max(lengths[int(id)] for id in shorter) < min(lengths[int(id)] for id in longer)
