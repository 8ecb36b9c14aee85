"""Test what a question costs, and that no call is paid for twice."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage

from demur import FEWL, Evaluation
from demur.evaluators import Pairs
from demur.evaluators.fewl.drafts import Draft
from support.fakes import ScriptedModel
from support.fewl import ANSWERS, HIGH, LOW, PAIRS, QUESTION, fewl, model, store
from support.waiting import PATIENCE, until, wait

SAMPLE = {"question": QUESTION, "answer": "Ada did."}
OTHER = {"question": QUESTION, "answer": "Bo did."}


def test_a_lone_reference_costs_two_calls_and_then_none() -> None:
    asked = model()
    given = fewl(asked)
    first = given.invoke(SAMPLE)
    assert sorted(asked.stages) == ["pairs", "reference"]
    assert first.usage.calls == 2
    stages = first.details["usage_by_stage"]
    assert (stages["reference"]["calls"], stages["pairs"]["calls"]) == (1, 1)
    again = given.invoke(OTHER)
    assert len(asked.stages) == 2
    assert (again.usage.calls, again.usage.cached) == (0, 0)


def test_a_list_of_three_costs_four_calls_and_then_none() -> None:
    models = [model(reference=text) for text in (HIGH, LOW, "Nobody did.")]
    generator = model()
    given = fewl(models, generator=generator)
    first = given.invoke(SAMPLE)
    assert [one.stages for one in models] == [["reference"]] * 3
    assert generator.stages == ["pairs"]
    assert first.usage.calls == 4
    assert first.details["answers"] == [HIGH, LOW, "Nobody did."]
    assert given.invoke(OTHER).usage.calls == 0


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_all_calls_about_a_new_question_run_side_by_side(mode: str) -> None:
    together = threading.Barrier(4)

    def meet(messages: Sequence[BaseMessage]) -> str:
        together.wait(PATIENCE)  # This raises unless all four calls arrive.
        return PAIRS

    given = fewl([model(reference=meet, pairs=meet) for _ in range(3)])
    found = given.invoke(SAMPLE) if mode == "sync" else await given.ainvoke(SAMPLE)
    assert found.error is None


@pytest.mark.parametrize("weighting", ["uniform", "first", "ideal"])
def test_pairs_are_not_asked_for_where_they_decide_nothing(weighting: str) -> None:
    asked = model()
    labels = {"correct": ["Yes."], "incorrect": ["No."]}
    found = fewl(asked, weighting=weighting).invoke({**SAMPLE, "metadata": labels})
    assert asked.stages == ["reference"]
    assert found.details["pairs_dropped"] == {}
    assert found.details["warnings"] == []


def test_agreement_costs_a_call_of_each_reference_answer_more() -> None:
    asked = model(agreement="1. yes")
    given = fewl(asked, weighting="agreement")
    for sample, calls in ((SAMPLE, 2 + 2), (OTHER, 0)):  # An unreadable reply is asked for once.
        found = given.invoke(sample)  # The reply lacks most lines.
        assert found.usage.calls == calls
        assert "agree with is unknown" in str(found.details["warnings"])
    full = model(agreement="\n".join(f"{at}. yes" for at in range(1, 7)))
    given = fewl(full, weighting="agreement")
    assert given.invoke(SAMPLE).usage.calls == 2 + 2
    assert given.invoke(OTHER).usage.calls == 0


def test_each_of_several_references_is_asked_with_what_it_agrees() -> None:
    lines = "\n".join(f"{at}. yes" for at in range(1, 7))
    models = [model(reference=text, agreement=lines) for text in (HIGH, LOW)]
    fewl(models, weighting="agreement").invoke(SAMPLE)
    assert [one.stages.count("agreement") for one in models] == [1, 1]
    shown = [str(one.requests[-1][-1].content) for one in models]
    assert HIGH in shown[0]
    assert LOW in shown[1]
    assert len({text.partition("Statements:")[2] for text in shown}) == 1


# --- What was paid for is kept -------------------------------------------------------------------


def failing_once(reply: str) -> Any:
    replies: list[str | Exception] = [ValueError("out of order"), reply]
    return lambda messages: replies.pop(0)


def test_answers_are_kept_where_the_pairs_failed() -> None:
    kept, asked = store(), model(pairs=failing_once(PAIRS))
    given = fewl(asked, neighbors=kept)
    assert "writes wrong answers" in (given.invoke(SAMPLE).error or "")
    known = kept.get(QUESTION)
    assert known is not None
    assert known.answers == (HIGH, LOW)
    assert known.pairs is None
    again = given.invoke(SAMPLE)
    assert again.error is None
    assert again.usage.calls == 1
    assert given.invoke(SAMPLE).usage.calls == 0


def test_what_came_is_kept_where_one_of_several_references_failed() -> None:
    kept = store()
    models = [model(reference=said) for said in (HIGH, failing_once(LOW), "Nobody did.")]
    given = fewl(models, neighbors=kept)
    assert "reference model 2 gave no answer: " in str(given.invoke(SAMPLE).error)
    assert kept.get(QUESTION) is None  # Two of three answers are not kept.
    assert len(kept) == 0
    again = given.invoke(SAMPLE)
    assert again.usage.calls == 1
    assert again.details["answers"] == [HIGH, LOW, "Nobody did."]
    assert again.details["pairs_used"] == 3
    assert kept.drafts.get(QUESTION) == Draft()
    assert given.invoke(SAMPLE).usage.calls == 0


def test_pairs_are_kept_where_the_answers_failed() -> None:
    asked = model(reference=failing_once(ANSWERS))
    given = fewl(asked)
    assert "gave no answer" in (given.invoke(SAMPLE).error or "")
    assert given.invoke(SAMPLE).usage.calls == 1
    assert sorted(asked.stages) == ["pairs", "reference", "reference"]


def test_pairs_of_which_none_can_be_read_are_not_asked_for_again() -> None:
    asked, kept = model(pairs="I cannot do that."), store()
    given = fewl(asked, neighbors=kept)
    for sample in (SAMPLE, OTHER):
        given.invoke(sample)
    assert sorted(asked.stages) == ["pairs", "reference"]
    known = kept.get(QUESTION)
    assert known is not None
    assert known.pairs == Pairs()


def test_a_store_that_cannot_be_read_or_written_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("the disk is full")

    for method, why in {"get": "cannot be read", "add_many": "cannot be kept"}.items():
        kept = store()
        given = fewl(neighbors=kept)
        monkeypatch.setattr(kept, method, full)
        error = given.invoke(SAMPLE).error or ""
        assert why in error
        assert "the disk is full" in error
    near = store()
    given = fewl(neighbors=near, penalty=True)
    monkeypatch.setattr(near, "nearest", full)
    assert "neighbouring questions cannot be found" in (given.invoke(SAMPLE).error or "")


# --- Many at a time ------------------------------------------------------------------------------


class Held(BaseCallbackHandler):
    """Hold back the pairs until a test releases them, and count the evaluations that began."""

    run_inline = True

    def __init__(self) -> None:
        self.begun, self.free = 0, threading.Event()

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self.begun += 1

    def __call__(self, messages: Sequence[BaseMessage]) -> str:
        wait(self.free)
        return PAIRS

    def checked(self, asked: ScriptedModel, found: Sequence[Evaluation]) -> None:
        """Check that calls are made once, and counted once, in the evaluation that made them.

        Whoever joined them counts them as cached; whoever came when all was kept counts nothing.
        """
        assert sorted(asked.stages) == ["pairs", "reference"]
        assert [one.error for one in found] == [None] * len(found)
        assert sorted(one.usage.calls for one in found) == [0, 0, 2]
        assert {one.usage.cached for one in found} <= {0, 2}


def test_threads_that_come_later_pay_nothing_again() -> None:
    held = Held()
    asked = model(pairs=held)
    given = fewl(asked)
    with ThreadPoolExecutor(3) as pool:
        futures = [
            pool.submit(given.invoke, sample, {"callbacks": [held]})
            for sample in (SAMPLE, OTHER, OTHER)
        ]
        until(lambda: held.begun == 3 and "pairs" in asked.stages)
        held.free.set()
        held.checked(asked, [one.result(PATIENCE) for one in futures])


def test_answers_to_a_question_share_all_but_their_own_similarities() -> None:
    scored: list[tuple[str, str]] = []

    def alike(pairs: Sequence[tuple[str, str]]) -> list[float]:
        scored.extend(pairs)
        return [0.5] * len(pairs)

    near = store(("0 1 | a?", ["A.", "B."]), ("0.6 0.8 | b?", ["C.", "D."]))
    given: FEWL = fewl(similarity=alike, penalty=True, neighbors=near)
    given.invoke(SAMPLE)
    # Two references are compared with three corrected and three wrong answers, and with the answer.
    # The answer is compared with what both said of two neighbours.
    assert len(scored) == 2 * 6 + 2 + 2 * 2
    scored.clear()
    given.invoke(OTHER)
    assert {answer for answer, _ in scored} == {"Bo did."}
    assert sorted(said for _, said in scored) == ["A.", HIGH, "B.", LOW, "C.", "D."]
    scored.clear()
    given.invoke(OTHER)
    assert scored == []
