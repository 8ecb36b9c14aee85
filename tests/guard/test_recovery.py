from __future__ import annotations

from typing import Any

import pytest

from demur import Abstain, Annotate, Block, Evaluation, Regenerate
from demur.guard import Feedback
from demur.guard.recovery import make_policy

FEEDBACK = Feedback(
    question=None,
    answer="so",
    evaluations=(Evaluation(name="judge", passed=False, explanation="too short"),),
)


@pytest.mark.parametrize(
    ("on_fail", "max_attempts", "attempts", "final"),
    [
        (None, None, 2, Abstain()),
        (None, 1, 1, Abstain()),
        (None, 5, 5, Abstain()),
        (Block(), None, 1, Block()),
        (Block(), 3, 3, Block()),
        ("block", None, 1, Block()),
        ("abstain", None, 1, Abstain()),
        ("annotate", 2, 2, Annotate()),
        (Abstain("No."), None, 1, Abstain("No.")),
        ("regenerate", None, 2, Abstain()),
        (Regenerate(), 4, 4, Abstain()),
        ([Regenerate(), Block()], None, 2, Block()),
        (("regenerate", "annotate"), None, 2, Annotate()),
        ([], None, 1, Abstain()),
    ],
)
def test_policy(on_fail: Any, max_attempts: int | None, attempts: int, final: Any) -> None:
    policy = make_policy(on_fail, max_attempts)
    assert (policy.attempts, policy.final) == (attempts, final)


def test_how_to_regenerate_is_kept() -> None:
    again = Regenerate(with_input=lambda given, feedback: given)
    assert make_policy([again, Block()], None).regenerate is again


@pytest.mark.parametrize(
    ("on_fail", "max_attempts", "error", "message"),
    [
        ("retry", None, TypeError, "got 'retry'"),
        (3, None, TypeError, "Regenerate.*got int"),
        (Block, None, TypeError, "got <class"),
        ([Block(), Regenerate()], None, ValueError, "expected Regenerate first"),
        ([Regenerate(), Regenerate()], None, ValueError, "expected Regenerate first"),
        ([Abstain(), Block()], None, ValueError, "one of Abstain, Annotate and Block"),
        (None, 0, ValueError, "max_attempts must be at least 1, got 0"),
    ],
)
def test_what_does_not_go_together(
    on_fail: Any, max_attempts: int | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make_policy(on_fail, max_attempts)


def test_a_note_says_what_does_not_hold() -> None:
    assert "too short" in Annotate().text(FEEDBACK)
    assert Annotate(lambda feedback: f"({feedback.answer}?)").text(FEEDBACK) == "(so?)"
