"""Streaming: what leaves, when, and what is left running when nobody reads on."""

from __future__ import annotations

import asyncio
import gc
import re
import threading
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.runnables.utils import AddableDict

from demur import (
    Abstain,
    Annotate,
    AnswerRejected,
    Block,
    DemurError,
    Evaluation,
    Guard,
    RefChecker,
    Sample,
)
from demur.guard import EvaluatorFailed, Trace
from demur.guard.chunks import added
from demur.guard.loop import GuardedCall
from demur.guard.recovery import REFUSAL
from demur.guard.streamed import StreamedAnswer
from support.fakes import scripted
from support.streams import ByClaims, Client, Telling, await_, by_words, until

GOOD = "One is good. Two is good too.  Three is as good.\n"
DOCUMENTS = [Document("One, two and three.")]


def by_sentences(text: str) -> list[str]:
    """A text as it is to leave: white space goes with what follows."""
    return re.findall(r"\s*[^.]*\.|\s+$", text)


def no_contexts(output: Any) -> list[Document]:
    """Says that there are none, and that none need be waited for."""
    return []


def guard(chain: Any, judge: Any = None, **options: Any) -> Guard[Any, Any]:
    options = {"streaming": "sentence", "contexts": no_contexts, **options}
    return Guard(chain, judge or ByClaims(), **options)


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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
    chain = Telling([{"context": DOCUMENTS}, *({"answer": word} for word in by_words(GOOD))])
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


def test_a_name_or_a_number_is_not_cut_where_a_chunk_ends(mode: str) -> None:
    judge = ByClaims()
    chain = Telling(["He met Dr.", " Smith", " at 3.", "5.\n", "1", ". One", " item.", " So."])
    Client().read(guard(chain, judge), "why?", mode)
    assert sorted(judge.answers) == ["1. One item.", "He met Dr. Smith at 3.5.", "So."]


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


@given(TEXTS, st.data())
def test_what_leaves_is_accepted_and_adds_up(text: str, data: st.DataObject) -> None:
    """Whatever the text, its chunks, and the order of the verdicts."""
    answer = StreamedAnswer(GuardedCall(guard(Telling(""))._plan, "why?", {}))
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


# --- What does not leave -------------------------------------------------------------------------

SECRET = "ЖЖЖ ФФФ bad ЩЩЩ. ЮЮЮ ЦЦЦ ДДД."
"""Rejected. None of its Cyrillic letters stands in anything else."""
RUNS = (f"One is good. {SECRET}", f"One is fine. {SECRET}", "All is well. Quite so.")


def leaked(received: str) -> set[str]:
    return {letter for letter in received if "\u0400" <= letter <= "\u04ff"}


async def _astream(runnable: Runnable[Any, Any]) -> list[Any]:
    return [chunk async for chunk in runnable.astream("why?")]


async def _atransform(runnable: Runnable[Any, Any]) -> list[Any]:
    async def given() -> Any:
        yield "why"
        yield "?"

    return [chunk async for chunk in runnable.atransform(given())]


async def _astream_events(runnable: Runnable[Any, Any]) -> list[Any]:
    """The events of the outermost run alone."""
    return [
        event["data"].get("chunk", "")
        async for event in runnable.astream_events("why?", version="v2")
        if not event["parent_ids"]
    ]


async def _astream_events_without_nostream(runnable: Runnable[Any, Any]) -> list[Any]:
    events = runnable.astream_events("why?", version="v2", exclude_tags=["nostream"])
    return [event["data"] async for event in events if event["event"] != "on_custom_event"]


