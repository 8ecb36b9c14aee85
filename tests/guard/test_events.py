"""Test the events of a guarded call that callbacks receive."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler

from demur import Abstain, AnswerRejected, Block, Evaluation, Guard, Sample
from support.guarded import Heard


def judge(sample: Sample) -> Evaluation:
    passed = "good" in sample.answer
    return Evaluation(name="judge", score=float(passed), label="x", passed=passed)


def told(attempt: int, finding: str, score: float) -> tuple[str, dict[str, Any]]:
    of_attempt = {"attempt": attempt, "name": "judge", "finding": finding, "cause": None}
    return "demur.evaluation", {**of_attempt, "score": score, "label": "x", "passed": bool(score)}


EXPECTED = [
    told(1, "failed", 0.0),
    (
        "demur.decision",
        {"attempt": 1, "verdict": "failed", "action": "regenerate", "failures": ["other"]},
    ),
    told(2, "passed", 1.0),
    (
        "demur.outcome",
        {
            **{"outcome": "recovered", "reason": "attempt 2 passed", "limit": None, "attempts": 2},
            **{"refusal": None, "claims": [], "evidence": [], "citations": []},
        },
    ),
]


def test_each_score_and_decision_is_told() -> None:
    answers = iter(["bad", "good"])
    guard, mine = Guard(lambda _: next(answers), judge), Heard()
    guard.invoke("why?", {"callbacks": [mine]})
    assert mine.events == EXPECTED
    assert json.loads(json.dumps(mine.events)) is not None


async def test_they_are_among_the_streamed_events() -> None:
    answers = iter(["bad", "good"])
    guard = Guard(lambda _: next(answers), judge)
    events = [event async for event in guard.astream_events("why?", version="v2")]
    told = [(e["name"], e["data"]) for e in events if e["event"] == "on_custom_event"]
    assert told == EXPECTED
    (root,) = (e["run_id"] for e in events if not e["parent_ids"] and e["event"].endswith("_start"))
    assert {e["run_id"] for e in events if e["event"] == "on_custom_event"} == {root}


def test_a_block_is_told_before_it_is_raised() -> None:
    mine = Heard()
    with pytest.raises(AnswerRejected) as raised:
        Guard(lambda _: "bad", judge, on_fail=Block()).invoke("why?", {"callbacks": [mine]})
    assert mine.traces == [raised.value.trace]
    assert mine.events[-1][0] == "demur.outcome"
    assert mine.events[-1][1]["outcome"] == "blocked"


class _Follows(BaseCallbackHandler):
    """Record the trace, as a handler with `on_guard_end`."""

    def __init__(self, fails: bool = False) -> None:
        self.traces: list[Any] = []
        self.ids: list[Any] = []
        self.fails = fails

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.ids.append(kwargs["run_id"])

    def on_guard_end(self, trace: Any, *, run_id: Any) -> None:
        self.traces.append((trace, run_id))
        if self.fails:
            raise ValueError("no")


def test_a_handler_that_asks_for_it_is_told_the_trace() -> None:
    follows = _Follows()
    guard = Guard(lambda _: "bad", judge, on_fail=Abstain("No."))
    guarded = guard.with_trace().invoke("q", {"callbacks": [follows]})
    assert follows.traces == [(guarded.trace, follows.ids[0])]


def test_what_such_a_handler_raises_does_not_reach_the_chain(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fails = _Follows(fails=True)
    guard = Guard(lambda _: "good", judge)
    assert guard.invoke("q", {"callbacks": [fails]}) == "good"
    assert "_Follows.on_guard_end failed: ValueError: no" in caplog.text
    fails.raise_error = True
    with pytest.raises(ValueError, match="no"):
        guard.invoke("q", {"callbacks": [fails]})
