"""Test LMvsLM: which model is asked what, what each model sees, and when it ends."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from langchain_core.messages import BaseMessage

from demur import Failure, Sample
from demur.evaluators import LMvsLM
from support.fakes import ScriptedModel, isolated

ANSWER = "Ilse Korn made the clock in 1911. It hangs in the hall."
QUESTION = "Tell me about the clock."


class Cast:
    """Play an examiner and an examinee that say these lines, stage by stage."""

    def __init__(self, **lines: list[str]) -> None:
        self.lines = {
            "examination": ["1. Who made the clock?"],
            "more": ["No."],
            "conclusion": ["Correct."],
            "testimony": ["1. Ilse Korn."],
            **lines,
        }
        self.examiner = ScriptedModel(script=self._say)
        self.examinee = ScriptedModel(script=self._say)

    def _say(self, stage: str, messages: Sequence[BaseMessage]) -> str:
        line = self.lines[stage].pop(0)
        if line == "fail":
            raise ValueError("out of order")
        return line

    def judge(self, **options: int) -> LMvsLM:
        return LMvsLM(self.examiner, examinee=self.examinee, **options)


def talk(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.type for message in messages]


@pytest.mark.parametrize(
    ("verdict", "label"), [("Correct.", "factual"), ("Incorrect.", "non-factual")]
)
def test_one_round_costs_four_calls(verdict: str, label: str) -> None:
    cast = Cast(conclusion=[verdict])
    found = cast.judge().invoke(Sample(question=QUESTION, answer=ANSWER))
    passed = label == "factual"
    assert (found.label, found.passed, found.score) == (label, passed, float(passed))
    assert found.failure is (None if passed else Failure.OTHER)
    assert found.usage.calls == 4
    assert cast.examiner.stages == ["examination", "more", "conclusion"]
    assert cast.examinee.stages == ["testimony"]
    assert found.details["rounds"] == 1
    assert found.details["dialogue"] == [
        {"by": "examiner", "said": "1. Who made the clock?"},
        {"by": "examinee", "said": "1. Ilse Korn."},
        {"by": "examiner", "said": "No."},
        {"by": "examiner", "said": verdict},
    ]


def test_the_examinee_sees_questions_and_nothing_else() -> None:
    cast = Cast(
        examination=[f"The passage: {ANSWER}\n1. Who made the clock?", "2. Where is it?"],
        more=["Yes.", "No."],
        testimony=["1. Ilse Korn.", "2. In the hall."],
    )
    cast.judge().invoke(Sample(question=QUESTION, answer=ANSWER))
    first, second = cast.examinee.requests
    assert isolated("inquiry", first) == "1. Who made the clock?"
    assert isolated("inquiry", second) == "2. Where is it?"
    for request in (first, second):
        assert talk(request) == ["system", "human"]
        text = str(request)
        assert ANSWER not in text
        assert QUESTION not in text
    assert "Ilse Korn" not in str(second)


def test_the_examiner_has_the_whole_conversation() -> None:
    cast = Cast(
        examination=["1. Who made the clock?", "2. Where is it?"],
        more=["Yes.", "No."],
        testimony=["1. Ilse Korn.", "2. In the hall."],
    )
    cast.judge().invoke(Sample(question=QUESTION, answer=ANSWER))
    last = cast.examiner.requests[-1]
    assert talk(last) == ["system", *["human", "ai"] * 4, "human"]
    assert [m.content for m in last if m.type == "ai"] == [
        "1. Who made the clock?",
        "Yes.",
        "2. Where is it?",
        "No.",
    ]
    assert isolated("passage", last) == ANSWER
    assert isolated("question", last) == QUESTION
    said = re.findall(r"<(testimony-\w+)>\n(.*?)\n</\1>", "\n".join(str(m.content) for m in last))
    assert [text for _, text in said] == ["1. Ilse Korn.", "2. In the hall."]


def test_questions_that_come_with_the_yes_are_asked_at_once() -> None:
    cast = Cast(more=["Yes. Where is it?", "No."], testimony=["1. Ilse Korn.", "2. In the hall."])
    found = cast.judge().invoke({"answer": ANSWER})
    assert cast.examiner.stages == ["examination", "more", "more", "conclusion"]
    assert isolated("inquiry", cast.examinee.requests[1]).endswith("Where is it?")
    assert found.details["rounds"] == 2


@pytest.mark.parametrize("rounds", [1, 3])
def test_after_the_last_round_the_verdict_is_asked_for(rounds: int) -> None:
    cast = Cast(examination=["1. Who?"] * 9, more=["Yes."] * 9, testimony=["1. Korn."] * 9)
    found = cast.judge(max_rounds=rounds).invoke({"answer": ANSWER})
    assert found.label == "factual"
    assert found.details["rounds"] == len(cast.examinee.stages) == rounds
    assert found.usage.calls == 1 + rounds + 2 * (rounds - 1) + 1
    assert talk(cast.examiner.requests[-1])[-2:] == ["ai", "human"]


def test_a_verdict_that_cannot_be_read_is_asked_for_once_more() -> None:
    cast = Cast(conclusion=["It depends.", "Incorrect"])
    found = cast.judge().invoke({"answer": ANSWER})
    assert found.label == "non-factual"
    assert [one["said"] for one in found.details["dialogue"][-2:]] == ["It depends.", "Incorrect"]
    twice = Cast(conclusion=["It depends.", "On the hall."]).judge().invoke({"answer": ANSWER})
    assert "'On the hall.'" in (twice.error or "")
    assert twice.passed is None
    assert twice.details["dialogue"][-1]["said"] == "On the hall."


@pytest.mark.parametrize(
    ("lines", "error", "said"),
    [
        ({"examination": ["fail"]}, "the examiner gave no reply: .*out of order", 0),
        ({"examination": [" "]}, "the examiner's reply is empty", 1),
        ({"testimony": ["fail"]}, "the examinee gave no reply: .*out of order", 1),
        ({"testimony": [""]}, "the examinee's reply is empty", 2),
        ({"conclusion": ["fail"]}, "out of order", 3),
    ],
    ids=["asks", "asks nothing", "answers", "answers nothing", "verdict"],
)
def test_a_conversation_that_breaks_off_is_undetermined(
    lines: dict[str, list[str]], error: str, said: int
) -> None:
    found = Cast(**lines).judge().invoke({"answer": ANSWER})
    assert re.search(error, found.error or "")
    assert (found.label, found.score, found.passed) == (None, None, None)
    assert len(found.details["dialogue"]) == said
