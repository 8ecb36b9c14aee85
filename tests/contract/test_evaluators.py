"""What every evaluator has to keep to as a Runnable. A new evaluator joins by `EVALUATORS`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda

from demur import ClaimLabel, Evaluation, RefChecker, Sample
from demur.evaluators.base import Evaluator
from support.fakes import ScriptedModel, isolated, stage_of

LIKELY = ("Entailment", "Contradiction")


def _reply(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
    """Every claim that holds an even number is supported; every other is contradicted."""
    if stage == "extraction":
        number = "".join(filter(str.isdigit, isolated("answer", messages)))
        return f'("item", "has number", "{number}")'
    claim = isolated("claims" if stage == "joint" else "claim", messages)
    number = int("0" + "".join(filter(str.isdigit, claim.partition(". ")[2] or claim)))
    label = ClaimLabel.ENTAILMENT if number % 2 == 0 else ClaimLabel.CONTRADICTION
    if stage == "joint":
        return f"1. {label}"
    # The claims on which the bias is measured are about other things.
    sure = str(label) if "item" in claim else ""
    tokens = {name: -0.1 if name == sure else -5.0 for name in ("Neutral", *LIKELY)}
    content = [{"token": t, "logprob": p} for t, p in tokens.items()]
    logprobs = {"content": [{**content[0], "top_logprobs": content}]}
    return AIMessage(str(label), response_metadata={"logprobs": logprobs})


def _model() -> ScriptedModel:
    return ScriptedModel(script=_reply)


EVALUATORS: dict[str, Callable[[], Evaluator]] = {
    "refchecker joint": lambda: RefChecker(_model(), checker="joint"),
    "refchecker per claim": lambda: RefChecker(_model(), checker="per_claim"),
    "refchecker logprobs": lambda: RefChecker(_model(), checker="logprobs"),
}


@pytest.fixture(params=list(EVALUATORS))
def evaluator(request: pytest.FixtureRequest) -> Evaluator:
    return EVALUATORS[request.param]()


def sample(number: int) -> Sample:
    return Sample(
        question="What number?", answer=f"The item has number {number}.", contexts=["A number."]
    )


def essence(evaluation: Evaluation) -> Any:
    """All of it but what it cost."""
    return evaluation.model_dump(exclude={"usage": True, "details": {"usage_by_stage"}})


def test_a_verdict_comes_of_it(evaluator: Evaluator) -> None:
    good, bad = evaluator.invoke(sample(2)), evaluator.invoke(sample(3))
    assert (good.passed, bad.passed) == (True, False), (good.error, bad.error)
    assert good.name == evaluator.get_name()


async def test_sync_async_and_batch_agree_in_order(evaluator: Evaluator) -> None:
    samples = [sample(at) for at in range(6)]
    one_by_one = [essence(await asyncio.to_thread(evaluator.invoke, s)) for s in samples]
    assert [essence(await evaluator.ainvoke(s)) for s in samples] == one_by_one
    batch = await asyncio.to_thread(evaluator.batch, samples)
    assert [essence(e) for e in batch] == one_by_one
    assert [essence(e) for e in await evaluator.abatch(samples)] == one_by_one
    assert len({e["passed"] for e in one_by_one}) == 2


async def test_streaming_gives_the_one_evaluation(evaluator: Evaluator) -> None:
    expected = essence(evaluator.invoke(sample(2)))
    assert [essence(e) for e in evaluator.stream(sample(2))] == [expected]
    assert [essence(e) async for e in evaluator.astream(sample(2))] == [expected]


async def test_500_at_a_time_share_nothing(evaluator: Evaluator) -> None:
    found = await asyncio.gather(*(evaluator.ainvoke(sample(at)) for at in range(500)))
    for at, evaluation in enumerate(found):
        assert evaluation.passed is (at % 2 == 0)
        assert str(at) in evaluation.claims[0].text


class _Runs(BaseCallbackHandler):
    def __init__(self) -> None:
        self.parents: dict[UUID, UUID | None] = {}
        self.kinds: dict[UUID, str] = {}
        self.tags: dict[UUID, set[str]] = {}
        self.metadata: dict[UUID, dict[str, Any]] = {}

    def _note(self, kind: str, run_id: UUID, kwargs: dict[str, Any]) -> None:
        self.parents[run_id] = kwargs.get("parent_run_id")
        self.kinds[run_id] = kind
        self.tags[run_id] = set(kwargs.get("tags") or ())
        self.metadata[run_id] = kwargs.get("metadata") or {}

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._note("chain", run_id, kwargs)

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any
    ) -> None:
        self._note("model", run_id, kwargs)


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_model_calls_are_child_runs_and_carry_the_config(
    evaluator: Evaluator, mode: str
) -> None:
    runs = _Runs()
    config: Any = {"callbacks": [runs], "tags": ["mine"], "metadata": {"tenant": 7}}
    if mode == "sync":
        await asyncio.to_thread(evaluator.invoke, sample(2), config)
    else:
        await evaluator.ainvoke(sample(2), config)
    roots = [run for run, parent in runs.parents.items() if parent is None]
    assert len(roots) == 1
    models = [run for run, kind in runs.kinds.items() if kind == "model"]
    assert len(models) >= 2
    for run in models:
        assert runs.parents[run] == roots[0]
        assert {"mine", "nostream", "demur:judge"} <= runs.tags[run]
        assert runs.metadata[run]["tenant"] == 7


def test_it_composes_like_any_runnable(evaluator: Evaluator) -> None:
    expected = essence(evaluator.invoke(sample(2)))
    chain = RunnableLambda(sample) | evaluator
    assert essence(chain.invoke(2)) == expected
    assert essence(evaluator.with_config(tags=["x"]).invoke(sample(2))) == expected
    assert essence(evaluator.with_retry().invoke(sample(2))) == expected
    parallel = RunnableLambda(sample) | {"first": evaluator, "second": evaluator}
    assert {essence(e)["passed"] for e in parallel.invoke(2).values()} == {True}


def test_neither_sample_nor_evaluator_is_changed(evaluator: Evaluator) -> None:
    given = sample(2)
    before = given.model_copy(deep=True)
    fields = dict(evaluator)
    evaluator.invoke(given)
    assert given == before
    assert dict(evaluator) == fields


def test_stages_are_told_apart_in_these_tests() -> None:
    with pytest.raises(AssertionError, match="no stage"):
        stage_of([AIMessage("x")])