WAYS: dict[str, Callable[[Runnable[Any, Any]], Sequence[Any]]] = {
    "stream": lambda runnable: list(runnable.stream("why?")),
    "transform": lambda runnable: list(runnable.transform(iter(["why", "?"]))),
    "invoke": lambda runnable: [runnable.invoke("why?")],
    "astream": lambda runnable: asyncio.run(_astream(runnable)),
    "atransform": lambda runnable: asyncio.run(_atransform(runnable)),
    "astream_events": lambda runnable: asyncio.run(_astream_events(runnable)),
    "exclude_tags": lambda runnable: asyncio.run(_astream_events_without_nostream(runnable)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("streaming", ["buffer", "sentence"])
@pytest.mark.parametrize("shape", ["text", "message", "mapping", "sequence"])
def test_no_character_of_a_rejected_sentence_is_let_out(
    shape: str, streaming: str, way: str
) -> None:
    runs: list[Any] = [by_words(run) for run in RUNS]
    if shape == "message":
        runs = [[AIMessageChunk(word, id="1") for word in run] for run in runs]
    if shape == "mapping":
        runs = [[{"context": []}, *(AddableDict(answer=word) for word in run)] for run in runs]
    chain = Telling(*runs)
    guarded: Runnable[Any, Any] = guard(chain, streaming=streaming)
    if shape == "sequence":
        guarded = RunnableLambda(str) | guarded | RunnableLambda(lambda answer: answer)
    received = str(WAYS[way](guarded))
    assert not leaked(received)
    assert "All is well. Quite so." in received
    assert len(chain.inputs) == 3


@pytest.mark.parametrize("way", ["stream", "transform", "astream", "atransform", "astream_events"])
def test_what_is_accepted_leaves_by_sentences_in_every_way(way: str) -> None:
    received = WAYS[way](guard(Telling(GOOD)))
    assert [chunk for chunk in received if chunk] == by_sentences(GOOD)


@pytest.mark.parametrize("way", WAYS)
def test_the_bare_chain_lets_it_out(way: str) -> None:
    """So that the test above can fail."""
    assert leaked(str(WAYS[way](RunnableLambda(str) | Telling(*RUNS))))


async def test_inner_runs_show_it_to_who_asks_for_all_events() -> None:
    """As the documentation says: LangChain's tracing sees inside."""
    chain = RunnableLambda(str) | Telling(*RUNS)
    events = [event async for event in guard(chain).astream_events("why?", version="v2")]
    assert leaked(str(events))


# --- The contract: what a client has in the end --------------------------------------------------

FAILING = {
    "a better answer": ("One is good. Two is bad. Three.", "It is fine. All of it."),
    "one that begins alike": ("One is good. So it is. Two is bad.", "One is good. Two is fine."),
    "one that goes on alike": ("One is good. Two is bad.", "One is good. Two is fine."),
    "one that is longer in one sentence": ("It is 8. Two is bad.", "It is 8.5 metres."),
    "nothing left yet": ("One is bad. Two is good.", "One is good."),
    "the last sentence": ("One is good. Two is bad.", "All is good."),
    "no answer passes": ("One is good. Two is bad.",),
}


@pytest.mark.parametrize("runs", FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("on_fail", [None, "abstain", Annotate(lambda feedback: "Beware.")])
def test_a_client_that_heeds_the_event_has_what_invoke_returns(
    runs: tuple[str, ...], on_fail: Any, mode: str
) -> None:
    expected = invoked(guard(Telling(*runs), on_fail=on_fail, streaming="buffer"), mode)
    client = Client().read(guard(Telling(*runs), on_fail=on_fail), "why?", mode)
    assert client.text == expected


def test_only_what_must_be_replaced_is(mode: str) -> None:
    alike = Client().read(guard(Telling(*FAILING["one that begins alike"])), "why?", mode)
    assert alike.replaced in (
        [{"keep": len("One is good."), "keys": []}],
        [],  # the second sentence had not left
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
    assert chain.told[-2:] in ([" is", " good."], [" good.", " Three"])  # the third is not ended


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
    expected = {"closed": (REFUSAL,), "open": ("One is good. Two is odd. Three is good.",)}
    assert client.text in expected.get(on_error, ("", "One is good."))
    assert len(chain.inputs) == 1


def test_a_judge_that_raises_cannot_decide(mode: str) -> None:
    def passes(sample: Sample) -> bool:
        raise ValueError("out of order")

    client = Client().read(guard(Telling(GOOD), ByClaims(passes=passes)), "why?", mode)
    assert client.received == REFUSAL


def test_the_trace_has_the_sentences(mode: str) -> None:
    traces: list[Trace] = []
    with pytest.raises(AnswerRejected) as raised:
        Client().read(guard(Telling("One is good. Two is bad."), on_fail="block"), "w", mode)
    traces.append(raised.value.trace)
    evaluations = traces[0].attempts[0].evaluations
    assert [one.passed for one in evaluations][-1] is False


@pytest.mark.parametrize("label", ["Entailment", "Contradiction"])
def test_claims_stand_where_they_do_in_the_whole_answer(label: str, mode: str) -> None:
    def script(stage: str, messages: Any) -> str:
        if stage != "extraction":
            return f"1. {label}" if "Two" in str(messages[-1].content) else "1. Entailment"
        said = "Two" if "Two is red" in str(messages[-1].content).rsplit("<answer-")[-1] else "One"
        return f'("{said}", "is", "red")'

    model = scripted("")
    model.script = script
    checked = guard(
        Telling("One is red. Two is red. "),
        RefChecker(model),
        contexts=lambda output: ["One is red. Two is red."],
        on_fail="annotate",
    )
    seen: list[Any] = []
    original = GuardedCall.record

    def record(call: GuardedCall, answered: Any, evaluations: Sequence[Evaluation]) -> None:
        seen.extend(evaluations)
        original(call, answered, evaluations)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GuardedCall, "record", record)
        Client().read(checked, "why?", mode)
    text = "One is red. Two is red. "
    spans = [claim.span for evaluation in seen for claim in evaluation.claims]
    assert [text[span.start : span.end] for span in spans] == ["One is red", "Two is red"]
    assert spans[1].start == text.index("Two")


# --- Shapes --------------------------------------------------------------------------------------


def message_chunks(text: str) -> list[AIMessageChunk]:
    words = by_words(text)
    chunks = [AIMessageChunk(word, id="run-1") for word in words]
    last = AIMessageChunk(
        "",
        id="run-1",
        response_metadata={"finish_reason": "stop"},
        usage_metadata={"input_tokens": 3, "output_tokens": 5, "total_tokens": 8},
        chunk_position="last",
    )
    return [*chunks, last]


def test_a_messages_chunks_add_up_to_the_message(mode: str) -> None:
    client = Client().read(guard(Telling(message_chunks(GOOD))), "why?", mode)
    assert len(client.chunks) == 4
    assert client.total == reduce(added, message_chunks(GOOD))


def test_a_corrected_message_is_one_message(mode: str) -> None:
    judged = threading.Event()
    judge = ByClaims(hold=lambda answer: judged if "bad" in answer else None)
    client = Client()
    client.on_text = lambda text: judged.set()
    chain = Telling(message_chunks("One is good. Two is bad."), [AIMessage("Fine.", id="other")])
    client.read(guard(chain, judge), "why?", mode)
    assert client.text == "Fine."
    assert {chunk.id for chunk in client.chunks} == {"run-1"}
    assert client.chunks[-1].chunk_position == "last"


def test_blocks_beside_the_text_leave_at_the_end(mode: str) -> None:
    thought = {"type": "reasoning", "reasoning": "hm", "index": 0}
    chunks = [
        AIMessageChunk([thought], id="1"),
        *(
            AIMessageChunk([{"type": "text", "text": word, "index": 1}], id="1")
            for word in by_words("One is good. Two is good. ")
        ),
    ]
    client = Client().read(guard(Telling(chunks)), "why?", mode)
    whole = client.total
    assert whole.text == "One is good. Two is good. "
    assert thought in whole.content
    assert "hm" not in str(client.chunks[:-1])


def test_a_message_in_one_piece_leaves_as_it_is(mode: str) -> None:
    message = AIMessage("One is good. Two is good.", id="1", additional_kwargs={"a": 1})
    client = Client().read(guard(RunnableLambda(lambda given: message)), "why?", mode)
    assert client.chunks == [message]


def test_other_keys_leave_with_the_answer_and_contexts_at_once(mode: str) -> None:
    got = threading.Event()
    chain = Telling(
        [
            {"input": "why?"},
            {"context": DOCUMENTS},
            *({"answer": word} for word in by_words(GOOD)),
            {"more": 1},
        ]
    )
    chain.hold = lambda chunk: got if chunk == {"answer": "One"} else None
    client = Client()
    client.on_text = lambda text: got.set()
    client.read(guard(chain, contexts=None), {"input": "why?"}, mode)
    assert client.text == GOOD
    assert client.others == {"input": "why?", "context": DOCUMENTS, "more": 1}
    assert {"context": DOCUMENTS} in client.chunks[:2]


def test_other_keys_that_a_correction_changes_are_sent_anew(mode: str) -> None:
    better = [Document("Something else.")]
    chain = Telling(
        [{"input": "why?", "context": DOCUMENTS}, {"answer": "One is bad."}],
        [{"input": "why?", "context": better}, {"answer": "Fine."}],
    )
    client = Client().read(guard(chain, contexts=None), {"input": "why?"}, mode)
    assert client.replaced == [{"keep": 0, "keys": ["context"]}]
    assert client.text == "Fine."
    assert client.others == {"input": "why?", "context": better}


UNSPLIT: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "a function": ([{"said": "One is good."}], {"answer": lambda output: output["said"]}),
    "a message under a key": ([{"answer": AIMessage("One is good.")}], {}),
    "what does not add up": (
        [("One",), {"said": "One is good."}],
        {"answer": lambda output: output["said"]},
    ),
}


@pytest.mark.parametrize(("chunks", "options"), UNSPLIT.values(), ids=UNSPLIT)
def test_what_cannot_be_split_is_judged_and_leaves_as_a_whole(
    chunks: list[Any], options: dict[str, Any], mode: str
) -> None:
    judge = ByClaims()
    client = Client().read(guard(Telling(chunks), judge, **options), "why?", mode)
    assert judge.answers == ["One is good."]
    assert client.chunks == chunks[-1:]
    refused = Client()
    refusing = guard(Telling(chunks), ByClaims(passes=lambda sample: False), **options)
    if "answer" in options:
        with pytest.raises(AnswerRejected):  # no other text can be put there
            refused.read(refusing, "why?", mode)
        assert refused.chunks == []
    else:
        refused.read(refusing, "why?", mode)
        assert refused.text == REFUSAL


def test_an_answer_that_cannot_be_found_is_an_error_and_lets_nothing_out(mode: str) -> None:
    client = Client()
    with pytest.raises(DemurError, match="no answer can be found"):
        client.read(guard(Telling([{"prose": "One is good."}])), "why?", mode)
    assert client.chunks == []


@pytest.mark.parametrize("chunks", [[""], [" \n"]])
def test_an_answer_without_a_sentence_is_judged_as_it_is(chunks: list[str], mode: str) -> None:
    judge = ByClaims()
    client = Client().read(guard(Telling(chunks), judge), "why?", mode)
    assert judge.answers == chunks
    assert client.chunks == chunks


# --- Contexts, refusals --------------------------------------------------------------------------


def test_sentences_wait_for_the_contexts(mode: str) -> None:
    judge = ByClaims()
    chain = Telling([*({"answer": word} for word in by_words(GOOD)), {"context": DOCUMENTS}])
    Client().read(guard(chain, judge, contexts=None), {"input": "why?"}, mode)
    assert [sample.contexts for sample in judge.seen] == [tuple(DOCUMENTS)] * 3


def test_a_function_for_the_contexts_is_asked_again_when_more_is_there(mode: str) -> None:
    judge = ByClaims()
    chain = Telling([*({"answer": word} for word in by_words(GOOD)), {"found": DOCUMENTS}])
    Client().read(guard(chain, judge, contexts=lambda output: output["found"]), "why?", mode)
    assert [sample.contexts for sample in judge.seen] == [tuple(DOCUMENTS)] * 3


@pytest.mark.parametrize("inner", ["buffer", "sentence"])
def test_an_inner_guards_refusal_is_not_judged(inner: Any, mode: str) -> None:
    judge = ByClaims()
    refusing = guard(Telling("One is bad. "), streaming=inner, on_fail=Abstain("No. Bad luck."))
    client = Client().read(guard(refusing, judge), "why?", mode)
    assert client.text == "No. Bad luck."
    assert judge.answers == []


# --- Errors, and clients that go -----------------------------------------------------------------


def test_what_a_chain_raises_comes_out(mode: str) -> None:
    got = threading.Event()
    error = RuntimeError("the model is away")
    chain = Telling(["One is good.", " Two is", error])
    chain.hold = lambda chunk: got if chunk is error else None
    client = Client()
    client.on_text = lambda text: got.set()
    with pytest.raises(RuntimeError, match="the model is away"):
        client.read(guard(chain), "why?", mode)
    assert client.received == "One is good."
    assert chain.under_way == 0


def test_a_judge_that_is_none_is_an_error(mode: str) -> None:
    def wrong(sample: Sample) -> str:
        return "fine"

    class Wrong(ByClaims):
        def invoke(self, *args: Any, **kwargs: Any) -> Any:
            return "fine"

        async def ainvoke(self, *args: Any, **kwargs: Any) -> Any:
            return "fine"

    with pytest.raises(DemurError, match="returned a str"):
        Client().read(guard(Telling(GOOD), Wrong()), "why?", mode)


def test_a_reader_that_stops_stops_the_chain() -> None:
    chain = Telling(GOOD)
    got = threading.Event()
    chain.hold = lambda chunk: got if chunk == "  Three" else None
    stream = guard(chain).stream("why?")
    assert next(stream) == "One is good."
    stream.close()
    got.set()
    until(lambda: chain.under_way == 0)
    assert chain.told[-1] in (" too.", "  Three")


Leave = Callable[[Guard[Any, Any], threading.Event], Any]


async def _close(guarded: Guard[Any, Any], begun: threading.Event) -> None:
    stream = guarded.astream("why?")
    assert await anext(stream) == "One is good."
    await await_(begun)
    await stream.aclose()  # type: ignore[attr-defined]


async def _forget(guarded: Guard[Any, Any], begun: threading.Event) -> None:
    async for _ in guarded.astream("why?"):
        await await_(begun)
        break
    gc.collect()
    for _ in range(100):
        await asyncio.sleep(0.001)  # the loop closes what was forgotten


async def _time_out(guarded: Guard[Any, Any], begun: threading.Event) -> None:
    async def read() -> None:
        async for _ in guarded.astream("why?"):
            pass

    reading = asyncio.ensure_future(asyncio.wait_for(read(), 0.3))
    with pytest.raises((TimeoutError, asyncio.TimeoutError)):
        await reading
    assert begun.is_set()


async def _cancel(guarded: Guard[Any, Any], begun: threading.Event) -> None:
    async def read() -> None:
        async for _ in guarded.astream("why?"):
            pass

    task = asyncio.create_task(read())
    await await_(begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _cancel_around(guarded: Guard[Any, Any], begun: threading.Event) -> None:
    """In a chain of LangChain's own, with another step behind it."""
    around = RunnableLambda(str) | guarded | RunnableLambda(str)

    async def read() -> None:
        async for _ in around.astream("why?"):
            pass

    task = asyncio.create_task(read())
    await await_(begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("leave", [_close, _forget, _time_out, _cancel, _cancel_around])
@pytest.mark.parametrize("at", ["generating", "judging", "recovering"])
async def test_a_reader_that_leaves_leaves_nothing_running(leave: Leave, at: str) -> None:
    if at == "recovering" and leave in (_close, _forget):
        pytest.skip("who does not ask for more sets off no recovery")
    begun, never = threading.Event(), threading.Event()
    running: list[str] = []

    class Watched(ByClaims):
        async def _alook(self, sample: Sample) -> bool | None:
            running.append(sample.answer)
            try:
                return await super()._alook(sample)
            finally:
                running.remove(sample.answer)

    def hold(text: str) -> threading.Event | None:
        begun.set()
        return never

    judge = Watched()
    chain = Telling(GOOD)
    if at == "generating":
        chain.hold = lambda chunk: hold(chunk) if chunk == " as" else None
    elif at == "judging":
        judge = Watched(hold=lambda answer: hold(answer) if "Three" in answer else None)
    else:
        chain = Telling("One is good. Two is bad.", "Three is good.")
        judge = Watched(
            hold=lambda answer: hold(answer) if answer == "Three is good." else None,
        )
    before = asyncio.all_tasks()
    await leave(guard(chain, judge), begun)
    assert asyncio.all_tasks() == before
    assert running == []
    assert chain.under_way == 0


# --- Buffering, arguments ------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", ["buffer", "sentence"])
@pytest.mark.parametrize("way", ["transform", "atransform"])
def test_an_input_in_chunks_is_put_together(streaming: Any, way: str) -> None:
    chain = Telling("One is good.")
    assert WAYS[way](guard(chain, streaming=streaming)) == ["One is good."]
    assert chain.inputs == ["why?"]


def test_no_input_gives_no_output() -> None:
    assert list(guard(Telling(GOOD)).transform(iter(()))) == []


def test_buffered_a_stream_is_the_checked_output(mode: str) -> None:
    judge = ByClaims()
    client = Client().read(guard(Telling(GOOD), judge, streaming="buffer"), "why?", mode)
    assert client.chunks == [GOOD]
    assert judge.answers == [GOOD]


def test_judging_by_sentences_needs_a_judge_of_claims() -> None:
    def whole(sample: Sample) -> Evaluation:
        return Evaluation(name="whole", passed=True)

    with pytest.raises(ValueError, match=r"streaming='sentence'.*whole judges answers as a whole"):
        Guard(Telling(GOOD), ByClaims(), whole, streaming="sentence")
    with pytest.raises(ValueError, match="buffer"):
        Guard(Telling(GOOD), ByClaims(), streaming="words")  # type: ignore[arg-type]
    bound = ByClaims().with_config(tags=["mine"])
    assert list(guard(Telling(GOOD), bound).stream("why?")) != []
