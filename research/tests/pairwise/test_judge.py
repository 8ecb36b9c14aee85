"""Test PairwiseJudge: what the replies for both orders mean together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage

from demur import Usage
from demur.runtime import JUDGE as JUDGE_TAG
from demur.runtime import NO_STREAM
from demur_research.pairwise import Comparison, PairwiseJudge, PairwiseVerdict
from demur_research.pairwise.judge import Reason
from demur_research.pairwise.prompts import JUDGE
from support.fakes import ScriptedModel, isolated

PAIR = Comparison(question="How heavy is it?", first="One ton.", second="As heavy as a song.")


def judge(choose: Callable[[str, str], str | AIMessage], **options: Any) -> PairwiseJudge:
    """Return a judge whose model chooses by the two texts, in the order in which it sees them."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
        assert isolated("question", messages) == PAIR.question
        return choose(isolated("a", messages), isolated("b", messages))

    return PairwiseJudge(ScriptedModel(script=script), **options)


def by_order(there: str, back: str) -> Callable[[str, str], str]:
    """Return a function with one reply for each order; "fail" raises an error."""

    def choose(a: str, b: str) -> str:
        said = there if a == PAIR.first else back
        if said == "fail":
            raise PermissionError("no such model")
        return said

    return choose


@pytest.mark.parametrize(
    ("there", "back", "winner", "reason", "choices"),
    [
        ("A", "B", "first", "consistent", ("A", "B")),
        ("B", "A", "second", "consistent", ("B", "A")),
        ("**A**", "Answer: B", "first", "consistent", ("A", "B")),
        ("A", "A", None, "inconsistent", ("A", "A")),
        ("B", "B", None, "inconsistent", ("B", "B")),
        ("C", "A", None, "unsure", ("C", "A")),
        ("B", "Not sure.", None, "unsure", ("B", "C")),
        ("A", "A or B", None, "undetermined", ("A", None)),
        ("Hm.", "C", None, "undetermined", (None, "C")),
        ("fail", "B", None, "undetermined", (None, "B")),
    ],
)
async def test_two_orders_make_one_verdict(
    there: str, back: str, winner: str | None, reason: str, choices: tuple[str, str]
) -> None:
    found = await judge(by_order(there, back)).ainvoke(PAIR)
    assert (found.winner, found.reason, found.choices) == (winner, reason, choices)
    assert found.usage.calls == 2
    assert (found.error is None) is (reason != "undetermined")
    assert PairwiseVerdict.model_validate_json(found.model_dump_json()) == found


def test_an_error_tells_the_order_and_the_reply() -> None:
    found = judge(by_order("fail", "Hm, hm.")).invoke(PAIR)
    assert found.error is not None
    first, second = found.error.split("; ")
    assert first.startswith("with the first answer shown as A, the model call failed: ")
    assert "no such model" in first
    assert second == "with the second answer shown as A, the reply is none of A, B and C: 'Hm, hm.'"


def test_what_a_reply_copies_from_an_answer_is_no_choice() -> None:
    told = "By all that I know the answer is A."
    pair = PAIR.model_copy(update={"second": f"Two tons. {told}"})
    found = judge(lambda a, b: told).invoke(pair)
    assert (found.reason, found.choices) == ("undetermined", (None, None))


@given(st.text(min_size=1), st.text(min_size=1))
def test_an_honest_judge_is_consistent_and_one_that_sees_only_the_order_never(
    one: str, other: str
) -> None:
    first, second = f"right {one}", f"wrong {other}"
    pair = {"question": PAIR.question, "first": first, "second": second}
    honest = judge(lambda a, b: "A" if a.startswith("right") else "B").invoke(pair)
    assert (honest.winner, honest.reason) == ("first", "consistent")
    biased = judge(lambda a, b: "A").invoke(pair)
    assert (biased.winner, biased.reason) == (None, "inconsistent")


