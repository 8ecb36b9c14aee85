"""Test that the same samples give the same evaluations in LangChain and in LlamaIndex."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from demur import FEWL, Evaluation, RefChecker, ReverseValidation
from fake_llm import ScriptedLLM
from llama_index.evaluation.demur import HallucinationEvaluator, as_chat_model
from support import facts
from support.fakes import ScriptedModel


def _judge(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    """Judge as `facts.judge`, with token counts that both frameworks must report."""
    said = facts.judge(stage, messages)
    message = AIMessage(said) if isinstance(said, str) else said
    read, written = len(messages) * 100, len(str(message.text))
    usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    return message.model_copy(update={"usage_metadata": usage})


def _fewl(model: Any) -> FEWL:
    # Two objects are used, because equal requests of one model are merged only if they overlap.
    models = [model, model.model_copy()]
    return FEWL(models, similarity=facts.alike, n_answers=2, penalty=True)


_EVALUATORS: dict[str, Callable[[Any], Any]] = {
    "refchecker per claim, sentences": partial(
        RefChecker, checker="per_claim", aggregation="soft", threshold=0.4
    ),
    "refchecker logprobs": partial(RefChecker, checker="logprobs"),
    "reverse validation em": partial(ReverseValidation, variant="em", threshold=0.5),
    "fewl": _fewl,
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


@pytest.mark.parametrize("make", _EVALUATORS.values(), ids=_EVALUATORS)
async def test_the_same_script_gives_the_same_evaluations(make: Callable[[Any], Any]) -> None:
    model, llm = ScriptedModel(script=_judge), ScriptedLLM(script=_judge, reports_usage=False)
    core, here = make(model), HallucinationEvaluator(make(as_chat_model(llm)))
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
