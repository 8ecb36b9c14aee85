"""Test the selector: what it chooses, and that LangChain's few-shot prompts take it unchanged."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import (
    ChatPromptTemplate,
    FewShotChatMessagePromptTemplate,
    FewShotPromptTemplate,
    PromptTemplate,
)
from langchain_core.runnables import Runnable

from demur import ExampleStore, FEWLExampleSelector
from demur.errors import DemurError
from support.exemplars import scorer
from support.fakes import ScriptedModel
from support.vectors import Told

pytest.importorskip("chromadb")

ASKED = {"question": "1 0 | new?"}
TRAPS = [
    "f(x) = {x}",
    "{question}",
    "{",
    "}}",
    "{0}",
    "{question.__class__}",
    '{"a": {"b": 1}}',
    "{{ question }} {% if %} {# no #}",
    "$question ${question} %s %(question)s",
]


def filled(*offers: tuple[str, float]) -> ExampleStore:
    """Return a store of questions, each with one answer that has this score."""
    store = ExampleStore(embedding=Told())
    store.add_many([(question, [f"to {question}"], [score]) for question, score in offers])
    return store


def fan() -> ExampleStore:
    """Return a store of q1 to q9, ever farther from the question; even ones have better scores."""
    return filled(*((f"1 {at / 10} | q{at}", at % 2 * -1.0) for at in range(1, 10)))


def names(examples: Sequence[dict[str, str]]) -> list[str]:
    return [example["question"].rpartition(" ")[2] for example in examples]


def select(selector: FEWLExampleSelector, asked: Any = None) -> list[Any]:
    return selector.select_examples(ASKED if asked is None else asked)


# --- What is chosen -------------------------------------------------------------------------------


async def test_the_nearest_with_their_best_answers() -> None:
    store = fan()
    store.add("1 0.2 | q2", ["a better one"], [5])
    selector = FEWLExampleSelector(store, k=2)
    assert isinstance(selector, BaseExampleSelector)
    found = select(selector)
    assert found == await selector.aselect_examples(ASKED)
    assert found == [
        {"question": "1 0.1 | q1", "answer": "to 1 0.1 | q1"},
        {"question": "1 0.2 | q2", "answer": "a better one"},
    ]
    assert names(select(FEWLExampleSelector(store))) == ["q1", "q2", "q3", "q4", "q5"]
    assert len(select(FEWLExampleSelector(store, k=20))) == 9


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"min_score": 0}, ["q2", "q4", "q6"]),
        ({"min_score": -1}, ["q1", "q2", "q3"]),
        # cos(1, 0.35) is 0.944.
        ({"max_similarity": 0.944}, ["q4", "q5", "q6"]),
        ({"max_similarity": 0.944, "min_score": 0}, ["q4", "q6", "q8"]),
    ],
    ids=str,
)
def test_options_decide(options: dict[str, Any], expected: list[str]) -> None:
    selector = FEWLExampleSelector(fan(), k=3, **options)
    assert names(select(selector)) == expected


# --- Nothing, and bad input -----------------------------------------------------------------------


def test_nothing_to_select_is_told_or_none() -> None:
    empty = ExampleStore(embedding=Told())
    with pytest.raises(
        DemurError, match=r"has no example for '1 0 \| new\?': it is empty: add que"
    ):
        select(FEWLExampleSelector(empty))
    picky: dict[str, Any] = {"min_score": 9, "max_similarity": 0.9}
    message = r"none of its 9 questions fits \(min_score=9, max_similarity=0\.9\)\. on_empty='none'"
    with pytest.raises(DemurError, match=message):
        select(FEWLExampleSelector(fan(), **picky))
    with pytest.raises(
        DemurError, match=r"none of its 1 questions fits \(they are the question it"
    ):
        select(FEWLExampleSelector(filled(("1 0 | new?", 1.0))))
    for store in (empty, fan()):
        assert select(FEWLExampleSelector(store, on_empty="none", **picky)) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be an integer, at least 1, got 0"),
        ({"k": 2.5}, r"k must be an integer, at least 1, got 2\.5"),
        ({"max_similarity": 1.5}, r"max_similarity is a cosine, above -1 and up to 1, got 1\.5"),
        ({"max_similarity": float("nan")}, "is a cosine, above -1 and up to 1, got nan"),
        ({"min_score": float("nan")}, "min_score must be a finite number, got nan"),
        ({"on_empty": "error"}, "on_empty is 'raise' or 'none', got 'error'"),
    ],
    ids=str,
)
def test_a_bad_option_is_refused_at_once(
    store: ExampleStore, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        FEWLExampleSelector(store, **options)
    with pytest.raises(TypeError, match="expected an ExampleStore, got str"):
        FEWLExampleSelector("exemplars")  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, {"question": "1 0 | new?", "context": "c"}),
        ({}, {"input": "1 0 | new?", "context": "c"}),
        ({}, {"topic": "1 0 | new?", "history": []}),
        ({}, {"input": "0 1 | else", "question": "1 0 | new?"}),
        ({"question_key": "topic"}, {"question": "0 1 | else", "topic": "1 0 | new?"}),
    ],
    ids=str,
)
def test_the_question_is_found_in_the_input(options: dict[str, Any], asked: dict[str, Any]) -> None:
    selector = FEWLExampleSelector(fan(), k=1, **options)
    assert names(select(selector, asked)) == ["q1"]


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, {"topic": "a", "context": "b"}),
        ({}, {"question": ["why?"]}),
        ({}, {"question": None, "input": "why?"}),
        ({"question_key": "topic"}, {"question": "why?"}),
    ],
    ids=str,
)
def test_an_input_without_a_question_is_refused(
    options: dict[str, Any], asked: dict[str, Any]
) -> None:
    message = "expected the question as text under '(question' or 'input' or 'query|topic)', got {"
    with pytest.raises(ValueError, match=f"{message}.*name its key with question_key"):
        select(FEWLExampleSelector(fan(), **options), asked)


# --- Adding ---------------------------------------------------------------------------------------


async def test_examples_can_be_added() -> None:
    selector = FEWLExampleSelector(ExampleStore(embedding=Told(), scorer=scorer()))
    selector.add_example({"question": "1 1 | q", "answer": "0.5 may be"})
    await selector.aadd_example({"question": "1 1 | q", "answer": "0.9 yes", "topic": "no matter"})
    selector.add_example({"question": "1 2 | r", "answer": "so", "score": 0.25})
    assert [one["answer"] for one in select(selector)] == ["0.9 yes", "so"]
    with pytest.raises(ValueError, match=r"with question and answer, without \['answer'\]"):
        selector.add_example({"question": "q"})


# --- In a chain -----------------------------------------------------------------------------------


def echo(stage: str, messages: Sequence[BaseMessage]) -> str:
    return "\n".join(f"{message.type}: {message.content}" for message in messages)


EXAMPLE = PromptTemplate.from_template("Q: {question}\nA: {answer}")


def plain(selector: FEWLExampleSelector) -> FewShotPromptTemplate:
    return FewShotPromptTemplate(
        example_selector=selector,
        example_prompt=EXAMPLE,
        prefix="Answer.",
        suffix="Q: {question}\nA:",
        input_variables=["question"],
    )


def chat(selector: FEWLExampleSelector) -> ChatPromptTemplate:
    turns = ChatPromptTemplate.from_messages([("human", "{question}"), ("ai", "{answer}")])
    shots = FewShotChatMessagePromptTemplate(
        example_selector=selector, example_prompt=turns, input_variables=["question"]
    )
    return ChatPromptTemplate.from_messages([("system", "Answer."), shots, ("human", "{question}")])


def chain(prompt: Any) -> Runnable[Any, str]:
    return prompt | ScriptedModel(script=echo) | StrOutputParser()


PLAIN = """\
human: Answer.

