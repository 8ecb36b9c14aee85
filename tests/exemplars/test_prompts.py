"""Test the few-shot prompt as a chain uses it, and the judge's prompt."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.messages import BaseMessage

from demur.exemplars import few_shot_prompt
from demur.exemplars.prompts import INSTRUCTION

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


TEXTS = st.text() | st.sampled_from(TROUBLE)


@given(TEXTS, TEXTS, TEXTS)
def test_no_text_is_read_as_a_template(instruction: str, answer: str, question: str) -> None:
    asked = {"question": question}
    prompt = few_shot_prompt(Given((question, answer)), instruction)
    expected = [("system", instruction), ("human", question), ("ai", answer), ("human", question)]
    assert turns(prompt.invoke(asked).to_messages()) == expected
    for without in (few_shot_prompt(None, instruction), few_shot_prompt(Given(), instruction)):
        assert turns(without.invoke(asked).to_messages()) == [expected[0], expected[-1]]


# --- The judge's prompt --------------------------------------------------------------------------
