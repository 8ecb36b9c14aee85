"""Test retrievers that search for more when the chain answers again."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from demur import (
    Claim,
    ClaimLabel,
    Evaluation,
    Guard,
    Regenerate,
    Repair,
    Retrieve,
    Sample,
)
from demur.guard import widen
from support.fakes import saying
from support.rag import FACTS, make_retriever


class Echo(BaseRetriever):
    """Retrieve `k` documents about each query."""

    k: int = 2
    asked: list[tuple[str, int]] = []  # noqa: RUF012  # a pydantic field, copied for each instance

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.asked.append((query, self.k))
        return [Document(f"{query} {number}") for number in range(self.k)]


def neutral(*claims: str) -> Evaluation:
    return Evaluation(
        name="judge",
        passed=False,
        claims=tuple(Claim(text=claim, label=ClaimLabel.NEUTRAL) for claim in claims),
    )


def judge(sample: Sample) -> Evaluation:
    """Pass an answer from four or more documents, and fail others with two neutral claims."""
    if sample.answer.count("|") >= 3:
        return Evaluation(name="judge", passed=True)
    topic = sample.question
    return neutral(f"{topic} is red", f"{topic} is heavy")


def chain_over(retriever: Runnable[str, Any]) -> Runnable[Any, Any]:
    return RunnablePassthrough.assign(context=itemgetter("question") | retriever) | {
        "answer": lambda given: "|".join(one.page_content for one in given["context"])
    }


def searching(wide: Runnable[str, Any], evaluator: Any) -> Guard[Any, Any]:
    """Return a guard whose chain searches again for the failed claims."""
    return Guard(chain_over(wide), evaluator, on_fail=Retrieve(wide))


def test_a_retry_searches_for_what_failed_and_for_more() -> None:
    echo = Echo()
    guard = searching(widen(echo), judge)
    found = guard.with_trace().invoke({"question": "it"})
    assert found.trace.outcome == "recovered"
    assert echo.asked[0] == ("it", 2)
    assert sorted(echo.asked[1:]) == [("it", 4), ("it is heavy", 4), ("it is red", 4)]
    first, second = found.trace.attempts
    assert (first.recovery, second.recovery, second.origin) == (None, "retrieve", "chain")
    assert second.feedback is not None
    assert second.feedback.queries == ("it is red", "it is heavy")
    assert [d.page_content for d in second.contexts][:5] == [
        "it 0", "it 1", "it 2", "it 3", "it is red 0",
    ]  # fmt: skip
    assert len(second.contexts) == 12
    assert echo.k == 2


def test_outside_of_a_retry_it_does_what_the_retriever_does() -> None:
    echo = Echo()
    documents = widen(echo).invoke("it")
    assert [d.page_content for d in documents] == ["it 0", "it 1"]
    assert echo.asked == [("it", 2)]


def test_what_one_retry_found_the_next_has_too() -> None:
    echo = Echo()
    answers = iter(["first", "second", "third"])

    def rejects(sample: Sample) -> Evaluation:
        if sample.answer == "second":
            claim = Claim(text="b", label=ClaimLabel.CONTRADICTION)
            return Evaluation(name="judge", passed=False, claims=(claim,))
        return neutral("a") if sample.answer == "first" else Evaluation(name="judge", passed=True)

    wide = widen(echo)
    chain = {"context": wide, "answer": lambda _: next(answers)}
    policy = {"neutral": Retrieve(wide), "any": Regenerate()}
    found = Guard(chain, rejects, on_fail=policy).with_trace().invoke("it")
    assert [one.recovery for one in found.trace.attempts] == [None, "retrieve", "regenerate"]
    assert sorted(echo.asked) == [("a", 4), ("a", 4), ("it", 2), ("it", 4), ("it", 4)]


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_a_vector_stores_k_is_raised(factor: int) -> None:
    store = make_retriever(k=1)

    def wants_another(sample: Sample) -> Evaluation:
        return neutral(FACTS[2]) if len(sample.contexts) < 2 else neutral("never there")

    guard = searching(widen(store, factor=factor), wants_another)
    found = guard.with_trace().invoke({"question": "How tall is the Amber Tower in Lund?"})
    second = [one.page_content for one in found.trace.attempts[1].contexts]
    assert FACTS[0] in second
    assert FACTS[2] in second  # The claim was searched for.
    assert store.search_kwargs == {"k": 1}


def test_a_runnable_that_is_no_retriever_is_asked_as_it_is() -> None:
    asked: list[str] = []

    def search(query: str) -> list[Document]:
        asked.append(query)
        return [Document(query)]

    guard = searching(widen(RunnableLambda(search)), judge)
    found = guard.with_trace().invoke({"question": "it"})
    assert sorted(asked[:4]) == ["it", "it", "it is heavy", "it is red"]
    assert len(found.trace.attempts[1].contexts) == 3


def test_mistakes_show_at_once() -> None:
    with pytest.raises(TypeError, match=r"widen expects a retriever.*got str"):
        widen("notes")  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(ValueError, match="factor must be at least 1, got 0"):
        widen(Echo(), factor=0)


def test_only_the_retriever_that_is_named_searches_for_more() -> None:
    named, other = Echo(), Echo()
    wide, beside = widen(named), widen(other)
    both = {"context": wide, "more": beside, "answer": lambda _: next(answers)}
    answers = iter(["one", "two", "three"])
    guard = Guard(both, lambda _: neutral("it is red"), on_fail={"neutral": Retrieve(wide)})
    guard.with_trace().invoke("it")
    assert {"it is red"} == {query for query, _ in named.asked} - {"it"}
    assert {query for query, _ in other.asked} == {"it"}


def test_one_that_the_chain_never_asks_is_passed_over() -> None:
    elsewhere = widen(Echo())
    alone = Guard(chain_over(Echo()), judge, on_fail=Retrieve(elsewhere))
    trace = alone.with_trace().invoke({"question": "it"}).trace
    assert trace.reason == (
        "attempt 1 was rejected, and the chain did not ask the retriever that is to find more"
    )
    policy = {"neutral": Retrieve(elsewhere), "any": "regenerate"}
    both = Guard(chain_over(Echo()), judge, on_fail=policy)
    trace = both.with_trace().invoke({"question": "it"}).trace
    assert [attempt.recovery for attempt in trace.attempts] == [None, "regenerate"]


def test_a_model_can_answer_from_what_a_widened_retriever_finds() -> None:
    """Check that the guard then asks the retriever about the failed claims only."""
    echo = Echo()
    wide = widen(echo)
    model = saying("||||")
    guard = Guard(chain_over(wide), judge, on_fail=Retrieve(wide, then=Repair(model)))
    found = guard.with_trace().invoke({"question": "it"})
    assert found.trace.attempts[1].origin == "repair"
    assert sorted(echo.asked) == [("it", 2), ("it is heavy", 2), ("it is red", 2)]
