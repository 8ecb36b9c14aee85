from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur import Abstain, Annotate, Block, Evaluation, Failure, Regenerate, Repair, Retrieve
from demur.guard import DEFAULT_POLICY, Feedback
from demur.guard.recovery import choose, make_policy

FEEDBACK = Feedback(
    question=None,
    answer="so",
    evaluations=(Evaluation(name="judge", passed=False, explanation="too short"),),
)


@pytest.mark.parametrize(
    ("on_fail", "policy"),
    [
        (None, {str(key): value for key, value in DEFAULT_POLICY.items()}),
        (Block(), {"end": Block()}),
        ("annotate", {"end": Annotate()}),
        (Abstain("No."), {"end": Abstain("No.")}),
        ("regenerate", {"any": Regenerate(), "end": Abstain()}),
        (Retrieve(), {"any": Retrieve(), "end": Abstain()}),
        ({}, {"end": Abstain()}),
        ({"end": "block", Failure.NEUTRAL: "repair"}, {"neutral": Repair(), "end": Block()}),
        (
            {**DEFAULT_POLICY, "contradiction": Block()},
            {**{str(k): v for k, v in DEFAULT_POLICY.items()}, "contradiction": Block()},
        ),
    ],
)
def test_policy(on_fail: Any, policy: Any) -> None:
    found = make_policy(on_fail)
    assert found == policy
    assert list(found)[-1] == "end"


@pytest.mark.parametrize(
    ("on_fail", "error", "message"),
    [
        ("retry", TypeError, "got 'retry'"),
        (3, TypeError, "Regenerate.*got int"),
        (Block, TypeError, "got <class"),
        ([Block()], TypeError, "a mapping from failures to recoveries.*got list"),
        ({"neutral": 3}, TypeError, "got int"),
        ({"wrong": Block()}, ValueError, "no failure is called 'wrong'.*'neutral'"),
        ({"end": Regenerate()}, ValueError, "nothing is left to try.*got Regenerate"),
    ],
)
def test_what_is_no_policy(on_fail: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_policy(on_fail)


@pytest.mark.parametrize(
    ("failures", "recovery"),
    [
        ([Failure.NEUTRAL], Retrieve()),
        ([Failure.CONTRADICTION], Regenerate()),
        ([Failure.CONTRADICTION, Failure.NEUTRAL], Retrieve()),
        ([Failure.MISMATCH], Retrieve()),
        ([Failure.VAGUE], DEFAULT_POLICY[Failure.VAGUE]),
        ([Failure.OTHER], Regenerate()),
    ],
)
def test_the_default_fits_the_failure(failures: list[Failure], recovery: Any) -> None:
    assert choose(make_policy(None), failures) == recovery


@given(st.lists(st.sampled_from(Failure), min_size=1), st.permutations([*Failure]))
def test_the_order_of_the_policy_decides(failures: list[Failure], order: list[Failure]) -> None:
    policy = make_policy({failure: Regenerate(str(failure)) for failure in order})
    first = next(failure for failure in order if failure in failures)
    assert choose(policy, failures) == Regenerate(str(first))


def test_a_failure_that_a_policy_does_not_name_ends_it() -> None:
    assert choose(make_policy({"neutral": Retrieve(), "end": Block()}), [Failure.VAGUE]) == Block()


def test_a_note_says_what_does_not_hold() -> None:
    assert "too short" in Annotate().text(FEEDBACK)
    assert Annotate(lambda feedback: f"({feedback.answer}?)").text(FEEDBACK) == "(so?)"
