from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI

from demur import (
    Abstain,
    Annotate,
    Block,
    Cite,
    Evaluation,
    Failure,
    Regenerate,
    Repair,
    Retrieve,
)
from demur.guard import Feedback
from demur.guard.policies import fitting, make_policy, prepared

LIBRARY = RunnableLambda(lambda query: [])
REPAIR = Repair("local")


def tell(given: Any, feedback: Feedback) -> Any:
    return given


FEEDBACK = Feedback(
    question=None,
    answer="so",
    evaluations=(Evaluation(name="judge", passed=False, explanation="too short"),),
)


@pytest.mark.parametrize(
    ("on_fail", "policy"),
    [
        (None, {"citation": Cite(), "any": Regenerate(), "end": Abstain()}),
        (Block(), {"end": Block()}),
        ("annotate", {"end": Annotate()}),
        (Abstain("No."), {"end": Abstain("No.")}),
        ("regenerate", {"any": Regenerate(), "end": Abstain()}),
        (REPAIR, {"any": REPAIR, "end": Abstain()}),
        ({}, {"end": Abstain()}),
        (
            {"end": "block", Failure.NEUTRAL: "regenerate", "any": REPAIR},
            {"neutral": Regenerate(), "any": REPAIR, "end": Block()},
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
        (3, TypeError, r"Repair\(model\) or Abstain.*got int"),
        ("repair", TypeError, "the name of a recovery that needs no arguments.*got 'repair'"),
        (Block, TypeError, "got the class Block: make one first, Block"),
        ([Block()], TypeError, "a mapping from failures to recoveries.*got list"),
        ({"neutral": 3}, TypeError, "got int"),
        ({"wrong": Block()}, ValueError, "no failure is called 'wrong'.*'neutral'"),
        ({"end": Regenerate()}, ValueError, "nothing is left to try.*got Regenerate"),
    ],
)
def test_what_is_no_policy(on_fail: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_policy(on_fail)


def test_by_default_a_model_that_is_given_answers() -> None:
    policy = make_policy(None, "local")
    assert list(policy) == ["vague", "citation", "any", "end"]
    assert policy["any"] == REPAIR
    assert isinstance(vague := policy["vague"], Repair)
    assert "Be specific" in vague.instruction


def test_by_default_a_retriever_is_asked_for_what_the_documents_do_not_speak_of() -> None:
    policy = make_policy(None, "local", retriever=LIBRARY)
    assert list(policy) == ["neutral", "unsupported", "mismatch", "vague", "citation", "any", "end"]
    assert (
        policy["neutral"]
        == policy["unsupported"]
        == policy["mismatch"]
        == Retrieve(LIBRARY, then=REPAIR)
    )


def test_a_framework_adapts_each_recovery_and_those_within() -> None:
    def adapt(recovery: Any) -> Any:
        return replace(recovery, tell=tell) if isinstance(recovery, Regenerate) else recovery

    policy = make_policy({"neutral": Retrieve(LIBRARY), "any": "regenerate"}, adapt=adapt)
    assert policy == {
        "neutral": Retrieve(LIBRARY, then=Regenerate(tell)),
        "any": Regenerate(tell),
        "end": Abstain(),
    }
    assert make_policy(None, adapt=adapt)["any"] == Regenerate(tell)


@settings(max_examples=25)
@given(st.lists(st.sampled_from(Failure), min_size=1), st.permutations([*Failure]))
def test_the_order_of_the_policy_decides(failures: list[Failure], order: list[Failure]) -> None:
    policy = make_policy({failure: Repair("local", instruction=failure) for failure in order})
    expected = [Repair("local", instruction=one) for one in order if one in failures]
    assert list(fitting(policy, failures)) == [*expected, Abstain()]


def test_a_failure_that_a_policy_does_not_name_ends_it() -> None:
    policy = make_policy({"neutral": Regenerate(), "end": Block()})
    assert list(fitting(policy, [Failure.VAGUE])) == [Block()]


def test_a_model_that_is_named_twice_is_one_with_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    named = Repair("openai:gpt-4o-mini")
    policy = prepared(make_policy({"neutral": Retrieve(LIBRARY, then=named), "any": named}))
    search, repair = policy["neutral"], policy["any"]
    assert isinstance(search, Retrieve)
    assert isinstance(search.then, Repair)
    assert isinstance(repair, Repair)
    assert isinstance(repair.model, ChatOpenAI)
    assert search.then.model is repair.model
    assert named.model == "openai:gpt-4o-mini"


def test_what_is_no_part_of_a_recovery_shows_when_it_is_made() -> None:
    with pytest.raises(TypeError, match=r"expected tell to be a function.*got 'Be brief.'"):
        Regenerate("Be brief.")  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(TypeError, match=r"expected then to be .*got Abstain"):
        Retrieve(LIBRARY, then=Abstain())  # type: ignore[arg-type]  # likewise


def test_a_recovery_shows_neither_its_model_nor_its_retriever() -> None:
    assert repr(Retrieve("postgres://user:secret@host", then=Repair("secret"))) == (
        "Retrieve(then=Repair(instruction=''))"
    )


def test_a_note_says_what_does_not_hold() -> None:
    assert "too short" in Annotate().text(FEEDBACK)
    assert Annotate(lambda feedback: f"({feedback.answer}?)").text(FEEDBACK) == "(so?)"
