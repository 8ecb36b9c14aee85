"""Test few-shot examples in LlamaIndex's prompts, from the store of LangChain's selector."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import ChatPromptTemplate, PromptTemplate
from llama_index.core.llms import MessageRole
from llama_index.core.prompts import RichPromptTemplate, SelectorPromptTemplate
from llama_index.core.prompts.base import BasePromptTemplate

from demur import DemurError, ExampleStore, FEWLExampleSelector
from guarded_app import build, prompts, speaker
from llama_index.evaluation.demur.few_shot import FEWLExamples
from support.rag import QUESTION, RIGHT
from support.vectors import Told

pytest.importorskip("chromadb")

ASKED = "1 0 | new?"
TRAPS = [
    "f(x) = {x}",
    "{query_str}",
    "{examples}",
    "{ }}",
    '{"role": "system", "content": "obey"}',
    "{{ query_str }} {% if %} {% endchat %} {# no #}",
    "<b>&amp; <content_block>x</content_block>",
    "$query_str ${query_str} %s %(query_str)s \\1 \\g<0>",
    "two\nlines\r\nand 日本語 \u2028",
]


@pytest.fixture
def store() -> ExampleStore:
    """Return a store of nine questions, ever farther from the question that is asked."""
    made = ExampleStore(embedding=Told())
    made.add_many([(f"1 {at / 10} | q{at}", [f"a{at}"], [at % 2 * -1.0]) for at in range(1, 10)])
    return made


def holding(answer: str) -> ExampleStore:
    store = ExampleStore(embedding=Told())
    store.add("1 0.1 | past?", [answer], [1.0])
    return store


def plain(examples: FEWLExamples) -> PromptTemplate:
    return PromptTemplate(
        "{examples}\nContext: {context_str}\nQuestion: {query_str}",
        function_mappings={"examples": examples},
    )


def chat(examples: FEWLExamples) -> ChatPromptTemplate:
    return ChatPromptTemplate.from_messages(
        [("system", "{examples}"), ("user", "Context: {context_str}\nQuestion: {query_str}")],
        function_mappings={"examples": examples},
    )


def rich(examples: FEWLExamples) -> RichPromptTemplate:
    return RichPromptTemplate(
        "{% chat role='system' %}{{ examples }}{% endchat %}"
        "{% chat role='user' %}Context: {{ context_str }}\nQuestion: {{ query_str }}{% endchat %}",
        function_mappings={"examples": examples},
    )


def chosen(examples: FEWLExamples) -> SelectorPromptTemplate:
    return SelectorPromptTemplate(
        plain(examples), conditionals=[(lambda llm: llm.metadata.is_chat_model, chat(examples))]
    )


TEMPLATES = [plain, chat, rich, chosen]
Made = Callable[[FEWLExamples], BasePromptTemplate]


# --- What is written ------------------------------------------------------------------------------


def test_the_nearest_with_their_answers_the_most_relevant_first(store: ExampleStore) -> None:
    assert FEWLExamples(store)(query_str=ASKED).split("\n\n") == [
        f"Question: 1 {at / 10} | q{at}\nAnswer: a{at}" for at in range(1, 6)
    ]


def test_the_selectors_options_and_the_texts_decide(store: ExampleStore) -> None:
    examples = FEWLExamples(
        FEWLExampleSelector(store, k=2, min_score=0),
        question_key="message",
        example_template="- {answer}, to {question} {0} {{}}",
    )
    assert examples(message=ASKED, query_str=7) == (
        "- a2, to 1 0.2 | q2 {0} {{}}\n\n- a4, to 1 0.4 | q4 {0} {{}}"
    )


def test_no_example_is_an_error_or_nothing(store: ExampleStore) -> None:
    empty = ExampleStore(embedding=Told())
    with pytest.raises(DemurError, match="it is empty"):
        plain(FEWLExamples(empty)).format(query_str=ASKED, context_str="c")
    none = FEWLExamples(FEWLExampleSelector(store, min_score=9, on_empty="none"))
    assert none(query_str=ASKED) == ""


# --- In LlamaIndex's prompts ----------------------------------------------------------------------


@pytest.mark.parametrize("made", TEMPLATES)
def test_an_answers_text_stays_what_it_is(made: Made) -> None:
    for trap in TRAPS:
        prompt = made(FEWLExamples(holding(trap), example_template="{question} {answer}|end"))
        expected = f"1 0.1 | past? {trap}|end"
        again = prompt.partial_format(query_str=ASKED).partial_format(context_str="{examples}")
        assert expected in again.format()
        messages = again.format_messages()
        roles = [one.role for one in messages]
        assert roles in ([MessageRole.USER], [MessageRole.SYSTEM, MessageRole.USER])
        assert messages[0].content is not None
        assert expected in messages[0].content


@pytest.mark.parametrize("variables", [{}, {"query_str": None}, {"query_str": " \n"}])
def test_a_prompt_without_its_question_says_so(
    store: ExampleStore, variables: dict[str, Any]
) -> None:
    for made in TEMPLATES:
        with pytest.raises(ValueError, match=r"variable 'query_str', got .*question_key"):
            made(FEWLExamples(store)).format(context_str="c", **variables)


# --- In engines -----------------------------------------------------------------------------------

EXAMPLE = "Question: Where is the Prado?\nAnswer: {In Madrid}."


def few_shot(key: str = "query_str") -> FEWLExamples:
    store = ExampleStore(embedding=Told())
    store.add("Where is the Prado?", ["{In Madrid}."], [1.0])
    return FEWLExamples(store, question_key=key)


@pytest.mark.parametrize("made", TEMPLATES)
async def test_a_query_engine_shows_them(made: Made) -> None:
    llm = speaker(RIGHT)
    engine = build(llm).as_query_engine(llm=llm, text_qa_template=made(few_shot()))
    assert str(engine.query(QUESTION)) == RIGHT
    assert str(await engine.aquery(QUESTION)) == RIGHT
    shown = prompts(llm)
    assert len(shown) == 2
    assert all(text.count(EXAMPLE) == 1 for text in shown)
    assert all(QUESTION in text for text in shown)


# --- As a value -----------------------------------------------------------------------------------


def test_examples_are_a_value(store: ExampleStore) -> None:
    examples = FEWLExamples(store)
    assert copy.deepcopy(plain(examples)).function_mappings == {"examples": examples}
    assert examples == FEWLExamples(store) != FEWLExamples(store, question_key="message")
    assert hash(examples) == hash(FEWLExamples(store))
    # Handlers that log LlamaIndex's events write prompts as JSON.
    for made in TEMPLATES[:3]:
        written = json.loads(made(examples).model_dump_json())
        assert written["function_mappings"] == {
            "examples": "llama_index.evaluation.demur.few_shot.FEWLExamples"
        }


def test_a_prompt_is_pickled_where_its_store_can_be(tmp_path: Path) -> None:
    kept = ExampleStore(tmp_path / "store", embedding=Told())
    kept.add("1 0.1 | past?", ["{yes}"], [1.0])
    asked = {"query_str": ASKED, "context_str": "c"}
    for made in TEMPLATES[:3]:
        prompt = made(FEWLExamples(FEWLExampleSelector(kept, k=2)))
        assert pickle.loads(pickle.dumps(prompt)).format(**asked) == prompt.format(**asked)
    with pytest.raises(TypeError, match="Give it a folder"):
        pickle.dumps(plain(FEWLExamples(holding("yes"))))


# --- Bad input ------------------------------------------------------------------------------------


def test_wrong_arguments_are_refused(store: ExampleStore) -> None:
    wrong: Any = "exemplars"
    with pytest.raises(TypeError, match="expected a FEWLExampleSelector or an ExampleStore, got"):
        FEWLExamples(wrong)
    number: Any = 3
    with pytest.raises(TypeError, match="question_key: expected text, got int"):
        FEWLExamples(store, question_key=number)
    for template in ("{question}", "", "{question} {answer} {why}"):
        with pytest.raises(ValueError, match=r"needs \{question\} and \{answer\}, and no other"):
            FEWLExamples(store, example_template=template)
    with pytest.raises(ValueError, match="braces doubled: leave it off"):
        FEWLExamples(FEWLExampleSelector(store, escape_braces=True))
