"""Test judges of openevals and ragas as evaluators, with fakes of their shapes."""

from __future__ import annotations

import asyncio
import functools
import math
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.runnables import Runnable

from demur import Evaluation, Sample
from demur.evaluators import as_evaluator

SAMPLE = Sample(question="How tall?", answer="324 m", contexts=["a", "b"], reference="324 m")
BARE = Sample(answer="324 m")


def judged(evaluator: Runnable[Any, Evaluation], sample: Sample = SAMPLE) -> Evaluation:
    """Evaluate synchronously and asynchronously, and assert that both agree."""

    async def ajudged() -> Evaluation:
        return await evaluator.ainvoke(sample)

    first, second = evaluator.invoke(sample), asyncio.run(ajudged())
    assert first == second
    return first


# --- openevals ------------------------------------------------------------------------------------


def exact(*, outputs: Any, reference_outputs: Any, **kwargs: Any) -> dict[str, Any]:
    return {"key": "exact", "score": outputs == reference_outputs, "comment": None}


async def aexact(*, outputs: Any, reference_outputs: Any) -> dict[str, Any]:
    return exact(outputs=outputs, reference_outputs=reference_outputs)


def create_judge(score: Any, comment: str | None = None) -> Any:
    seen: list[dict[str, Any]] = []

    def _wrapped(*, inputs: Any = None, outputs: Any = None, **kwargs: Any) -> dict[str, Any]:
        seen.append({"inputs": inputs, "outputs": outputs, **kwargs})
        return {"key": "score", "score": score, "comment": comment, "metadata": None}

    _wrapped.seen = seen  # type: ignore[attr-defined]  # for the test to read
    return _wrapped


@pytest.mark.parametrize("judge", [exact, aexact])
def test_a_decision_of_openevals_decides(judge: Any) -> None:
    evaluator = as_evaluator(judge)
    assert evaluator.get_name() == judge.__name__
    assert judged(evaluator).passed is True
    other = SAMPLE.model_copy(update={"answer": "300 m"})
    assert judged(evaluator, other).passed is False


def test_it_is_given_what_the_sample_has() -> None:
    judge = create_judge(True)
    judged(as_evaluator(judge))
    whole = {"inputs": "How tall?", "outputs": "324 m", "reference_outputs": "324 m"}
    assert judge.seen == [{**whole, "context": "a\n\nb"}] * 2
    judge = create_judge(True)
    judged(as_evaluator(judge), BARE)
    assert judge.seen == [{"inputs": None, "outputs": "324 m"}] * 2


def test_a_score_of_openevals_needs_a_threshold() -> None:
    judge = create_judge(0.7, "Mostly.")
    assert judged(as_evaluator(judge)).finding == "scored"
    evaluation = judged(as_evaluator(judge, threshold=0.8))
    assert (evaluation.passed, evaluation.score) == (False, 0.7)
    assert (evaluation.name, evaluation.explanation) == ("create_judge", "Mostly.")


@pytest.mark.parametrize("score", [None, math.nan])
def test_a_judge_of_openevals_without_a_score_is_undetermined(score: Any) -> None:
    evaluation = judged(as_evaluator(create_judge(score, "I cannot tell."), threshold=0.5))
    assert evaluation.finding == "undetermined"
    assert "I cannot tell." in str(evaluation.error)


def test_what_openevals_needs_and_the_sample_lacks_is_undetermined() -> None:
    evaluation = judged(as_evaluator(exact), BARE)
    assert evaluation.finding == "undetermined"
    assert "it needs reference_outputs, and the sample has none" in str(evaluation.error)
    bound = functools.partial(exact, reference_outputs="324 m")
    assert judged(as_evaluator(bound), BARE).passed is True


# --- ragas ----------------------------------------------------------------------------------------


@dataclass
class SingleTurnSample:
    """Imitate ragas' class of the same name."""

    user_input: str | None = None
    response: str | None = None
    retrieved_contexts: list[str] | None = None
    reference: str | None = None


