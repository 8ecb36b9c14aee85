"""Test what leaves of an answer that is streamed by sentences, when, and how it is corrected."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise
from typing import Any

import pytest
from allpairspy import AllPairs
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.runnables.utils import AddableDict

from demur import (
    Abstain,
    Annotate,
    AnswerRejected,
    Block,
    Evaluation,
    Sample,
)
from demur.guard import UNCHECKED, EvaluatorFailed
from demur.guard.call import GuardedCall
from demur.guard.streamed import StreamedAnswer
from support.streams import (
    DOCUMENTS,
    GOOD,
    ByClaims,
    Client,
    Telling,
    by_sentences,
    guard,
    under,
)
from support.waiting import until


def invoked(runnable: Runnable[Any, Any], mode: str) -> Any:
    return runnable.invoke("why?") if mode == "sync" else asyncio.run(runnable.ainvoke("why?"))


# --- What leaves, and when -----------------------------------------------------------------------


def test_what_passes_is_streamed_unchanged_by_sentences(mode: str) -> None:
    chain = Telling(GOOD)
    client = Client().read(guard(chain), "why?", mode)
    assert client.chunks == by_sentences(GOOD)
    assert chain.inputs == ["why?"]
    assert client.replaced == []


def test_a_sentence_leaves_while_later_ones_are_generated(mode: str) -> None:
    chain, got = Telling(GOOD), threading.Event()
    chain.hold = lambda chunk: got if chunk == " as" else None
    client = Client()
    client.on_text = lambda text: got.set()
    client.read(guard(chain), "why?", mode)
    assert client.text == GOOD


def test_a_sentence_leaves_while_later_ones_are_judged(mode: str) -> None:
    got = threading.Event()
    judge = ByClaims(hold=lambda answer: got if answer.startswith("Two") else None)
    client = Client()
    client.on_text = lambda text: got.set()
    client.read(guard(Telling(GOOD), judge), "why?", mode)
    assert client.text == GOOD


def test_sentences_leave_in_order(mode: str) -> None:
    later = threading.Event()

    def passes(sample: Sample) -> bool:
        if sample.answer.startswith("Three"):
            later.set()
        return True

    judge = ByClaims(passes=passes, hold=lambda answer: later if answer.startswith("One") else None)
    client = Client().read(guard(Telling(GOOD), judge), "why?", mode)
    assert client.text == GOOD


def test_a_judge_sees_a_sentence_and_what_was_said_before(mode: str) -> None:
    judge = ByClaims()
    chain = Telling([AddableDict(context=DOCUMENTS), *under("answer", GOOD)])
    Client().read(guard(chain, judge, contexts=None), {"input": "why?"}, mode)
    seen = sorted(judge.seen, key=lambda sample: len(sample.preceding))
    assert [sample.answer for sample in seen] == [
        "One is good.",
        "Two is good too.",
        "Three is as good.",
    ]
    assert [sample.preceding for sample in seen] == [
        "",
        "One is good. ",
        "One is good. Two is good too.  ",
    ]
    assert {sample.question for sample in seen} == {"why?"}
    assert all(sample.contexts == tuple(DOCUMENTS) for sample in seen)


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_chain_that_does_not_stream_is_judged_by_sentences(mode: str, end: str) -> None:
    judge = ByClaims()
    text = f"One is good. Two is good.{end}"
    client = Client().read(guard(RunnableLambda(lambda given: text), judge), "why?", mode)
    assert client.text == text
    assert sorted(judge.answers) == ["One is good.", "Two is good."]


# --- The core, without waiting -------------------------------------------------------------------

TEXTS = st.lists(
    st.sampled_from(["Dr.", "Ann", "went", "to", "3.", "5", "m.", "So", "it", "is.", "- a", "甲。"])
    | st.text(max_size=6),
    max_size=30,
).map(" ".join)


@settings(max_examples=50)
@given(TEXTS, st.data())
def test_what_leaves_is_accepted_and_adds_up(text: str, data: st.DataObject) -> None:
    """Check arbitrary texts, chunks, and orders of the verdicts."""
    answer = StreamedAnswer(GuardedCall(guard(Telling("")), "why?", {}))
    coming = list(text)
    asked: dict[int, Sample] = {}
    verdicts: dict[int, bool] = {}
    left = ""
    ended = False
    while not answer.settled:
        waiting = [at for at in asked if at not in verdicts]
        if waiting and (ended or data.draw(st.booleans())):
            at = data.draw(st.sampled_from(waiting))
            verdicts[at] = data.draw(st.integers(0, 9)) > 0
            answer.judged(at, (Evaluation(name="judge", passed=verdicts[at]),))
        elif coming:
            size = data.draw(st.integers(1, 9))
            answer.feed("".join(coming[:size]))
            del coming[:size]
        elif not ended:
            if not text:
                answer.feed("")
            answer.end()
            ended = True
        asked.update(answer.to_judge())
        left += "".join(answer.leaving())
        accepted = 0
        while verdicts.get(accepted):
            accepted += 1
        spans = [
            (len(one.preceding), len(one.preceding) + len(one.answer))
            for _, one in sorted(asked.items())
        ]
        assert left == text[: spans[accepted - 1][1] if accepted else 0]
        for (_, end), (start, _) in pairwise(spans):
            assert not text[end:start].strip()
        assert all(text[s:e] == asked[at].answer for at, (s, e) in enumerate(spans))
    if ended and all(verdicts.values()):
        assert not text[len(left) :].strip()


# --- The contract: the final text of a client ----------------------------------------------------

FAILING = {
    "a better answer": ("One is good. Two is bad. Three.", "It is fine. All of it."),
    "one that begins alike": ("One is good. So it is. Two is bad.", "One is good. Two is fine."),
    "one that goes on alike": ("One is good. Two is bad.", "One is good. Two is fine."),
    "one that is longer in one sentence": ("It is 8. Two is bad.", "It is 8.5 metres."),
    "nothing left yet": ("One is bad. Two is good.", "One is good."),
    "the last sentence": ("One is good. Two is bad.", "All is good."),
    "no answer passes": ("One is good. Two is bad.",),
}


ENDS: dict[str, Any] = {
    "again": None,
    "refused": "abstain",
    "noted": Annotate(lambda feedback: "Beware."),
}


@pytest.mark.parametrize(
    ("case", "end", "mode"), [*AllPairs([[*FAILING], [*ENDS], ["sync", "async"]])]
)
def test_a_client_that_heeds_the_event_has_what_invoke_returns(
    case: str, end: str, mode: str
) -> None:
    runs, on_fail = FAILING[case], ENDS[end]
    expected = invoked(guard(Telling(*runs), on_fail=on_fail, streaming="buffer"), mode)
    client = Client().read(guard(Telling(*runs), on_fail=on_fail), "why?", mode)
    assert client.text == expected


def test_only_what_must_be_replaced_is(mode: str) -> None:
    alike = Client().read(guard(Telling(*FAILING["one that begins alike"])), "why?", mode)
    assert alike.replaced in (
        [{"keep": len("One is good."), "keys": []}],
        [],  # The second sentence had not left.
    )
    goes_on = Client().read(guard(Telling(*FAILING["one that goes on alike"])), "why?", mode)
    assert goes_on.replaced == []


def test_a_client_that_does_not_sees_a_new_paragraph(mode: str) -> None:
    judged = threading.Event()
    judge = ByClaims(hold=lambda answer: judged if "bad" in answer else None)
    client = Client()
    client.on_text = lambda text: judged.set()
    client.read(guard(Telling(*FAILING["a better answer"]), judge), "why?", mode)
    assert client.received == "One is good.\n\nIt is fine. All of it."
    assert client.replaced == [{"keep": 0, "keys": []}]
    assert client.chunks[1] == "\n\n"


def test_generation_stops_when_a_sentence_fails(mode: str) -> None:
    chain, recovered = (
        Telling("One is bad. Two is good. Three is good.", "Fine."),
        threading.Event(),
    )
    chain.hold = lambda chunk: recovered if chunk == " Three" else None
    client = Client()
    client.on_text = lambda text: recovered.set()
    client.read(guard(chain), "why?", mode)
    assert client.text == "Fine."
    until(lambda: chain.under_way == 0)
    assert len(chain.inputs) == 2
    assert chain.told[-2:] in ([" is", " good."], [" good.", " Three"])  # the third is incomplete


def test_a_best_effort_is_the_whole_answer(mode: str) -> None:
    text = "One is bad. Two is good. Three is bad. Four is good."
    client = Client().read(guard(Telling(text), on_fail=Annotate()), "why?", mode)
    assert client.text.startswith(f"{text}\n\nNote: ")
    assert "One is bad. is bad" in client.text
    assert "Three is bad. is bad" in client.text


def test_a_block_raises_out_of_the_stream(mode: str) -> None:
    client = Client()
    with pytest.raises(AnswerRejected) as raised:
        client.read(guard(Telling("One is good. Two is bad."), on_fail=Block()), "why?", mode)
    assert client.text in ("", "One is good.")
    (attempt,) = raised.value.trace.attempts
    assert attempt.answer == "One is good. Two is bad."


@pytest.mark.parametrize("on_error", ["closed", "open", "raise"])
def test_a_sentence_that_cannot_be_judged(on_error: Any, mode: str) -> None:
    chain = Telling("One is good. Two is odd. Three is good.")
    client = Client()
    if on_error == "raise":
        with pytest.raises(EvaluatorFailed):
            client.read(guard(chain, on_error=on_error), "why?", mode)
    else:
        client.read(guard(chain, on_error=on_error), "why?", mode)
    expected = {"closed": (UNCHECKED,), "open": ("One is good. Two is odd. Three is good.",)}
    assert client.text in expected.get(on_error, ("", "One is good."))
    assert len(chain.inputs) == 1


# --- Contexts, refusals --------------------------------------------------------------------------


@pytest.mark.parametrize("contexts", [None, lambda output: output["context"]])
def test_sentences_wait_for_the_contexts(contexts: Any, mode: str) -> None:
    judge = ByClaims()
    chain = Telling([*under("answer", GOOD), AddableDict(context=DOCUMENTS)])
    Client().read(guard(chain, judge, contexts=contexts), {"input": "why?"}, mode)
    assert [sample.contexts for sample in judge.seen] == [tuple(DOCUMENTS)] * 3


@pytest.mark.parametrize("inner", ["buffer", "sentence"])
def test_an_inner_guards_refusal_is_not_judged(inner: Any, mode: str) -> None:
    judge = ByClaims()
    refusing = guard(Telling("One is bad. "), streaming=inner, on_fail=Abstain("No. Bad luck."))
    client = Client().read(guard(refusing, judge), "why?", mode)
    assert client.text == "No. Bad luck."
    assert judge.answers == []
