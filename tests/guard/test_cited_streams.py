"""Test streams in which passing sentences leave with citations, and failing ones do not leave."""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Iterator
from functools import reduce
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableGenerator
from langchain_core.runnables.utils import AddableDict

from demur import Annotate, CitationSupport, Cite, Guard, Regenerate, Strip
from demur.guard import REFUSAL, REPLACE
from support.held import LOUVRE, HeldByNumbers
from support.waiting import wait

GOOD = "The Louvre opened in 1793. On show are 35000 works."
HELD = 9
"""The place of the last word of the second sentence in `ONE_BAD`."""
ONE_BAD = "The Louvre opened in 1793. In 1850 it burnt down. On show are 35000 works."


def _documents(output: Any) -> list[Document]:
    return list(LOUVRE)


def _guard(
    answer: str, *, message: bool = False, left: threading.Event | None = None, **options: Any
) -> Guard[Any, Any]:
    """Return a guard around a chain that gives words, and holds one until `left` is set."""

    def words(given: Iterator[Any]) -> Iterator[Any]:
        list(given)
        for at, word in enumerate(re.findall(r"\s*\S+", answer)):
            if at == HELD and left is not None:
                wait(left)
            yield AIMessageChunk(content=word) if message else word

    async def awords(given: AsyncIterator[Any]) -> AsyncIterator[Any]:
        for word in words(iter([one async for one in given])):
            yield word

    options = {"contexts": _documents, "streaming": "sentence", **options}
    return Guard(RunnableGenerator(words, awords), HeldByNumbers(), **options)


class _Replaced(BaseCallbackHandler):
    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        if name == REPLACE:
            self.events.append(data)


def _streamed(
    guarded: Guard[Any, Any], left: threading.Event | None = None, given: Any = "When?"
) -> tuple[list[str], list[Any]]:
    """Return the chunks with text and the events, and set `left` when the first chunk comes."""
    handler = _Replaced()
    chunks = []
    for chunk in guarded.stream(given, {"callbacks": [handler]}):
        chunks.append(chunk if isinstance(chunk, str) else str(chunk.text))
        if left is not None:
            left.set()
    return [chunk for chunk in chunks if chunk], handler.events


@pytest.mark.parametrize("message", [False, True])
def test_marks_leave_with_their_sentence(message: bool) -> None:
    guarded = _guard(GOOD, message=message, on_pass=Cite())
    chunks, replaced = _streamed(guarded)
    assert chunks == ["The Louvre opened in 1793 [1].", " On show are 35000 works [2]."]
    assert replaced == []


def test_what_goes_on_from_a_stripped_sentence_waits_for_the_end() -> None:
    answer = "The Louvre opened in 1793. Ada drew it in 1850. She saw 35000 works. Since 1793."
    chunks, replaced = _streamed(_guard(answer, on_fail="strip"))
    assert chunks == ["The Louvre opened in 1793.", " Since 1793."]
    assert replaced == []


def test_where_too_little_is_left_what_was_streamed_is_taken_back() -> None:
    left = threading.Event()
    guarded = _guard(ONE_BAD, left=left, on_fail={"contradiction": Strip()})
    chunks, replaced = _streamed(guarded, left, {"question": "Was it down in 1850?"})
    assert chunks[-1] == REFUSAL
    assert replaced == [{"keep": 0, "keys": []}]
    assert "1850" not in "".join(chunks)


def test_with_another_recovery_no_sentence_is_taken_out() -> None:
    guarded = _guard(ONE_BAD, on_fail={"contradiction": Regenerate(), "neutral": Strip()})
    chunks, _ = _streamed(guarded)
    assert chunks[-1] == REFUSAL
    assert not any("35000" in chunk for chunk in chunks)


def test_an_answer_whose_citations_are_corrected_is_whole() -> None:
    answer = "It opened in 1793 [2]. On show are 35000 works [9]."
    guarded = _guard(answer)
    judged = Guard(
        guarded.chain,
        HeldByNumbers(),
        CitationSupport(HeldByNumbers()),
        contexts=_documents,
        streaming="sentence",
    )
    assert "".join(judged.stream("When?")) == judged.invoke("When?")
    assert judged.invoke("When?") == "It opened in 1793 [1]. On show are 35000 works [2]."


def test_a_best_effort_has_no_marks_in_the_end() -> None:
    left = threading.Event()
    guarded = _guard(ONE_BAD, left=left, on_fail=Annotate("(?)"), on_pass=Cite())
    chunks, replaced = _streamed(guarded, left)
    assert chunks[0] == "The Louvre opened in 1793 [1]."
    assert replaced == [{"keep": 0, "keys": []}]
    assert chunks[-1] == f"{ONE_BAD}\n\n(?)"


def test_citations_in_blocks_add_up_to_those_of_the_whole() -> None:
    guarded = _guard(GOOD, message=True, on_pass=Cite("blocks"))
    chunks = list(guarded.stream("When?"))
    (first,) = chunks[0].content
    assert first["annotations"][0]["cited_text"] == LOUVRE[0].page_content
    (whole,) = reduce(lambda total, chunk: total + chunk, chunks).content
    (invoked,) = guarded.invoke("When?").content
    assert whole["text"] == invoked["text"] == GOOD
    for one in (*whole["annotations"], *invoked["annotations"]):
        one.pop("id")
    assert whole["annotations"] == invoked["annotations"]


def test_a_mapping_has_its_citations_in_the_last_chunk() -> None:
    def pieces(given: Iterator[Any]) -> Iterator[Any]:
        list(given)
        yield AddableDict(context=list(LOUVRE))
        for word in re.findall(r"\s*\S+", GOOD):
            yield AddableDict(answer=word)

    guarded = Guard(
        RunnableGenerator(pieces), HeldByNumbers(), streaming="sentence", on_pass=Cite()
    )
    chunks = list(guarded.stream("When?"))
    assert [one["number"] for one in chunks[-1]["citations"]] == [1, 2]
    assert reduce(lambda total, chunk: total + chunk, chunks) == guarded.invoke("When?")
