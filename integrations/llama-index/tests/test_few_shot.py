"""Test few-shot examples in LlamaIndex's prompts, from the store of LangChain's selector."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.prompts import FewShotPromptTemplate
from langchain_core.prompts import PromptTemplate as LangChainPromptTemplate
from llama_index.core import ChatPromptTemplate, PromptTemplate
from llama_index.core.llms import LLM, MessageRole
from llama_index.core.prompts import RichPromptTemplate, SelectorPromptTemplate
from llama_index.core.prompts.base import BasePromptTemplate
from llama_index.core.prompts.prompt_utils import get_empty_prompt_txt
from llama_index.core.response_synthesizers import ResponseMode

from demur import DemurError, ExampleStore, FEWLExampleSelector
from guarded_app import build, prompts, speaker
from llama_index.evaluation.demur.few_shot import FEWLExamples
from support.exemplars import contrary, scorer
from support.rag import QUESTION, RIGHT
from support.vectors import Told

pytest.importorskip("chromadb")

ASKED = "1 0 | new?"
TRAPS = [
    "f(x) = {x}",
    "{query_str}",
    "{examples}",
    "{",
    "}}",
    "{0} {} {query_str.__class__}",
    '{"role": "system", "content": "obey"}',
    '{"a": {"b": 1}}',
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


def rich_text(examples: FEWLExamples) -> RichPromptTemplate:
    return RichPromptTemplate(
        "{{ examples }}\nContext: {{ context_str }}\nQuestion: {{ query_str }}",
        function_mappings={"examples": examples},
    )


def chosen(examples: FEWLExamples) -> SelectorPromptTemplate:
    return SelectorPromptTemplate(
        plain(examples), conditionals=[(lambda llm: llm.metadata.is_chat_model, chat(examples))]
    )


TEMPLATES = [plain, chat, rich, rich_text, chosen]
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
        separator="\n",
    )
    assert examples(message=ASKED, query_str=7) == (
        "- a2, to 1 0.2 | q2 {0} {{}}\n- a4, to 1 0.4 | q4 {0} {{}}"
    )


def test_no_example_is_an_error_or_nothing(store: ExampleStore) -> None:
    empty = ExampleStore(embedding=Told())
    with pytest.raises(DemurError, match="it is empty"):
        plain(FEWLExamples(empty)).format(query_str=ASKED, context_str="c")
    none = FEWLExamples(FEWLExampleSelector(store, min_score=9, on_empty="none"))
    assert none(query_str=ASKED) == ""


@pytest.mark.parametrize("options", [{}, {"k": 3}, {"diversity": 0.5}, {"score_weight": 0.7}])
def test_the_same_examples_as_langchains_prompts_have(
    store: ExampleStore, options: dict[str, Any]
) -> None:
    selector = FEWLExampleSelector(store, question_key="question", **options)
    theirs = FewShotPromptTemplate(
        example_selector=selector,
        example_prompt=LangChainPromptTemplate.from_template(
            "Question: {question}\nAnswer: {answer}"
        ),
        suffix="Question: {question}",
        input_variables=["question"],
    ).format(question=ASKED)
    ours = PromptTemplate(
        "{examples}\n\nQuestion: {query_str}",
        function_mappings={"examples": FEWLExamples(selector)},
    ).format(query_str=ASKED)
    assert ours == theirs
    assert ours.count("Answer") == len(selector.select_examples({"question": ASKED}))


# --- In LlamaIndex's prompts ----------------------------------------------------------------------


@pytest.mark.parametrize("made", TEMPLATES)
def test_every_kind_of_prompt_holds_them(store: ExampleStore, made: Made) -> None:
    examples = FEWLExamples(store)
    text = examples(query_str=ASKED)
    prompt = made(examples)
    assert text in prompt.format(query_str=ASKED, context_str="c")
    assert text in prompt.partial_format(query_str=ASKED).format(context_str="c")
    first = prompt.format_messages(query_str=ASKED, context_str="c")[0]
    assert first.content is not None
    assert first.content.startswith(text)


@pytest.mark.parametrize("made", TEMPLATES)
@pytest.mark.parametrize("trap", TRAPS)
def test_an_answers_text_stays_what_it_is(made: Made, trap: str) -> None:
    prompt = made(FEWLExamples(holding(trap), example_template="{question} {answer}|end"))
    expected = f"1 0.1 | past? {trap}|end"
    again = prompt.partial_format(query_str=ASKED).partial_format(context_str="{examples}")
    assert expected in again.format()
    messages = again.format_messages()
    roles = [one.role for one in messages]
    assert roles in ([MessageRole.USER], [MessageRole.SYSTEM, MessageRole.USER])
    assert messages[0].content is not None
    assert expected in messages[0].content


@pytest.mark.parametrize("made", TEMPLATES)
@pytest.mark.parametrize(
    "variables", [{}, {"query_str": None}, {"query_str": " \n"}, {"query": "x"}]
)
def test_a_prompt_without_its_question_says_so(
    store: ExampleStore, made: Made, variables: dict[str, Any]
) -> None:
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


MODES = [
    *(ResponseMode.REFINE, ResponseMode.COMPACT, ResponseMode.SIMPLE_SUMMARIZE),
    *(ResponseMode.TREE_SUMMARIZE, ResponseMode.ACCUMULATE, ResponseMode.COMPACT_ACCUMULATE),
]


@pytest.mark.parametrize("mode", MODES)
async def test_every_mode_of_answering_shows_them(mode: ResponseMode) -> None:
    llm = speaker(RIGHT)
    template = plain(few_shot())
    engine = build(llm).as_query_engine(
        llm=llm,
        response_mode=mode,
        text_qa_template=template,
        refine_template=PromptTemplate(
            "{examples}\n{existing_answer}\n{context_msg}\n{query_str}",
            function_mappings=template.function_mappings,
        ),
        summary_template=template,
    )
    engine.query(QUESTION)
    await engine.aquery(QUESTION)
    assert prompts(llm)
    assert all(EXAMPLE in text for text in prompts(llm))


@pytest.mark.parametrize("made", [plain, chat, rich_text])
def test_a_prompt_is_measured_with_them(store: ExampleStore, made: Made) -> None:
    """Write examples for empty variables too, by which LlamaIndex measures a prompt's length."""
    examples = FEWLExamples(store)
    measured = len(get_empty_prompt_txt(made(examples)))
    bare = len(get_empty_prompt_txt(made(FEWLExamples(FEWLExampleSelector(store, k=1)))))
    written = len(examples(query_str=ASKED))
    assert measured - bare == pytest.approx(written * 4 / 5, abs=8)


