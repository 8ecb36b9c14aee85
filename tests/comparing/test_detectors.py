"""Test the list of detectors: what each needs of rows and model, and how floors score."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from demur import Sample
from demur.comparing import DETECTORS
from demur.evaluators import SelfCheck
from demur.local import ChatLocal
from support.fakes import ScriptedModel, scripted
from support.openai_server import OpenAIServer

MODEL = scripted("x")
HEAVY = {
    *(name for name in DETECTORS if "nli" in name or "bertscore" in name),
    *(name for name, one in DETECTORS.items() if one.on_request and not one.asks),
}
"""The detectors that need weights which tests do not have."""

NO_ADAPTER = "the model has no adapter of demur's"


@pytest.mark.slow
def test_each_is_made_for_a_model_and_named() -> None:
    for name, detector in DETECTORS.items():
        if name not in HEAVY and detector.fits(MODEL) != NO_ADAPTER:
            evaluator = detector.make(MODEL, name=name, call_policy=None)
            assert evaluator.get_name() == name
            assert evaluator.fingerprints


def test_those_without_calls_ask_nobody() -> None:
    model = ScriptedModel(script=lambda stage, messages: "x")
    sample = Sample(question="Where is it?", answer="It is in France.", contexts=["France."])
    for name, detector in DETECTORS.items():
        if detector.calls == 0 and name not in HEAVY:
            assert detector.make(model).invoke(sample).error is None
    assert model.stages == []


FULL = {"question": "Q?", "answer": "a", "contexts": ["c"], "metadata": {"entity": "Bob"}}


@pytest.mark.parametrize(
    ("lacking", "left_out"),
    [
        (
            {"contexts": []},
            {"floor-contexts", "cascade-nli-joint", *(n for n in DETECTORS if n[:5] == "refch")},
        ),
        (
            {"question": " "},
            {
                *("floor-question", "answer-relevance"),
                *(n for n in DETECTORS if n[:5] in ("fewl", "fewl-", "selfc")),
            },
        ),
        ({"metadata": {"entity": 7}}, {"reverse-validation-qg", "reverse-validation-em"}),
        ({}, set()),
    ],
)
def test_what_rows_lack_leaves_detectors_out(lacking: Any, left_out: set[str]) -> None:
    sample = Sample.model_validate({**FULL, **lacking})
    assert {name for name, one in DETECTORS.items() if one.needs(sample)} == left_out
    served = Sample(answer="a", reference="r", metadata={"samples": ["s"]})
    for name in ("refchecker-sentences-joint", "floor-contexts", "selfcheck-ngram"):
        assert DETECTORS[name].needs(served) is None


def test_log_probabilities_are_asked_of_models_that_give_them() -> None:
    detector = DETECTORS["refchecker-sentences-logprobs"]
    assert detector.fits(MODEL) == "the model gives no log-probabilities"
    assert detector.fits(OpenAIServer("http://127.0.0.1:1/v1").model()) is None
    assert detector.fits(ChatLocal.model_construct()) is None
    assert DETECTORS["refchecker-sentences-joint"].fits(MODEL) is None


def test_the_adapter_is_asked_of_models_that_have_it() -> None:
    class Adapted(ScriptedModel):
        @property
        def judging(self) -> dict[str, Any]:
            return {"extra_body": {}}

    model = Adapted(script=lambda stage, messages: "x")
    for claims in ("sentences", "triplets"):
        detector = DETECTORS[f"refchecker-{claims}-adapter"]
        assert detector.fits(MODEL) == NO_ADAPTER
        assert detector.fits(model) is None
        assert detector.make(model).fingerprints["checker"].startswith("adapter")


def test_variants_of_self_check_share_samples_and_each_counts_their_cost() -> None:
    def script(stage: str, messages: object) -> AIMessage:
        usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        return AIMessage("It is in France.", usage_metadata=usage)

    model = ScriptedModel(script=script)
    variants = [DETECTORS[name].make(model) for name in ("selfcheck-ngram", "selfcheck-embedding")]
    sample = {"question": "Where is it?", "answer": "It is in Spain."}
    first, second = (variant.invoke(sample) for variant in variants)
    assert model.stages == ["sample"] * 5
    assert first.details["samples"] == second.details["samples"]
    tokens = [(one.usage.calls, one.usage.input_tokens) for one in (first, second)]
    assert tokens == [(5, 35), (5, 35)]
    variants[1].invoke({**sample, "question": "Where is that?"})
    DETECTORS["selfcheck-ngram"].make(ScriptedModel(script=script)).invoke(sample)
    assert model.stages == ["sample"] * 10
    alone = SelfCheck(ScriptedModel(script=script), method="ngram")
    assert variants[0].fingerprints == alone.fingerprints
    assert alone.invoke(sample).score == first.score


@pytest.mark.parametrize(
    ("measure", "score"),
    [("longest", 4.0), ("shortest", -4.0), ("question", 2 / 4), ("contexts", 3 / 4)],
)
def test_floors_count_words(measure: str, score: float) -> None:
    sample = Sample(
        question="Where is Lyon?",
        answer="Lyon is in France.",
        contexts=["Lyon: a city."],
        reference="France lies in Europe.",
    )
    found = DETECTORS[f"floor-{measure}"].make(MODEL).invoke(sample)
    assert (found.score, found.passed) == (pytest.approx(score), None)
    silent = {"question": "Q?", "answer": " ... ", "contexts": ["c"]}
    found = DETECTORS[f"floor-{measure}"].make(MODEL).invoke(silent)
    assert (found.score, found.error) == (None, "the answer holds no words")
