"""Test that the reasoning of a model is not part of its reply."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from demur.runtime import ChatCall, Outcome, Reply, Steps, ask_all, drive
from support.fakes import saying

NAMES = st.sampled_from(["think", "thinking", "reasoning", "THINK", "Thinking", "reasoning "])
PLAIN = st.text(st.characters(exclude_characters="<>", exclude_categories=["Cs"]), max_size=40)


def _steps(said: AIMessage, prompt: str) -> Steps[list[Outcome[Reply]]]:
    model = saying(said)
    return (yield from ask_all([ChatCall(model, [HumanMessage(prompt)], "stage")]))


def read(said: str | AIMessage, prompt: str = "hello") -> Reply:
    """Return the reply as it is read from the model's message."""
    message = AIMessage(said) if isinstance(said, str) else said
    ((outcome,), _) = drive(_steps(message, prompt), {}, None)
    return outcome.value


def _cut(text: str) -> AIMessage:
    return AIMessage(text, response_metadata={"finish_reason": "length"})


def _with_token(text: str, token: str, **fields: object) -> AIMessage:
    first = {"token": token, "logprob": -0.1}
    metadata = {"logprobs": {"content": [{**first, "top_logprobs": [first]}]}}
    return AIMessage(text, response_metadata=metadata, **fields)  # type: ignore[arg-type]


@settings(max_examples=50)
@given(name=NAMES, thought=PLAIN, answer=PLAIN)
def test_what_is_before_a_closing_tag_is_taken_off(name: str, thought: str, answer: str) -> None:
    assert read(f"<{name}>{thought}</{name}>{answer}").text == answer.strip()
    assert read(f"\n<{name}>{thought}</{name}>\n\n{answer}").text == answer.strip()
    assert read(f"{thought}</{name}>{answer}").text == answer.strip()  # a template opened it


@settings(max_examples=50)
@given(name=NAMES, before=PLAIN, thought=PLAIN)
def test_a_block_that_does_not_end_leaves_nothing(name: str, before: str, thought: str) -> None:
    assert read(f"{before}<{name}>{thought}").text == ""


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["<think>", "</think>", "</Thinking>", "<think", "<", "a"])))
def test_nothing_is_left_of_any_tag(pieces: list[str]) -> None:
    text = read("".join(pieces)).text.lower()
    assert not [tag for tag in ("<think>", "</think>", "</thinking>") if tag in text]


@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_a_reply_without_reasoning_is_read_as_it_is(text: str) -> None:
    assert read(text) == Reply(text)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("<think>a <think> b</think>Yes", "Yes"),
        ("<think>they wrote <think>x</think> so no</think>Yes", "Yes"),
        ("<think>a</reasoning>b</think>Yes", "Yes"),
        ("1. Yes <think>or not</think>\n2. No", "1. Yes  \n2. No"),
        ("Entail<think>or not</think>ment", "Entail ment"),
        ("Yes <think>but the other", ""),
        ("<think>Yes", ""),
        ("<think>Yes</thinking>", ""),
        ("I <thinker> am", "I <thinker> am"),
    ],
)
def test_blocks_within_blocks_and_within_the_reply(said: str, text: str) -> None:
    assert read(said).text == text


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        ("<think>", ""),
        ("</think>", ""),
        ("<think>a</think>", ""),
        ("<think", "<think" * 5_000),
        ("<think ", "<think " * 5_000),
    ],
)
def test_a_reply_of_nothing_but_tags_is_read(piece: str, text: str) -> None:
    assert read(piece * 5_000).text == text


@pytest.mark.parametrize("block", ["reasoning", "thinking"])
def test_blocks_of_content_that_are_reasoning_are_left_out(block: str) -> None:
    thought = {"type": block, block: "Contradiction?"}
    message = AIMessage([thought, {"type": "text", "text": "Entailment"}])
    assert read(message).text == "Entailment"


SHOWN = "Answer:\nIt ends in \u02c2/think>\nEntailment"
"""A text with a tag, as a prompt shows it."""


@pytest.mark.parametrize(
    "said",
    [
        AIMessage("</think>\nEntailment"),
        AIMessage("It ends in </think>\nEntailment"),
        AIMessage("Contradiction: it ends in </think>\nEntailment"),
        AIMessage("<think>Hm.</think>Contradiction, it ends in </think>\nEntailment"),
        AIMessage("<think>It ends in </think>\nEntailment. No.</think>Contradiction"),
        AIMessage("Ends in <think></think>Entailment"),
        _cut("<think>It ends in </think>\nEntailment"),
    ],
    ids=lambda said: said.text,
)
def test_a_tag_that_a_judge_may_have_quoted_makes_no_reply(said: AIMessage) -> None:
    assert read(said, SHOWN).text == ""


def test_reasoning_about_a_text_with_a_tag_is_taken_off_all_the_same() -> None:
    assert read("<think>It ends oddly.</think>\n\nContradiction", SHOWN).text == "Contradiction"
    assert read("Contradiction", SHOWN).text == "Contradiction"


@pytest.mark.parametrize(
    "said",
    [
        _with_token("<think>", "<think>"),
        _with_token("<", "<"),
        _with_token("<th", "<th"),
        _with_token("<think>It holds.</think>Entailment", "<think>"),
        _with_token("It holds.</think>Entailment", "It"),
        _with_token("", "<think>"),
        _with_token("", "Ent", additional_kwargs={"reasoning_content": "Entailment, since"}),
        _with_token("", "Ent").model_copy(
            update={"content": [{"type": "reasoning", "reasoning": "Entailment, since"}]}
        ),
    ],
    ids=lambda said: f"{said.content}, {said.additional_kwargs}",
)
def test_the_first_token_of_reasoning_is_told_from_one_of_a_label(said: AIMessage) -> None:
    assert read(said).reasoned


@pytest.mark.parametrize("token", ["Ent", "", "\n", "Contradiction"])
def test_another_first_token_is_one_of_the_text(token: str) -> None:
    assert not read(_with_token("Entailment", token)).reasoned
