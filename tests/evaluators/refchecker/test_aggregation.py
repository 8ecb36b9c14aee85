from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from demur.evaluators import Summary, summarize
from demur.evaluators.refchecker.aggregation import Aggregation, aggregate, merge
from demur.schema import ABSTAIN, Claim, ClaimLabel, Evaluation

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION
Label = ClaimLabel | None

GAPPY = st.lists(st.sampled_from([E, N, C, None]), min_size=1, max_size=6)
MODES = st.sampled_from(["strict", "soft", "major"])
THRESHOLDS = st.sampled_from([None, 0.0, 0.25, 1 / 3, 0.5, 2 / 3, 0.8, 1.0])


def completions(labels: Sequence[Label]) -> list[list[ClaimLabel]]:
    return [list(full) for full in product(*([label] if label else [E, N, C] for label in labels))]


# -- over passages -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([N, C, E], E), ([C, N], C), ([N, N], N), ([C], C), ([], None), ([None], None),
        ([None, E], E), ([None, C], None), ([N, None], None),
    ],
)  # fmt: skip
def test_a_claim_is_supported_by_any_passage_else_contradicted_by_any(
    labels: list[Label], expected: Label
) -> None:
    assert merge(iter(labels)) is expected


@given(GAPPY)
def test_merging_has_a_label_exactly_when_no_completion_changes_it(labels: list[Label]) -> None:
    possible = {merge(full) for full in completions(labels)}
    assert merge(labels) is (possible.pop() if len(possible) == 1 else None)


# -- over claims -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregation", "labels", "threshold", "label", "passed"),
    [
        ("strict", [E, E], 0.5, E, True),
        ("strict", [E, N, C], 0.5, C, False),
        ("major", [E, E, C], 0.8, E, True),
        ("major", [E, N, C], 0.8, C, False),
        ("major", [N, N, E, C], 0.8, N, False),
        ("soft", [E, N, C], 1 / 3, E, True),
        ("soft", [E, N, C], 0.34, C, False),
    ],
)
def test_known_values(
    aggregation: Aggregation,
    labels: list[ClaimLabel],
    threshold: float | None,
    label: ClaimLabel,
    passed: bool | None,
) -> None:
    verdict = aggregate(labels, aggregation, threshold)
    assert verdict.determined
    assert (verdict.label, verdict.passed) == (label, passed)
    assert verdict.share.value == labels.count(E) / len(labels)
    assert verdict.share.bounds == (verdict.share.value, verdict.share.value)


def by_definition(labels: Sequence[ClaimLabel], aggregation: str, threshold: float | None) -> Label:
    worst = C if C in labels else N if N in labels else E
    if aggregation == "strict":
        return worst
    if aggregation == "soft":
        share = labels.count(E) / len(labels)
        return E if share >= (1.0 if threshold is None else threshold) else worst
    most = max(labels.count(label) for label in (E, N, C))
    return next(label for label in (C, N, E) if labels.count(label) == most)


@given(GAPPY, MODES, THRESHOLDS)
@example([None, None], "soft", 0.0)  # This is determined without any label.
@settings(max_examples=100)
def test_missing_labels_leave_it_open_exactly_when_a_completion_changes_the_decision(
    labels: list[Label], mode: Aggregation, threshold: float | None
) -> None:
    possible = {by_definition(full, mode, threshold) for full in completions(labels)}
    decided = possible if threshold is None else {label is E for label in possible}
    verdict = aggregate(labels, mode, threshold)
    assert verdict.determined is (len(decided) == 1)
    assert verdict.label is (possible.pop() if len(possible) == 1 else None)
    assert verdict.passed is (
        decided.pop() if threshold is not None and len(decided) == 1 else None
    )
    shares = [full.count(E) / len(full) for full in completions(labels)]
    assert verdict.share.bounds == (min(shares), max(shares))
    assert verdict.share.value == (None if None in labels else shares[0])


# -- over a data set ---------------------------------------------------------------------------


def evaluation(*labels: Label, passed: bool | None = None) -> Evaluation:
    claims = tuple(Claim(text="x", label=label) for label in labels)
    return Evaluation(name="RefChecker", label="Neutral", passed=passed, claims=claims)


def test_a_data_set_is_averaged_over_answers_with_abstentions_apart() -> None:
    found = [
        evaluation(E, E, E, C, passed=True),
        evaluation(N, passed=False),
        evaluation(E, None, N, passed=False),
        evaluation(None, passed=None),
        Evaluation(name="RefChecker", label=ABSTAIN),
        Evaluation(name="RefChecker", error="no labels", claims=(Claim(text="x", label=E),)),
    ]
    # The shares by answer are 3/4, 0 and 1/2 entailed; 0, 1 and 1/2 neutral; 1/4, 0 and 0
    # contradicted.
    assert summarize(iter(found)) == Summary(
        answers=6, nothing_to_check=1, undetermined=1, passed=1, failed=2, claims=7,
        entailment=pytest.approx(1.25 / 3), neutral=pytest.approx(0.5),
        contradiction=pytest.approx(0.25 / 3), unsupported=0.0,
    )  # fmt: skip


def test_a_data_set_without_claims_has_no_averages() -> None:
    found = summarize([Evaluation(name="x", label=ABSTAIN), Evaluation(name="x", error="e")])
    assert found.entailment is found.neutral is found.contradiction is None
    assert (found.claims, found.passed, found.failed) == (0, 0, 0)
