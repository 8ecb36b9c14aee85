"""Test demur's evaluators as LlamaIndex evaluators."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.evaluation import BatchEvalRunner, EvaluationResult
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import BaseModel

from contract.evaluators import EVALUATORS
from contract.member import Member
from demur import FEWL, CallPolicy, DemurError, RefChecker, ReverseValidation, Sample
from fake_llm import ScriptedLLM
from llama_index.evaluation.demur._llm import as_chat_model
from llama_index.evaluation.demur._metering import is_judging
from llama_index.evaluation.demur._nodes import NodeDocument, as_nodes
from llama_index.evaluation.demur.evaluators import (
    HallucinationEvaluator,
    HallucinationResult,
    RefCheckerEvaluator,
)
from support import facts
from support.fakes import ScriptedModel
from support.markers import CONTEXT, QUESTION, STATE_NOTHING

_CONTEXTS = ["A list of items"]


@pytest.fixture
def llm() -> ScriptedLLM:
    return ScriptedLLM(script=facts.judge)


@pytest.fixture
def checker(llm: ScriptedLLM) -> RefCheckerEvaluator:
    return RefCheckerEvaluator(llm)


@pytest.mark.smoke
async def test_the_small_judge_needs_no_llm() -> None:
    checker = RefCheckerEvaluator("small", threshold=0.5)
    for number, passing in ((2, True), (3, False)):
        contexts = [facts.description(number).page_content]
        given = (facts.question(number), facts.answer(number), contexts)
        for found in (checker.evaluate(*given), await checker.aevaluate(*given)):
            assert found.passing is passing
            assert facts.grade(number, found.evaluation) == "right"
            assert found.evaluation.usage.calls == 0


# --- What a result says -------------------------------------------------------------------------


@pytest.mark.smoke
async def test_what_was_found_is_in_llamaindex_s_fields(checker: RefCheckerEvaluator) -> None:
    for number, passing, score in ((2, True, 1.0), (3, False, 0.5), (1, False, 0.0)):
        given = (facts.question(number), facts.answer(number), _CONTEXTS)
        for found in (checker.evaluate(*given), await checker.aevaluate(*given)):
            assert isinstance(found, EvaluationResult)
            assert (found.passing, found.score) == (passing, score)
            assert (found.invalid_result, found.invalid_reason) == (False, None)
            assert (found.query, found.response, found.contexts) == given
            assert found.feedback == found.evaluation.explanation != ""
            assert facts.grade(number, found.evaluation) == "right"
            assert found.evaluation.fingerprints == checker.fingerprints
            assert found.evaluation.usage.calls == 2
            assert found.evaluation.usage.input_tokens > 100
            again = HallucinationResult.model_validate_json(found.model_dump_json())
            assert again.evaluation == found.evaluation


def test_undetermined_is_an_invalid_result(checker: RefCheckerEvaluator) -> None:
    for given, why in (
        (("What?", facts.answer(1), None), "there is nothing to check the answer against"),
        (("What?", "  ", _CONTEXTS), "the answer is empty"),
    ):
        found = checker.evaluate(*given)
        assert (found.passing, found.score) == (None, None)
        assert found.invalid_result
        assert why in str(found.invalid_reason)
        assert found.feedback == found.invalid_reason == found.evaluation.error


def test_a_model_that_fails_is_an_invalid_result() -> None:
    def script(stage: str, messages: Any) -> str:
        raise PermissionError("not today")

    found = RefCheckerEvaluator(ScriptedLLM(script=script)).evaluate("?", "It is.", _CONTEXTS)
    assert found.invalid_result
    assert "PermissionError: not today" in str(found.invalid_reason)


def test_other_models_are_taken_too(llm: ScriptedLLM) -> None:
    validator, generator = ScriptedLLM(script=facts.judge), ScriptedModel(script=facts.judge)
    reverse = ReverseValidation(as_chat_model(llm), validator=as_chat_model(validator))
    HallucinationEvaluator(reverse).evaluate("?", facts.answer(2))
    assert (llm.stages, validator.stages) == (["construction"], ["access"])
    second = ScriptedLLM(script=facts.judge)
    fewl = FEWL(
        [as_chat_model(llm), as_chat_model(second)],
        generator=generator,
        similarity=facts.alike,
        n_answers=2,
        penalty=False,
        threshold=0.2,
    )
    found = HallucinationEvaluator(fewl).evaluate(facts.question(2), facts.answer(2))
    assert len(found.evaluation.details["answers"]) == 2
    assert (llm.stages[1:], second.stages, generator.stages) == (
        ["reference"],
        ["reference"],
        ["pairs"],
    )


@pytest.mark.parametrize(
    "options",
    [
        {"checker": "per_claim", "aggregation": "soft", "threshold": 0.4},
        {"checker": "logprobs", "threshold": 0.9},
        {"known": ["Support answers from 9 to 5."], "refusals": ["NO ANSWER", re.compile("no.*")]},
        {"claims": "sentences", "aggregation": "major"},
        {
            "window_tokens": 99,
            "max_windows": 3,
            "name": "mine",
            "call_policy": CallPolicy(attempts=1),
        },
    ],
    ids=str,
)
def test_its_options_are_the_core_s(llm: ScriptedLLM, options: dict[str, Any]) -> None:
    core, here = RefChecker(as_chat_model(llm), **options), RefCheckerEvaluator(llm, **options)
    assert here.evaluator == core


def test_what_states_nothing_is_valid_and_undecided() -> None:
    llm = ScriptedLLM(script=lambda stage, messages: "No claims")
    found = RefCheckerEvaluator(llm).evaluate("Who?", "I do not know.", _CONTEXTS)
    assert (found.passing, found.score, found.invalid_result) == (None, None, False)
    assert "states nothing" in str(found.feedback)
    assert found.evaluation.nothing_to_check


@pytest.mark.parametrize("answer", STATE_NOTHING)
def test_a_marker_of_having_no_answer_states_nothing(answer: str) -> None:
    found = RefCheckerEvaluator("small").evaluate(QUESTION, answer, [CONTEXT])
    assert (found.passing, found.score, found.invalid_result) == (None, None, False)
    assert found.evaluation.nothing_to_check


def test_without_a_threshold_there_is_a_score_alone() -> None:
    found = HallucinationEvaluator(lambda sample: 0.3).evaluate("?", facts.answer(2))
    assert (found.passing, found.invalid_result) == (None, False)
    assert found.score == 0.3


async def test_without_a_response_there_is_nothing_to_evaluate(
    checker: RefCheckerEvaluator,
) -> None:
    told = r"no response to evaluate: pass response=\.\.\."
    with pytest.raises(ValueError, match=told):
        checker.evaluate("What?", contexts=_CONTEXTS)
    with pytest.raises(ValueError, match=told):
        await checker.aevaluate_response("What?")


def test_what_is_no_text_is_refused_by_its_name(checker: RefCheckerEvaluator) -> None:
    whole: Any = Response(facts.answer(2))
    told = "response: expected text, got Response: call evaluate_response for engines' responses"
    with pytest.raises(TypeError, match=told):
        checker.evaluate("What?", whole)
    bundle: Any = QueryBundle("What?")
    with pytest.raises(TypeError, match="query: expected text, got QueryBundle"):
        checker.evaluate(bundle, facts.answer(2))
    text: Any = facts.answer(2)
    with pytest.raises(TypeError, match="expected an engine's response, got str: call evaluate"):
        checker.evaluate_response("What?", text)


def test_references_and_metadata_reach_the_method(
    llm: ScriptedLLM, checker: RefCheckerEvaluator
) -> None:
    found = checker.evaluate("?", facts.answer(2), reference="A list of items")
    assert found.passing
    assert found.sample.reference == "A list of items"
    reverse = HallucinationEvaluator(ReverseValidation(as_chat_model(llm)))
    found = reverse.evaluate("?", facts.answer(2), metadata={"entity": "item 2"})
    assert found.evaluation.details["entity_source"] == "caller"


# --- Responses ----------------------------------------------------------------------------------


class _Form(BaseModel):
    said: str


def _nodes() -> list[NodeWithScore]:
    node = TextNode(text="A list of items", metadata={"page": "7"})
    return [NodeWithScore(node=node, score=0.5)]


def _pieces(number: int) -> Iterator[str]:
    yield from facts.answer(number).partition(" is ")


async def _apieces(number: int) -> AsyncGenerator[str, None]:
    for piece in _pieces(number):
        yield piece


_RESPONSES: dict[str, Any] = {
    "plain": lambda: Response(facts.answer(3), _nodes()),
    "a stream": lambda: StreamingResponse(_pieces(3), _nodes()),
    "an async stream": lambda: AsyncStreamingResponse(_apieces(3), _nodes()),
    "pydantic": lambda: PydanticResponse(_Form(said=facts.answer(3)), _nodes()),
    "of a chat": lambda: AgentChatResponse(facts.answer(3), source_nodes=_nodes()),
}


@pytest.mark.parametrize(
    ("kind", "way"),
    [*((kind, "async") for kind in _RESPONSES), ("a stream", "sync"), ("an async stream", "sync")],
)
async def test_responses_are_held_against_their_nodes(
    checker: RefCheckerEvaluator, kind: str, way: str
) -> None:
    response = _RESPONSES[kind]()
    if way == "sync" and kind == "an async stream":
        with pytest.raises(DemurError, match="synchronously: call aevaluate_response"):
            checker.evaluate_response("What?", response)
        return
    if way == "sync":
        found = checker.evaluate_response("What?", response)
    else:
        found = await checker.aevaluate_response("What?", response)
    assert facts.grade(3, found.evaluation) == "right"
    # The model sees the metadata too, which LlamaIndex's own evaluators leave out.
    assert found.contexts == ["page: 7\n\nA list of items"]
    (document,) = found.sample.contexts
    assert isinstance(document, NodeDocument)
    assert document.node.score == 0.5
    expected = '{"said":"' + facts.answer(3) + '"}' if kind == "pydantic" else facts.answer(3)
    assert found.response == expected
    assert str(response) == expected, "it can still be shown"


# --- Inside LlamaIndex --------------------------------------------------------------------------


@pytest.mark.parametrize("member", EVALUATORS, ids=lambda member: member.name)
async def test_every_evaluator_works_in_a_batch(member: Member) -> None:
    runner = BatchEvalRunner({"it": HallucinationEvaluator(member.make())}, workers=8)
    samples = [Sample.model_validate(member.give(number)) for number in range(6)]
    given: Any = {
        "queries": [sample.question for sample in samples],
        "metadata": [sample.metadata for sample in samples],
    }
    contexts = [[context.page_content for context in sample.contexts] for sample in samples]
    texts = await runner.aevaluate_response_strs(
        response_strs=[sample.answer for sample in samples], contexts_list=contexts, **given
    )
    responses = [Response(sample.answer, as_nodes(sample.contexts)) for sample in samples]
    for results in (texts, await runner.aevaluate_responses(responses=responses, **given)):
        for number, (found, sample) in enumerate(zip(results["it"], samples, strict=True)):
            assert isinstance(found, HallucinationResult)
            assert found.query == sample.question
            assert member.good(number, found.evaluation)


def test_a_function_is_an_evaluator_too() -> None:
    evaluator = HallucinationEvaluator(lambda sample: "red" in sample.answer)
    assert evaluator.evaluate("?", facts.answer(2)).passing
    assert evaluator.fingerprints == evaluator.get_prompts() == {}
    with pytest.raises(TypeError, match="expected an evaluator"):
        HallucinationEvaluator(7)  # type: ignore[arg-type]  # wrong


_NOTEBOOK = """
import asyncio
import nest_asyncio
from fake_llm import ScriptedLLM
from support import facts
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.evaluation.demur.evaluators import RefCheckerEvaluator

