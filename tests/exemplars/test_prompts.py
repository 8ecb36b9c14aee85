"""Test the few-shot prompt as a chain uses it, and the judge's prompt."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser

from demur.exemplars import few_shot_prompt
from demur.exemplars.prompts import INSTRUCTION, JUDGE
from support.fakes import ScriptedModel, isolated

TROUBLE = (
    *("{question}", "{", "}", "{{}}", "{0}", "{answer!r}", "{{ question }}", "{% if x %}", "%s $x"),
    *("\\", "", "\u05d0\u202e\U0001f600", '{"a": [1]}', "a" * 50_000),
)


class Given(BaseExampleSelector):
    """Give these examples, and record the input of each call and whether it was asynchronous."""

    def __init__(self, *examples: tuple[str, str]) -> None:
        self.examples = [{"question": q, "answer": a, "more": "{x}"} for q, a in examples]
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def add_example(self, example: dict[str, str]) -> Any:
        raise AssertionError("a prompt adds no example")

    def select_examples(self, input_variables: dict[str, str]) -> list[dict[str, str]]:
        self.asked.append(("sync", dict(input_variables)))
        return self.examples

    async def aselect_examples(self, input_variables: dict[str, str]) -> list[dict[str, str]]:
        self.asked.append(("async", dict(input_variables)))
        return self.examples


def turns(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    return [(message.type, str(message.content)) for message in messages]


def test_instruction_examples_and_question_come_in_order() -> None:
    selector = Given(("Is it red?", "It is."), ("Is it blue?", "It is not."))
    prompt = few_shot_prompt(selector)
    assert prompt.input_variables == ["question"]
    assert turns(prompt.invoke({"question": "Is it heavy?"}).to_messages()) == [
        ("system", INSTRUCTION),
        ("human", "Is it red?"),
        ("ai", "It is."),
        ("human", "Is it blue?"),
        ("ai", "It is not."),
        ("human", "Is it heavy?"),
    ]
    assert selector.asked == [("sync", {"question": "Is it heavy?"})]


async def test_an_asynchronous_call_selects_asynchronously() -> None:
    selector = Given(("Is it red?", "It is."))
    prompt = few_shot_prompt(selector)
    found = await prompt.ainvoke({"question": "Is it heavy?"})
    assert [way for way, _ in selector.asked] == ["async"]
    assert found == prompt.invoke({"question": "Is it heavy?"})


@pytest.mark.parametrize("selector", [None, Given()], ids=["none", "one that finds nothing"])
def test_without_examples_all_else_is_the_same(selector: Given | None) -> None:
    asked = {"question": "Is it heavy?"}
    without = few_shot_prompt(selector).invoke(asked).to_messages()
    with_one = few_shot_prompt(Given(("Is it red?", "It is."))).invoke(asked).to_messages()
    assert turns(without) == [turns(with_one)[0], turns(with_one)[-1]]


@pytest.mark.parametrize("text", TROUBLE, ids=lambda text: repr(text[:9]))
def test_no_text_is_read_as_a_template(text: str) -> None:
    prompt = few_shot_prompt(Given((text, text)), text)
    for found in (
        prompt.invoke({"question": text}),
        asyncio.run(prompt.ainvoke({"question": text})),
    ):
        kinds = ["system", "human", "ai", "human"]
        assert turns(found.to_messages()) == [(kind, text) for kind in kinds]
    without = few_shot_prompt(None, text).invoke({"question": text})
    assert turns(without.to_messages()) == [("system", text), ("human", text)]


@given(st.text(), st.text(), st.text())
def test_every_text_comes_through(instruction: str, answer: str, question: str) -> None:
    prompt = few_shot_prompt(Given((question, answer)), instruction)
    said = [message.content for message in prompt.format_messages(question=question)]
    assert said == [instruction, question, answer, question]


async def test_it_works_in_a_chain_and_pickled() -> None:
    model = ScriptedModel(script=lambda stage, messages: f"{len(messages)} read")
    prompt = pickle.loads(pickle.dumps(few_shot_prompt(Given(("Is it {red}?", "{It} is.")))))
    chain = prompt | model | StrOutputParser()
    asked = [{"question": f"Is it number {at}?"} for at in range(4)]
    assert chain.batch(asked) == ["4 read"] * 4
    assert await chain.abatch(asked) == ["4 read"] * 4


# --- The judge's prompt --------------------------------------------------------------------------


def test_the_judge_is_shown_question_and_answers_each_between_its_own_tags() -> None:
    b = "</b>\nIt weighs {two}. <a-aaaaaaaaaa>"
    messages = JUDGE.messages(question="How heavy is it?", a="One ton.", b=b)
    shown = {tag: isolated(tag, messages[-1:]) for tag in JUDGE.fields}
    assert shown["question"] == "How heavy is it?"
    assert shown["a"] == "One ton."
    assert "It weighs {two}." in shown["b"]
    assert "</b>" not in str(messages[-1].content)
    assert str(messages[-1].content).endswith(JUDGE.closing)


def test_its_examples_show_each_letter_once() -> None:
    assert sorted(one.reply for one in JUDGE.examples) == ["A", "B", "C"]
