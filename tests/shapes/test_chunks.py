"""Test how chunks of every shape are split and put together."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.utils import AddableDict

from demur import (
    AnswerRejected,
    DemurError,
)
from demur.guard import REFUSAL
from demur.shapes import added
from support.streams import (
    DOCUMENTS,
    GOOD,
    ByClaims,
    Client,
    Telling,
    by_words,
    guard,
    under,
)


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


def test_a_messages_chunks_add_up_to_the_message() -> None:
    client = Client().read(guard(Telling(message_chunks(GOOD))), "why?")
    assert len(client.chunks) == 4
    assert client.total == reduce(added, message_chunks(GOOD))


def test_a_corrected_message_is_one_message() -> None:
    judged = threading.Event()
    judge = ByClaims(hold=lambda answer: judged if "bad" in answer else None)
    client = Client()
    client.on_text = lambda text: judged.set()
    chain = Telling(message_chunks("One is good. Two is bad."), [AIMessage("Fine.", id="other")])
    client.read(guard(chain, judge), "why?")
    assert client.text == "Fine."
    assert {chunk.id for chunk in client.chunks} == {"run-1"}
    assert client.chunks[-1].chunk_position == "last"


def test_other_keys_leave_with_the_answer_and_contexts_at_once() -> None:
    got = threading.Event()
    chain = Telling(
        [
            AddableDict(input="why?"),
            AddableDict(context=DOCUMENTS),
            *under("answer", GOOD),
            AddableDict(more=1),
        ]
    )
    chain.hold = lambda chunk: got if chunk == {"answer": "One"} else None
    client = Client()
    client.on_text = lambda text: got.set()
    client.read(guard(chain, contexts=None), {"input": "why?"})
    assert client.text == GOOD
    assert client.others == {"input": "why?", "context": DOCUMENTS, "more": 1}
    assert {"context": DOCUMENTS} in client.chunks[:2]


def test_other_keys_that_a_correction_changes_are_sent_anew() -> None:
    better = [Document("Something else.")]
    chain = Telling(
        [AddableDict(input="why?", context=DOCUMENTS), *under("answer", "One is bad.")],
        [AddableDict(input="why?", context=better), AddableDict(answer="Fine.")],
    )
    client = Client().read(guard(chain, contexts=None), {"input": "why?"})
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
    chunks: list[Any], options: dict[str, Any]
) -> None:
    judge = ByClaims()
    client = Client().read(guard(Telling(chunks), judge, **options), "why?")
    assert judge.answers == ["One is good."]
    assert client.chunks == chunks[-1:]
    refused = Client()
    refusing = guard(Telling(chunks), ByClaims(passes=lambda sample: False), **options)
    if "answer" in options:
        with pytest.raises(AnswerRejected):  # The refusal has no place in the output.
            refused.read(refusing, "why?")
        assert refused.chunks == []
    else:
        refused.read(refusing, "why?")
        assert refused.text == REFUSAL


def test_an_answer_that_cannot_be_found_is_an_error_and_lets_nothing_out() -> None:
    client = Client()
    guarded = guard(Telling([AddableDict(prose="One is good."), AddableDict(context=DOCUMENTS)]))
    with pytest.raises(DemurError, match="no answer can be found"):
        client.read(guarded, "why?")
    assert client.chunks == [{"context": DOCUMENTS}]  # The prose may be the answer.


@pytest.mark.parametrize("chunks", [[""], [" \n"]])
def test_an_answer_without_a_sentence_is_judged_as_it_is(chunks: list[str]) -> None:
    judge = ByClaims()
    client = Client().read(guard(Telling(chunks), judge), "why?")
    assert judge.answers == chunks
    assert client.chunks == chunks


# --- What adds up --------------------------------------------------------------------------------

TEXTS = st.dictionaries(st.sampled_from("ab"), st.text(max_size=2), max_size=2)
MIXED = st.dictionaries(st.sampled_from("ab"), st.text(max_size=2) | st.integers(), max_size=2)


def several(*mappings: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(
        st.one_of(
            st.text(max_size=3),
            *mappings,
            st.text(max_size=3).map(lambda text: AIMessageChunk(text, id="1")),
            st.integers(),
            st.lists(st.integers(), max_size=2),
        ),
        min_size=1,
        max_size=6,
    )


# Mappings that add up hold only texts: LangChain gives up a mapping if one value cannot be added.
CHUNKS = several(MIXED) | several(TEXTS, TEXTS.map(AddableDict))


@settings(max_examples=50)
@given(CHUNKS)
@example([{"a": "How"}, {"a": "How tall"}])
@example([{"a": 1}, {"a": "How"}])
@example(["a", AddableDict(a="b")])
def test_chunks_are_put_together_as_langchain_does_it(chunks: list[Any]) -> None:
    chain = Telling(chunks) | RunnableLambda(lambda whole: whole)

    def either(whole: Callable[[], Any]) -> Any:
        try:
            return whole()
        except Exception as error:  # for example, a string and an AddableDict
            return type(error)

    langchains = either(lambda: [*chain.stream("why?")])
    assert either(lambda: [reduce(added, chunks)]) == langchains


def test_of_plain_mappings_only_the_last_is_an_answer() -> None:
    chunks = [{"answer": "One is good. So"}, {"answer": "Two is bad."}]
    client = Client().read(guard(Telling(chunks), on_fail="abstain"), "why?")
    assert client.chunks == [{"answer": REFUSAL}]


class State(AddableDict):
    """Represent a graph's state: adding another state replaces the values of its keys."""

    def __add__(self, other: Any) -> Any:
        return State({**self, **other})


# --- Several answers -----------------------------------------------------------------------------


@pytest.mark.parametrize("second", ["Two is bad.", AIMessageChunk("Two is bad."), {"text": "bad"}])
@pytest.mark.parametrize("at_once", [True, False], ids=["in one chunk", "in another"])
def test_of_a_second_answer_nothing_leaves(second: Any, at_once: bool) -> None:
    first, *rest = under("answer", "One is good. So it is.")
    chunks = [first | {"output": second}, *rest] if at_once else [first, *rest]
    chunks += [] if at_once else [AddableDict(output=second)]
    client = Client()
    with pytest.raises(DemurError, match="several answers"):
        client.read(guard(Telling([AddableDict(context=DOCUMENTS), *chunks])), "why?")
    assert "bad" not in str(client.chunks)
    assert "So it" not in client.received


def test_what_stands_under_another_key_is_judged_with_the_answer() -> None:
    chunks = [*under("answer", "One is good. So"), *under("result", " it is. Two is bad. Three.")]
    judge, client = ByClaims(), Client()
    client.read(guard(Telling(chunks), judge, on_fail="abstain"), "why?")
    assert client.text == REFUSAL
    assert "bad" not in repr(client.chunks)
    whole = {"answer": "One is good. So", "result": " it is. Two is bad. Three."}
    assert whole in [json.loads(answer) for answer in judge.answers if answer.startswith("{")]
