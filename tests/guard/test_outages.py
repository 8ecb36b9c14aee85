"""Test that an outage of the judge cannot be taken for a refusal because of a wrong answer."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from demur import (
    Abstain,
    Annotate,
    Budget,
    DemurError,
    Evaluation,
    Guard,
    RefChecker,
    Repair,
    Retrieve,
    Sample,
)
from demur.guard import REFUSAL, UNCHECKED, Feedback
from demur.runtime import CallPolicy
from support.fakes import ScriptedModel, saying
from support.guarded import Chain, judge, traced
from support.openai_server import Answer, openai_server
from support.streams import Telling

SECRET, SAID = "sk-very-secret-0123456789abcdef", "The tower is good, and 84 metres tall."
FACT = "The tower is 84 metres tall."
ONCE = CallPolicy(attempts=1)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def undecided(name: str) -> RunnableLambda[Sample, Evaluation]:
    """Return a judge that cannot decide, with a name that no other test has warned about."""

    def look(sample: Sample) -> Evaluation:
        raise RuntimeError(f"{SECRET} {sample.answer}")

    return RunnableLambda(look, name=name)


# --- Logged warnings -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "AuthenticationError 401"),
        (500, "APIError 500"),
        (None, "ConnectionError"),  # No server is running.
    ],
)
def test_a_judge_that_is_down_is_logged_with_what_kind_of_error(
    status: int | None, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with openai_server(lambda request, number: Answer(SAID, status=status or 200)) as server:
        name, model = f"checker {status}", server.model(api_key=SECRET)
        guard = Guard(
            Chain(SAID),
            RefChecker(model, call_policy=ONCE, name=name),
            contexts=lambda _: [FACT],
        )
        if status is not None:
            assert guard.invoke("How tall?") == UNCHECKED
    if status is None:  # The server is closed here.
        assert guard.invoke("How tall?") == UNCHECKED
    (warning,) = [one for one in warnings(caplog) if name in one]
    assert warning.startswith(f"{name} could not decide about an answer: ")
    assert f"{kind}." in warning
    assert not any(word in caplog.text for word in (SECRET, SAID, "Traceback"))


def test_contexts_that_cannot_be_found_are_logged_with_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = saying('("tower", "is", "tall")')
    chain = Chain(SAID)
    found = traced(Guard(chain, RefChecker(model, name="searching")), "How tall?")
    assert (found.output, found.trace.outcome) == (UNCHECKED, "evaluator_failed")
    assert found.trace.reason == "searching could not decide about attempt 1 (no contexts)"
    assert len(chain.inputs) == 1  # Another answer would not help.
    assert "searching could not decide about an answer: no contexts" in caplog.text
    assert "contexts=" in caplog.text


def test_many_streams_with_a_dead_judge_log_one_warning_and_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def dead(stage: str, messages: Any) -> str:
        raise ConnectionError(f"{SECRET} {messages}")

    checker = RefChecker(
        ScriptedModel(script=dead), claims="sentences", call_policy=ONCE, name="dead of 20"
    )
    guard: Any = Guard(
        Telling("The tower is 84 metres tall. It stands in Lund."),
        checker,
        streaming="sentence",
        contexts=lambda _: [FACT],
    )

    async def read() -> str:
        return "".join([chunk async for chunk in guard.astream("why?")])

    async def crowd() -> list[str]:
        return await asyncio.gather(*(read() for _ in range(20)))

    assert set(asyncio.run(crowd())) == {UNCHECKED}
    logged = [one for one in warnings(caplog) if "dead of 20" in one]
    assert len(logged) == 1
    assert len(warnings(caplog)) == 1
    assert not any(record.exc_info for record in caplog.records)
    assert SECRET not in caplog.text


def test_what_passes_or_fails_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    for said in ("good", "bad", ""):
        Guard(Chain(said), judge).invoke("why?")
    assert warnings(caplog) == []


# --- Texts in place of the answer ----------------------------------------------------------------


def test_the_refusal_says_which_of_the_two_it_is() -> None:
    own = Abstain("No.", unchecked="Later.")
    assert Guard(Chain("bad"), judge, on_fail=own).invoke("why?") == "No."
    assert Guard(Chain("good"), undecided("which"), on_fail=own).invoke("why?") == "Later."
    assert Guard(Chain("bad"), judge).invoke("why?") == REFUSAL
    assert Guard(Chain("good"), undecided("which")).invoke("why?") == UNCHECKED


def test_refusals_and_notes_may_be_functions() -> None:
    seen: list[Feedback] = []

    def german(feedback: Feedback) -> str:
        seen.append(feedback)
        return f"Nicht belegt: {feedback.question}"

    own = Abstain(german, unchecked=lambda feedback: f"Ungeprüft: {feedback.question}")
    assert Guard(Chain("bad"), judge, on_fail=own).invoke("Warum?") == "Nicht belegt: Warum?"
    assert [(one.answer, one.evaluations[0].name) for one in seen] == [("bad", "judge")]
    guard = Guard(Chain("good"), undecided("functions"), on_fail=own)
    assert guard.invoke("Warum?") == "Ungeprüft: Warum?"
    noted = Guard(Chain("bad"), judge, on_fail=Annotate(lambda feedback: "Vorsicht."))
    assert noted.invoke("Warum?") == "bad\n\nVorsicht."


def test_a_function_that_makes_no_text_lets_nothing_out() -> None:
    wrong: Any = lambda feedback: None  # noqa: E731
    with pytest.raises(
        DemurError, match="Abstain: the function returned a NoneType, expected a text"
    ):
        Guard(Chain("bad"), judge, on_fail=Abstain(wrong)).invoke("why?")


# --- A policy for undetermined answers -----------------------------------------------------------


class WithDocuments:
    """Decide once there are documents, or never if `is_down` is true."""

    def __init__(self, is_down: bool = False) -> None:
        self.asked, self.is_down = 0, is_down

    def __call__(self, sample: Sample) -> Evaluation:
        self.asked += 1
        if self.is_down or not sample.contexts:
            return Evaluation(name="judge", error="there is nothing to judge by")
        return Evaluation(name="judge", passed="84" in sample.answer)


def searching(reply: str = "It is 84 metres tall.") -> Retrieve:
    model = saying(reply)
    found: Any = RunnableLambda(lambda query: [Document(FACT)])
    return Retrieve(found, then=Repair(model))


def test_what_could_not_be_decided_is_answered_again_where_the_policy_says_so() -> None:
    guard = Guard(Chain("It is tall."), WithDocuments(), on_fail={"undetermined": searching()})
    found = traced(guard, "How tall?")
    assert (found.output, found.trace.outcome) == ("It is 84 metres tall.", "recovered")
    assert [one.verdict for one in found.trace.attempts] == ["undetermined", "passed"]


def test_a_judge_that_stays_down_is_asked_once_more_and_nothing_leaves() -> None:
    down = WithDocuments(is_down=True)
    policy = {"undetermined": searching(), "any": searching()}
    guard = Guard(Chain("It is tall."), down, on_fail=policy, budget=Budget(attempts=9))
    found = traced(guard, "How tall?")
    assert (found.output, found.trace.outcome) == (UNCHECKED, "evaluator_failed")
    assert down.asked == 2


@pytest.mark.parametrize("key", ["any", "other", "end"])
def test_no_other_key_is_for_what_could_not_be_decided(key: str) -> None:
    policy: Any = {key: Abstain() if key == "end" else searching()}
    found = traced(Guard(Chain("It is tall."), WithDocuments(), on_fail=policy), "How tall?")
    assert (len(found.trace.attempts), found.trace.outcome) == (1, "evaluator_failed")


def test_an_answer_is_not_let_through_because_attempts_are_used_up() -> None:
    policy = {"undetermined": searching()}
    for on_error, left in (("closed", UNCHECKED), ("open", "It is tall.")):
        guard = Guard(
            Chain("It is tall."),
            WithDocuments(),
            on_fail=policy,
            on_error=on_error,  # type: ignore[arg-type]
            budget=Budget(attempts=1),
        )
        assert guard.invoke("How tall?") == left
