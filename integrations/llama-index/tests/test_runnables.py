"""Test evaluators of any kind in demur's guards."""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import Any

import pytest
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.evaluation import (
    BaseEvaluator,
    EvaluationResult,
    FaithfulnessEvaluator,
)
from llama_index.core.prompts.mixin import PromptDictType

from demur import Evaluation, RefChecker, Sample
from fake_llm import ScriptedLLM
from guarded_app import Said
from llama_index.evaluation.demur import (
    GuardedChatEngine,
    GuardedQueryEngine,
    ScoreEventHandler,
)
from llama_index.evaluation.demur._metering import is_judging
from llama_index.evaluation.demur._runnables import adapted
from llama_index.evaluation.demur.evaluators import RefCheckerEvaluator
from support import facts


class _Made(BaseEvaluator):
    """Give one fixed result, and record the arguments."""

    def __init__(self, **result: Any) -> None:
        self.result = result
        self.given: list[dict[str, Any]] = []

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        pass

    async def aevaluate(
        self,
        query: Any = None,
        response: Any = None,
        contexts: Any = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        given = {"query": query, "response": response, "contexts": contexts}
        self.given.append({**given, **kwargs, "judging": is_judging()})
        if "raises" in self.result:
            raise self.result["raises"]
        return EvaluationResult(**self.result)


async def _ask(evaluator: BaseEvaluator, sample: Sample) -> Evaluation:
    """Evaluate synchronously and asynchronously, and assert that both agree."""
    runnable: Any = adapted(evaluator)
    found = [await asyncio.to_thread(runnable.invoke, sample), await runnable.ainvoke(sample)]
    first, second = (one.model_copy(update={"usage": type(one.usage)()}) for one in found)
    assert first == second
    assert isinstance(found[1], Evaluation)
    return found[1]


def test_demur_s_own_are_taken_out() -> None:
    evaluator = RefCheckerEvaluator(ScriptedLLM(script=facts.judge))
    runnable = adapted(evaluator)
    assert runnable is evaluator.evaluator
    assert isinstance(runnable, RefChecker)
    assert runnable.claim_level


def test_what_judges_nothing_is_refused() -> None:
    chat = SimpleChatEngine.from_defaults(llm=ScriptedLLM(script=facts.judge))
    wrongs: Any = (7, [None], FaithfulnessEvaluator)
    takes: Any = (
        partial(GuardedQueryEngine, Said(script=lambda _: "Ada.")),
        partial(GuardedChatEngine, chat),
        partial(ScoreEventHandler, sink=print),
    )
    for wrong, take in zip(wrongs, takes, strict=True):
        with pytest.raises(TypeError, match="expected an evaluator") as no:
            take(wrong)
        if isinstance(wrong, type):
            assert f"got the class {wrong.__name__}: make one first" in str(no.value)


def test_a_mistake_in_an_evaluator_is_the_engine_s_caller_s_to_see() -> None:
    error = AttributeError("no such thing")
    engine = GuardedQueryEngine(Said(script=lambda _: "Ada."), _Made(raises=error))
    with pytest.raises(AttributeError) as raised:
        engine.query("Who?")
    assert raised.value is error


async def test_others_are_given_the_sample_and_understood() -> None:
    evaluator = _Made(passing=True, score=0.75, feedback="It holds.")
    sample = Sample.model_validate(
        {"question": "Who?", "answer": "Ada.", "contexts": ["a", "b"], "reference": "Ada."}
    )
    found = await _ask(evaluator, sample)
    assert (found.name, found.score, found.passed) == ("_Made", 0.75, True)
    assert (found.explanation, found.error) == ("It holds.", None)
    given = {"query": "Who?", "response": "Ada.", "contexts": ["a", "b"], "reference": "Ada."}
    assert evaluator.given == [{**given, "judging": True}] * 2
    assert not is_judging()


async def test_contexts_that_are_not_there_are_none() -> None:
    evaluator = _Made(passing=False)
    found = await _ask(evaluator, Sample(answer="Ada."))
    assert (found.passed, found.score, found.explanation) == (False, None, "")
    assert evaluator.given[0]["contexts"] is None
    assert "reference" not in evaluator.given[0]


_UNDECIDED: dict[str, tuple[dict[str, Any], str]] = {
    "invalid": (
        {"invalid_result": True, "invalid_reason": "No reply.", "score": 0.0, "passing": True},
        "No reply.",
    ),
    "invalid, no reason": ({"invalid_result": True}, "_Made calls its result invalid, and does"),
    "nan": ({"score": math.nan, "passing": True}, "_Made gave the score nan"),
    "nothing": ({"feedback": "Hm."}, "_Made gave neither a score nor a decision: Hm."),
}


@pytest.mark.parametrize(("result", "why"), _UNDECIDED.values(), ids=_UNDECIDED)
async def test_what_decides_nothing_is_undetermined(result: dict[str, Any], why: str) -> None:
    found = await _ask(_Made(**result), Sample(answer="Ada."))
    assert found.undetermined
    assert str(found.error).startswith(why)
    assert found.explanation == found.error


async def test_llamaindex_s_faithfulness_evaluator() -> None:
    def script(stage: str, messages: Any) -> str:
        asked = str(messages[-1].text)
        return "YES" if "Ada is here." in asked.partition("Context:")[2] else "NO"

    llm = ScriptedLLM(script=script)
    evaluator = FaithfulnessEvaluator(llm)
    for context, passed in (("Ada is here.", True), ("Nobody is here.", False)):
        sample = Sample.model_validate({"answer": "Ada is in.", "contexts": [context]})
        found = await _ask(evaluator, sample)
        assert (found.name, found.passed) == ("FaithfulnessEvaluator", passed)
        assert found.score == float(passed)
        assert found.usage.calls == 1
        assert found.usage.input_tokens > 50
        assert found.usage.output_tokens == 1
    runnable: Any = adapted(evaluator)
    with pytest.raises(ValueError, match="contexts and response must be provided"):
        await runnable.ainvoke(Sample(answer="Ada is in."))