nest_asyncio.apply()
checker = RefCheckerEvaluator(ScriptedLLM(script=facts.judge))
given = "?", facts.answer(3), ["A list of items"]

async def cell():
    runner = BatchEvalRunner({"it": checker})
    batch = runner.evaluate_response_strs(*([one] * 2 for one in given))
    yield checker.evaluate(*given)
    yield asyncio.run(checker.aevaluate(*given))
    for found in batch["it"]:
        yield found

async def main():
    print({facts.grade(3, found.evaluation) async for found in cell()} == {"right"})

asyncio.run(main())
print(checker.fingerprints)
"""


def test_nested_event_loops_in_another_process_and_the_fingerprints_there(
    checker: RefCheckerEvaluator,
) -> None:
    """Run in a notebook's loop, for which `nest_asyncio` changes asyncio in the whole process."""
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", _NOTEBOOK],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["True", str(checker.fingerprints)], done.stderr


# --- Models and options -------------------------------------------------------------------------


class _Retriever(BaseRetriever):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, bool]] = []

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append((query_bundle.query_str, is_judging()))
        return _nodes()


async def test_a_retriever_of_llamaindex_s(llm: ScriptedLLM) -> None:
    retriever = _Retriever()
    evaluator = RefCheckerEvaluator(llm, retriever=retriever)
    for found in (
        evaluator.evaluate("What is it like?", facts.answer(2)),
        await evaluator.aevaluate("What is it like?", facts.answer(2)),
    ):
        assert found.passing
        assert found.evaluation.details["retrieved"][0]["page_content"].startswith("page: 7")
    assert retriever.asked == [("What is it like?", True)] * 2
    with pytest.raises(TypeError, match="retriever: expected a LlamaIndex BaseRetriever, got str"):
        RefCheckerEvaluator(llm, retriever="here")  # type: ignore[typeddict-item]  # wrong


def test_options_and_their_defaults_are_those_of_the_core() -> None:
    options, of_core = (
        {name: parameter.default for name, parameter in [*signature.parameters.items()][1:]}
        for signature in map(inspect.signature, (RefCheckerEvaluator, RefChecker))
    )
    assert options == of_core