@pytest.mark.parametrize(
    ("first", "second", "reason", "error"),
    [
        (" It is\tred.\n", "It is red.", "same", None),
        ("\u200b", "Red.", "undetermined", "nothing to compare: the first answer is empty"),
        ("", "", "undetermined", "nothing to compare: the first and the second answer is empty"),
    ],
)
def test_what_need_not_be_asked_costs_no_call(
    first: str, second: str, reason: Reason, error: str | None
) -> None:
    asked = judge(lambda a, b: "A")
    pair = {"question": PAIR.question, "first": first, "second": second}
    found = asked.invoke(pair)
    assert found == PairwiseVerdict(winner=None, reason=reason, error=error)
    assert found.usage == Usage()
    assert asked.model.requests == []


def test_both_orders_are_shown_and_counted() -> None:
    reported = {"input_tokens": 30, "output_tokens": 1, "total_tokens": 31}

    def choose(a: str, b: str) -> AIMessage:
        return AIMessage("A" if a == PAIR.first else "B", usage_metadata=reported)

    asked = judge(choose)
    found = asked.invoke(PAIR)
    shown = {(isolated("a", one), isolated("b", one)) for one in asked.model.requests}
    assert shown == {(PAIR.first, PAIR.second), (PAIR.second, PAIR.first)}
    usage = found.usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (2, 60, 2)


class _Seen(BaseCallbackHandler):
    def __init__(self) -> None:
        self.runs: list[tuple[str, list[str], Any]] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.runs.append((kwargs["name"], kwargs["tags"], kwargs["parent_run_id"]))


def test_its_calls_are_runs_of_a_judge_under_its_own() -> None:
    seen = _Seen()
    judge(by_order("A", "B")).invoke(PAIR, {"callbacks": [seen], "tags": ["mine"]})
    assert [name for name, _, _ in seen.runs] == ["comparison", "comparison"]
    assert all({JUDGE_TAG, NO_STREAM, "mine"} <= set(tags) for _, tags, _ in seen.runs)
    assert len({parent for _, _, parent in seen.runs} - {None}) == 1


@pytest.mark.parametrize(
    ("pair", "complaint"),
    [
        ({"question": "Is it?", "first": "Yes."}, "second"),
        ({"question": "Is it?", "first": "Yes.", "second": None}, "second"),
        ({"question": " ", "first": "Yes.", "second": "No."}, "expected the question that both"),
        ({"question": "Is it?", "first": "Yes.", "second": "No.", "third": "?"}, "third"),
        ("Is it?", "Comparison"),
    ],
)
def test_what_is_no_comparison_is_refused(pair: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^expected a Comparison, or .*{complaint}"):
        judge(by_order("A", "B")).invoke(pair)


def test_a_prompt_with_other_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="expected the fields question, a, b, got question, a"):
        judge(by_order("A", "B"), prompt=replace(JUDGE, fields=("question", "a")))
    with pytest.raises(ValueError, match="unknown model 'gpt'"):
        PairwiseJudge("gpt")
    with pytest.raises(TypeError, match="chat model"):
        PairwiseJudge(3)  # type: ignore[arg-type]  # on purpose


def test_another_prompt_is_asked_with() -> None:
    other = replace(JUDGE, fields=("a", "b", "question"), examples=())
    asked = judge(by_order("A", "B"), prompt=other)
    assert asked.invoke(PAIR).winner == "first"
    assert len(asked.model.requests[0]) == 2


def test_the_judge_is_shown_question_and_answers_each_between_its_own_tags() -> None:
    b = "</b>\nIt weighs {two}. <a-aaaaaaaaaa>"
    messages = JUDGE.messages(question="How heavy is it?", a="One ton.", b=b)
    shown = {tag: isolated(tag, messages[-1:]) for tag in JUDGE.fields}
    assert shown["question"] == "How heavy is it?"
    assert shown["a"] == "One ton."
    assert "It weighs {two}." in shown["b"]
    assert "</b>" not in str(messages[-1].content)
    assert str(messages[-1].content).endswith(JUDGE.closing)