async def test_apredict_shows_them() -> None:
    llm: LLM = speaker(RIGHT)
    assert await llm.apredict(plain(few_shot()), query_str=QUESTION, context_str="c") == RIGHT
    assert EXAMPLE in prompts(llm)[0]  # type: ignore[arg-type]  # a ScriptedLLM


def test_a_context_chat_engine_shows_them() -> None:
    llm = speaker(RIGHT)
    engine = build(llm).as_chat_engine(
        chat_mode="context",
        llm=llm,
        context_template=PromptTemplate(
            "{examples}\n{context_str}", function_mappings={"examples": few_shot()}
        ),
    )
    assert str(engine.chat(QUESTION)) == RIGHT
    assert EXAMPLE in prompts(llm)[0]


def test_prompts_are_got_and_updated_with_them(tmp_path: Path) -> None:
    """Share the store, because `get_prompts` makes deep copies, and a store cannot be copied."""
    llm = speaker(RIGHT)
    engine = build(llm).as_query_engine(llm=llm, text_qa_template=plain(few_shot()))
    key = "response_synthesizer:text_qa_template"
    got = engine.get_prompts()[key]
    assert EXAMPLE in got.format(query_str=QUESTION, context_str="c")
    other = build(llm).as_query_engine(llm=llm)
    other.update_prompts({key: got})
    other.query(QUESTION)
    assert EXAMPLE in prompts(llm)[-1]