@dataclass
class SingleTurn:
    """Imitate a metric of `ragas.metrics`."""

    score: Any = 1.0
    required: tuple[str, ...] = ("response", "reference")
    name: str = "exact_match"
    seen: list[Any] = field(default_factory=list)

    @property
    def required_columns(self) -> dict[str, set[str]]:
        return {"SINGLE_TURN": {*self.required}}

    async def single_turn_ascore(self, sample: Any, callbacks: Any = None) -> Any:
        self.seen.append(sample)
        return self.score


class Faithfulness:
    """Imitate a metric of `ragas.metrics.collections`."""

    def __init__(self, value: Any, reason: str | None = None) -> None:
        self.name = "faithfulness"
        self.value, self.reason = value, reason
        self.seen: list[Any] = []

    async def ascore(self, user_input: str, response: str, retrieved_contexts: list[str]) -> Any:
        self.seen.append((user_input, response, retrieved_contexts))
        return SimpleNamespace(value=self.value, reason=self.reason)


@pytest.fixture
def schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the module of ragas in which demur finds the sample's class."""
    module: Any = SimpleNamespace(SingleTurnSample=SingleTurnSample)
    monkeypatch.setitem(sys.modules, "ragas.dataset_schema", module)


@pytest.mark.usefixtures("schema")
@pytest.mark.parametrize("made", [SingleTurn, Faithfulness])
def test_a_score_of_ragas_decides_with_a_threshold(made: Any) -> None:
    metric = made(0.7)
    assert as_evaluator(metric).get_name() == metric.name
    assert judged(as_evaluator(metric)).finding == "scored"
    assert judged(as_evaluator(metric, threshold=0.7)).passed is True
    assert judged(as_evaluator(metric, threshold=0.71, name="mine")).passed is False
    assert len(metric.seen) == 6


@pytest.mark.usefixtures("schema")
def test_ragas_is_given_what_the_sample_has() -> None:
    metric, named = SingleTurn(), Faithfulness(1.0)
    judged(as_evaluator(metric, threshold=1))
    judged(as_evaluator(named, threshold=1))
    assert metric.seen[0] == SingleTurnSample("How tall?", "324 m", ["a", "b"], "324 m")
    assert named.seen[0] == ("How tall?", "324 m", ["a", "b"])


@pytest.mark.usefixtures("schema")
@pytest.mark.parametrize("made", [SingleTurn, Faithfulness])
def test_what_ragas_needs_and_the_sample_lacks_is_undetermined_and_not_asked(made: Any) -> None:
    metric = made(0.0)
    evaluation = judged(as_evaluator(metric, threshold=0.5), BARE)
    assert evaluation.finding == "undetermined"
    assert "and the sample has none" in str(evaluation.error)
    assert metric.seen == []


@pytest.mark.usefixtures("schema")
@pytest.mark.parametrize(("made", "score"), [(SingleTurn, None), (Faithfulness, math.nan)])
def test_a_metric_without_a_score_is_undetermined(made: Any, score: Any) -> None:
    evaluation = judged(as_evaluator(made(score), threshold=0.5))
    assert evaluation.finding == "undetermined"


def test_a_reason_of_ragas_is_the_explanation() -> None:
    evaluation = judged(as_evaluator(Faithfulness(0.2, "Two of ten."), threshold=0.5))
    assert (evaluation.passed, evaluation.explanation) == (False, "Two of ten.")


def test_metrics_that_no_sample_is_enough_for_are_refused() -> None:
    with pytest.raises(TypeError, match="exact_match needs reference_contexts, which no sample"):
        as_evaluator(SingleTurn(required=("response", "reference_contexts")))

    class Anything:
        name = "anything"

        async def ascore(self, **kwargs: Any) -> Any:
            return None

    with pytest.raises(TypeError, match=r"anything names none of the arguments .* user_input"):
        as_evaluator(Anything())