Q: 1 0.1 | q1
A: to 1 0.1 | q1

Q: 1 0.2 | q2
A: to 1 0.2 | q2

Q: 1 0 | new?
A:"""
CHAT = """\
system: Answer.
human: 1 0.1 | q1
ai: to 1 0.1 | q1
human: 1 0.2 | q2
ai: to 1 0.2 | q2
human: 1 0 | new?"""


@pytest.mark.parametrize(("prompt", "expected"), [(plain, PLAIN), (chat, CHAT)])
async def test_in_a_chain_by_every_way_to_call_it(prompt: Any, expected: str) -> None:
    made = chain(prompt(FEWLExampleSelector(fan(), k=2)))
    assert made.invoke(ASKED) == expected
    assert await made.ainvoke(ASKED) == expected
    assert made.batch([ASKED] * 5) == [expected] * 5
    assert await made.abatch([ASKED] * 5) == [expected] * 5
    assert "".join(made.stream(ASKED)) == expected


@pytest.mark.parametrize("prompt", [plain, chat])
def test_without_examples_the_prompt_is_there(prompt: Any, store: ExampleStore) -> None:
    made = chain(prompt(FEWLExampleSelector(store, on_empty="none")))
    assert "Answer." in made.invoke(ASKED)
    with pytest.raises(DemurError, match="it is empty: add questions with their answers"):
        chain(prompt(FEWLExampleSelector(store))).invoke(ASKED)


def trapped(answer: str) -> ExampleStore:
    store = ExampleStore(embedding=Told())
    store.add(f"1 1 | what of {answer}?", [answer], [1])
    return store


@pytest.mark.parametrize("answer", [*TRAPS, "{long} " * 7200], ids=lambda text: text[:12])
def test_braces_survive_in_both_prompts(answer: str) -> None:
    store = trapped(answer)
    asked = {"question": "1 0 | {new} {{x}}?"}
    told = f"1 1 | what of {answer}?"
    for prompt, expected in [
        (plain(FEWLExampleSelector(store, escape_braces=True)), f"Q: {told}\nA: {answer}\n\n"),
        (chat(FEWLExampleSelector(store)), f"human: {told}\nai: {answer}\n"),
    ]:
        text = chain(prompt).invoke(asked)
        assert expected in text
        assert text.count(asked["question"]) == 1


# --- Pickled, and many at once --------------------------------------------------------------------


def test_a_pickled_selector_selects_the_same(tmp_path: Path) -> None:
    store = ExampleStore(tmp_path, embedding=Told())
    store.add_many([(f"1 {at} | q{at}", ["a"], [at]) for at in range(9)])
    selector = FEWLExampleSelector(store, k=3, min_score=2, max_similarity=0.9)
    again = pickle.loads(pickle.dumps(selector))
    assert again.select_examples(ASKED) == selector.select_examples(ASKED)
    assert (again.k, again.min_score, again.max_similarity) == (3, 2, 0.9)
    store.close()
    again.store.close()
    with pytest.raises(TypeError, match="cannot be pickled, since it lives in this process"):
        pickle.dumps(FEWLExampleSelector(fan()))