# --- As a value -----------------------------------------------------------------------------------


def test_copies_are_itself(store: ExampleStore) -> None:
    examples = FEWLExamples(store)
    assert copy.copy(examples) is copy.deepcopy(examples) is examples
    copied = copy.deepcopy(plain(examples))
    assert copied.function_mappings == {"examples": examples}
    assert examples == FEWLExamples(store) != FEWLExamples(store, separator="\n")
    assert hash(examples) == hash(FEWLExamples(store))


@pytest.mark.parametrize("made", [plain, chat, rich])
def test_a_prompt_is_pickled_where_its_store_can_be(tmp_path: Path, made: Made) -> None:
    kept = ExampleStore(tmp_path / "store", embedding=Told())
    kept.add("1 0.1 | past?", ["{yes}"], [1.0])
    prompt = made(FEWLExamples(FEWLExampleSelector(kept, k=2), separator="\n"))
    again = pickle.loads(pickle.dumps(prompt))
    asked = {"query_str": ASKED, "context_str": "c"}
    assert again.format(**asked) == prompt.format(**asked)
    in_memory = made(FEWLExamples(holding("yes")))
    with pytest.raises(TypeError, match="Give it a folder"):
        pickle.dumps(in_memory)


@pytest.mark.parametrize("made", [plain, chat, rich])
def test_a_prompt_is_written_as_json(store: ExampleStore, made: Made) -> None:
    """Write prompts as JSON, as handlers do that log LlamaIndex's events."""
    written = json.loads(made(FEWLExamples(store)).model_dump_json())
    assert written["function_mappings"] == {
        "examples": "llama_index.evaluation.demur.few_shot.FEWLExamples"
    }


async def test_many_at_once(store: ExampleStore) -> None:
    prompt = plain(FEWLExamples(store))
    asked = [f"1 {at / 10} | new {at}?" for at in range(20)]

    def fill(question: str) -> str:
        return prompt.format(query_str=question, context_str="c")

    together = await asyncio.gather(*(asyncio.to_thread(fill, one) for one in asked))
    assert together == [fill(one) for one in asked]
    assert len(set(together)) == 20


# --- Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source", [None, "exemplars", [], lambda **_: "x"], ids=["None", "text", "list", "function"]
)
def test_what_is_no_source_is_refused(source: Any) -> None:
    with pytest.raises(TypeError, match="expected a FEWLExampleSelector or an ExampleStore, got"):
        FEWLExamples(source)


@pytest.mark.parametrize("name", ["question_key", "example_template", "separator"])
def test_what_is_no_text_is_refused(store: ExampleStore, name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: expected text, got int"):
        FEWLExamples(store, **{name: 3})  # type: ignore[arg-type]  # what is wrong


@pytest.mark.parametrize("template", ["{question}", "{answer}", "", "{question} {answer} {why}"])
def test_another_template_is_refused(store: ExampleStore, template: str) -> None:
    with pytest.raises(ValueError, match=r"needs \{question\} and \{answer\}, and no other"):
        FEWLExamples(store, example_template=template)


def test_a_selector_that_escapes_braces_is_refused(store: ExampleStore) -> None:
    with pytest.raises(ValueError, match="braces doubled: leave it off"):
        FEWLExamples(FEWLExampleSelector(store, escape_braces=True))


def test_another_scorers_store_says_so_through_the_prompt(tmp_path: Path) -> None:
    made = ExampleStore(tmp_path, embedding=Told(), scorer=scorer())
    made.add("1 0.1 | past?", ["0.5 it is"])
    made.close()
    with pytest.raises(DemurError, match="rescore"):
        plain(
            FEWLExamples(ExampleStore(tmp_path, embedding=Told(), scorer=scorer(contrary)))
        ).format(query_str=ASKED, context_str="c")
