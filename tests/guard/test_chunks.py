"""Chunks of every shape, cut and put together."""

from __future__ import annotations

import threading
from functools import reduce
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableLambda

from demur import (
    AnswerRejected,
    DemurError,
)
from demur.guard.chunks import added
from demur.guard.recovery import REFUSAL
from support.streams import (
    DOCUMENTS,
    GOOD,
    ByClaims,
    Client,
    Telling,
    by_words,
    guard,
)


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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


def test_a_message_in_one_piece_leaves_as_it_is(mode: str) -> None:
    message = AIMessage("One is good. Two is good.", id="1", response_metadata={"a": 1})
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
    guarded = guard(Telling([{"prose": "One is good."}, {"context": DOCUMENTS}]))
    with pytest.raises(DemurError, match="no answer can be found"):
        client.read(guarded, "why?", mode)
    assert client.chunks == [{"context": DOCUMENTS}]  # the other may have been meant for it


@pytest.mark.parametrize("chunks", [[""], [" \n"]])
def test_an_answer_without_a_sentence_is_judged_as_it_is(chunks: list[str], mode: str) -> None:
    judge = ByClaims()
    client = Client().read(guard(Telling(chunks), judge), "why?", mode)
    assert judge.answers == chunks
    assert client.chunks == chunks
