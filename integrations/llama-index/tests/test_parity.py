"""Test that the same samples give the same evaluations in LangChain and in LlamaIndex."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from demur import FEWL, Evaluation, RefChecker, ReverseValidation
from fake_llm import ScriptedLLM
from llama_index.evaluation.demur.evaluators import (
    FEWLEvaluator,
    RefCheckerEvaluator,
    ReverseValidationEvaluator,
)
from support import facts
from support.fakes import ScriptedModel


def _judge(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    """Judge as `facts.judge`, with token counts that both frameworks must report."""
    said = facts.judge(stage, messages)
    message = AIMessage(said) if isinstance(said, str) else said
    read, written = len(messages) * 100, len(str(message.text))
    usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    return message.model_copy(update={"usage_metadata": usage})


@dataclass(frozen=True)
class _Both:
    """Hold an evaluator of each framework, as functions of the model that both ask."""

    core: Callable[[Any], Any]
    here: Callable[[Any], Any]


def _fewl(make: Any) -> Callable[[Any], Any]:
    options = {"similarity": facts.alike, "n_answers": 2, "penalty": True}
    # Two objects are used, because equal requests of one model are merged only if they overlap.
    return lambda model: make([model, model.model_copy()], **options)


_EVALUATORS = {
    "refchecker per claim, sentences": _Both(
        lambda model: RefChecker(model, checker="per_claim", aggregation="soft", threshold=0.4),
        lambda llm: RefCheckerEvaluator(
            llm, checker="per_claim", aggregation="soft", threshold=0.4
        ),
    ),
    "refchecker logprobs": _Both(
        lambda model: RefChecker(model, checker="logprobs"),
        lambda llm: RefCheckerEvaluator(llm, checker="logprobs"),
    ),
    "reverse validation em": _Both(
        lambda model: ReverseValidation(model, variant="em", threshold=0.5),
        lambda llm: ReverseValidationEvaluator(llm, variant="em", threshold=0.5),
    ),
    "fewl": _Both(_fewl(FEWL), _fewl(FEWLEvaluator)),
}


def _essence(found: Evaluation) -> dict[str, Any]:
    """Return an evaluation without its seconds, and without what names the model."""
    told = found.model_dump()
    for spent in (told["usage"], *told["details"]["usage_by_stage"].values()):
        spent.pop("seconds")
    names = ("model", "validator", "reference_models", "pairs", "prompts")
    for name in names if "reference_models" in told["fingerprints"] else names[:2]:
        told["fingerprints"].pop(name, None)
    return told


@pytest.mark.parametrize("both", _EVALUATORS.values(), ids=_EVALUATORS)
async def test_the_same_script_gives_the_same_evaluations(both: _Both) -> None:
    model, llm = ScriptedModel(script=_judge), ScriptedLLM(script=_judge, reports_usage=False)
    core, here = both.core(model), both.here(llm)
    samples = [facts.sample(number) for number in range(4)]
    samples.append(samples[0].model_copy(update={"answer": " "}))
    for at, sample in enumerate(samples):
        contexts = [document.page_content for document in sample.contexts]
        given = (sample.question, sample.answer, contexts)
        way = at % 2
        expected = await core.ainvoke(sample) if way else core.invoke(sample)
        found = await here.aevaluate(*given) if way else here.evaluate(*given)
        assert found.sample == sample
        assert _essence(found.evaluation) == _essence(expected)
        assert expected.undetermined is (at == 4)
    assert len(core.fingerprints) == len(here.fingerprints)
    assert _texts(llm.requests) == _texts(model.requests)


def _texts(requests: Sequence[Sequence[BaseMessage]]) -> list[list[tuple[str, str]]]:
    """Return the texts of requests, sorted, because simultaneous requests come in any order."""
    return sorted([(one.type, str(one.text)) for one in request] for request in requests)
