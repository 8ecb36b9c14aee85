"""Test structured answers, JSON and pydantic objects: they are judged and repaired as a whole."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from functools import reduce
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables.utils import AddableDict
from pydantic import BaseModel, Field

from demur import (
    AnswerRejected,
    DemurError,
    Evaluation,
    Guard,
    RefChecker,
    Sample,
    ScoreCallbackHandler,
)
from demur.guard import REFUSAL
from demur.shapes import added
from support.fakes import ScriptedModel, isolated, saying
from support.guarded import Chain, traced
from support.streams import ByClaims, Client, Telling

FACT = "The statue weighs 23 kg and is made of bronze."
WRONG = {"answer": "The statue weighs 31 kg.", "weight_kg": 31}
RIGHT = {"answer": "The statue weighs 23 kg.", "weight_kg": 23}


class Statue(BaseModel):
    answer: str
    weight_kg: int | None = None


class Weight(BaseModel):
    name: str
    weight: float = Field(alias="kilograms", ge=0)
    parts: list[str]


def heavy(sample: Sample) -> Evaluation:
    """Reject an answer with "31" in it."""
    return Evaluation(name="heavy", passed="31" not in sample.answer)


def checking(*replies: str) -> ScriptedModel:
    """Return a model that labels values by their numbers, and gives the repairs in order."""
    coming = list(replies)

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "repair":
            return coming.pop(0)
        lines = isolated("claims", messages).splitlines()
        return "\n".join(
            f"{at}. {'Contradiction' if '31' in line else 'Entailment'}"
            for at, line in enumerate(lines, 1)
        )

    return ScriptedModel(script=script)


# --- Found and judged as a whole -----------------------------------------------------------------

OUTPUTS: dict[str, Any] = {
    "a mapping": {"name": "statue", "weight_kg": 31},
    "a mapping with an answer beside the rest": WRONG,
    "a pydantic object": Weight(name="statue", kilograms=31, parts=["base"]),
    "one with an answer": Statue(**WRONG),
    "a list": [{"name": "statue", "weight_kg": 31}],
    "nested": {"items": [{"weight": {"kg": 31}}]},
}


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_every_value_is_judged(output: Any) -> None:
    judged: list[str] = []

    def judge(sample: Sample) -> Evaluation:
        judged.append(sample.answer)
        return heavy(sample)

    with pytest.raises(AnswerRejected):
        Guard(Chain(output), judge, on_fail="block").invoke("How heavy?")
    (answer,) = judged
    assert "31" in answer
    assert isinstance(json.loads(answer), (dict, list))


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_what_passes_leaves_as_it_is(output: Any) -> None:
    def judge(sample: Sample) -> Evaluation:
        return Evaluation(name="judge", passed=True)

    assert Guard(Chain(output), judge).invoke("How heavy?") is output


def test_claims_name_the_values_that_they_stand_in() -> None:
    checker = RefChecker(checking(), checker="joint", claims="sentences")
    output = {"name": "statue", "parts": [{"weight_kg": 31}], "the material": "bronze"}
    guard = Guard(Chain(output), checker, on_fail="block", contexts=lambda _: [FACT])
    with pytest.raises(AnswerRejected) as raised:
        guard.invoke("How heavy?")
    (evaluation,) = raised.value.trace.attempts[0].evaluations
    paths = {claim.path: str(claim.label) for claim in evaluation.claims}
    assert paths == {
        "$.name": "Entailment",
        "$.parts[0].weight_kg": "Contradiction",
        '$["the material"]': "Entailment",
    }


def test_a_handler_scores_a_structured_answer_as_a_guard_judges_it() -> None:
    judged: list[str] = []

    def judge(sample: Sample) -> Evaluation:
        judged.append(sample.answer)
        return heavy(sample)

    handler = ScoreCallbackHandler(RunnableLambda(judge), sink=lambda record: None)
    chain: Any = RunnableLambda(lambda given: Statue(**WRONG))
    chain.invoke("How heavy?", config={"callbacks": [handler]})
    handler.flush()
    assert [json.loads(answer) for answer in judged] == [WRONG]


# --- Refused -------------------------------------------------------------------------------------


def test_a_refusal_stands_under_the_answers_key_and_all_else_is_emptied() -> None:
    for output, left in (
        (WRONG, {"answer": REFUSAL, "weight_kg": None}),
        ({**WRONG, "parts": ["31 bolts"]}, {"answer": REFUSAL, "weight_kg": None, "parts": []}),
        (Statue(**WRONG), Statue(answer=REFUSAL)),
    ):
        assert Guard(Chain(output), heavy).invoke("How heavy?") == left


def test_what_a_composed_chain_has_beside_a_refused_answer_is_emptied() -> None:
    chain: Any = RunnablePassthrough.assign(
        context=lambda _: [FACT],
        answer=lambda _: WRONG["answer"],
        weight_kg=lambda _: 31,
        steps=lambda _: [("weigh", 31)],
    )
    found = Guard(chain, heavy, on_fail="abstain").invoke({"question": "How heavy?"})
    assert found == {
        "question": "How heavy?",
        "context": [FACT],
        "answer": REFUSAL,
        "weight_kg": None,
        "steps": [],
    }


@pytest.mark.parametrize("streaming", ["buffer", "sentence"])
@pytest.mark.parametrize("made", [dict, lambda data: Statue(**data)], ids=["data", "object"])
def test_data_under_the_answers_key_of_a_composed_chain_is_the_answer(
    made: Any, streaming: Any
) -> None:
    for said, left in ((RIGHT, RIGHT), (WRONG, {"answer": REFUSAL, "weight_kg": None})):
        chain: Any = RunnablePassthrough.assign(
            context=lambda _: [FACT], n=lambda _: 31, answer=lambda _, said=said: made(said)
        )
        judge = ByClaims(passes=lambda sample: "31" not in sample.answer)
        guard: Any = Guard(chain, judge, on_fail="abstain", streaming=streaming)
        n = 31 if said is RIGHT else None
        given = {"question": "How heavy?"}
        whole = {**given, "context": [FACT], "n": n, "answer": made(left)}
        assert guard.invoke(given) == whole
        assert reduce(added, Client().read(guard, given).chunks) == whole
        assert json.loads(judge.answers[0]) == said


@pytest.mark.parametrize("name", ["a mapping", "a pydantic object", "a list", "nested"])
def test_where_no_text_has_a_place_the_refusal_is_raised(name: str) -> None:
    with pytest.raises(AnswerRejected, match="cannot hold another text") as raised:
        Guard(Chain(OUTPUTS[name]), heavy).invoke("How heavy?")
    assert "31" not in str(raised.value)


def test_a_key_that_is_named_works_for_a_pydantic_object() -> None:
    class Said(BaseModel):
        text: str
        weight: int | None = None

    guard = Guard(Chain(Said(text="It weighs 31 kg.", weight=31)), heavy, answer="text")
    assert guard.invoke("How heavy?") == Said(text=REFUSAL)
    with pytest.raises(DemurError, match="answer='words': there is no such key in a Said with"):
        guard.model_copy(update={"answer": "words"}).invoke("How heavy?")


def test_of_a_parsed_answer_the_raw_message_does_not_stay() -> None:
    raw = AIMessage(json.dumps(WRONG))
    output = {"raw": raw, "parsed": Statue(**WRONG), "parsing_error": None}
    found = Guard(Chain(output), heavy, answer="parsed").invoke("How heavy?")
    assert found == {"raw": None, "parsed": Statue(answer=REFUSAL), "parsing_error": None}


def test_a_field_that_has_to_have_a_value_is_not_left_standing() -> None:
    class Said(BaseModel):
        answer: str
        weight: int

    output = Said(answer="It weighs 31 kg.", weight=31)
    for options in ({}, {"answer": "answer"}):
        with pytest.raises(AnswerRejected):
            Guard(Chain(output), heavy, **options).invoke("How heavy?")


# --- Repaired ------------------------------------------------------------------------------------


def test_what_a_repair_writes_is_judged_whole() -> None:
    model = saying(json.dumps({**RIGHT, "weight_kg": 31}))
    found = traced(Guard(Chain(WRONG), heavy, model=model), "How heavy?")
    assert found.output == {"answer": REFUSAL, "weight_kg": None}
    assert found.trace.outcome == "abstained"


@pytest.mark.parametrize(
    "reply",
    [
        "The statue weighs 23 kg.",
        '{"answer": "It weighs 23 kg."}',
        '{"answer": "It weighs 23 kg.", "weight_kg": "23", "more": 1}',
        '{"answer": 23, "weight_kg": 23}',
        '["It weighs 23 kg."]',
        '{"answer": "It weighs 23 kg.", "weight_kg": "twenty-three"}',
    ],
)
def test_a_repair_of_another_form_is_none(reply: str) -> None:
    for output in (WRONG, {**WRONG, "weight_kg": 31.5}):
        found = traced(Guard(Chain(output), heavy, model=saying(reply)), "How heavy?")
        assert found.output == {"answer": REFUSAL, "weight_kg": None}
        assert found.trace.reason.startswith("the answer could not be repaired (")
        assert "23" not in found.trace.reason


def test_a_pydantic_object_is_repaired_as_its_class_validates_it() -> None:
    output = OUTPUTS["a pydantic object"]
    good = '```json\n{"name": "statue", "kilograms": "23", "parts": []}\n```'
    guard = Guard(Chain(output), heavy, model=(model := saying(good)))
    assert guard.invoke("How heavy?") == Weight(name="statue", kilograms=23, parts=[])
    assert "kilograms" in isolated("form", model.requests[0])
    bad = saying('{"name": "statue", "kilograms": -23, "parts": []}')
    with pytest.raises(AnswerRejected, match=r"could not be repaired \(kilograms: greater_than"):
        Guard(Chain(output), heavy, model=bad).invoke("How heavy?")


def test_a_text_that_is_json_stays_json_so_that_a_parser_may_follow() -> None:
    for said in (json.dumps(WRONG), f"```json\n{json.dumps(WRONG)}\n```"):
        chain = RunnableLambda(Chain(AIMessage(said)))
        guard: Any = Guard(chain, heavy, model=saying(json.dumps(RIGHT)))
        assert (guard | JsonOutputParser()).invoke("How heavy?") == RIGHT
        parser = PydanticOutputParser(pydantic_object=Statue)
        assert (guard | parser).invoke("How heavy?") == Statue(**RIGHT)


def test_a_text_in_brackets_is_no_json() -> None:
    guard = Guard(Chain("[1] It weighs 31 kg."), heavy, model=saying("It weighs 23 kg."))
    assert guard.invoke("How heavy?") == "It weighs 23 kg."


def test_beside_a_repaired_text_nothing_of_the_old_answer_stands() -> None:
    output = {"context": [FACT], **WRONG, "steps": ["weigh: 31"], "note": "31"}
    guard = Guard(Chain(output), heavy, model=saying("It weighs 23 kg."))
    found = guard.invoke("How heavy?")
    assert found == {
        "context": [FACT],
        "answer": "It weighs 23 kg.",
        "weight_kg": None,
        "steps": [],
        "note": None,
    }


# --- Streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", ["buffer", "sentence"])
def test_a_growing_answer_leaves_whole_and_checked(streaming: Any) -> None:
    for said, left in ((RIGHT, RIGHT), (WRONG, {"answer": REFUSAL, "weight_kg": None})):
        chain = Telling(json.dumps(said)) | JsonOutputParser()
        judge = ByClaims(passes=lambda sample: "31" not in sample.answer)
        guard: Any = Guard(chain, judge, streaming=streaming, on_fail="abstain")
        assert Client().read(guard, "How heavy?").chunks == [left]


@pytest.mark.parametrize("first", ["answer", "weight_kg"])
@pytest.mark.parametrize("composed", [True, False])
def test_what_stands_beside_a_streamed_answer_waits_for_the_verdict(
    first: str, composed: bool
) -> None:
    words = [AddableDict(answer="The statue is "), AddableDict(answer="light. It is bad.")]
    beside = [AddableDict(weight_kg=31)]
    chunks = [*words, *beside] if first == "answer" else [*beside, *words]
    if composed:
        chunks = [AddableDict(context=[FACT]), *chunks]
    guard: Any = Guard(
        Telling(chunks), ByClaims(), streaming="sentence", on_fail="abstain", contexts=lambda _: []
    )
    client = Client().read(guard, "How heavy?")
    assert client.text == REFUSAL
    assert "31" not in repr(client.chunks)


def test_a_wrong_value_takes_back_the_sentence_that_left_before_it() -> None:
    chunks = [AddableDict(answer="It is of bronze."), AddableDict(answer=" So."), AddableDict(n=31)]
    judge = ByClaims(passes=lambda sample: "31" not in sample.answer)
    left = threading.Event()
    chain = Telling(chunks)
    chain.hold = lambda chunk: left if "n" in chunk else None
    guard: Any = Guard(chain, judge, streaming="sentence", on_fail="abstain", contexts=lambda _: [])
    client = Client()
    client.on_text = lambda text: left.set()
    client.read(guard, "How heavy?")
    assert client.text == REFUSAL
    assert client.replaced == [{"keep": 0, "keys": []}]
    assert "31" not in repr(client.chunks)


def test_lists_that_are_streamed_are_refused_with_what_to_do() -> None:
    chain = Telling('[{"n": 1}, {"n": 2}]') | JsonOutputParser()
    guard: Any = Guard(chain, ByClaims(), streaming="sentence", contexts=lambda _: [])
    client = Client()
    with pytest.raises(DemurError, match="stream with streaming='buffer'"):
        client.read(guard, "why?")
    assert client.chunks == []
    buffered: Any = guard.model_copy(update={"streaming": "buffer"})
    assert Client().read(buffered, "why?").chunks == [[{"n": 1}, {"n": 2}]]
