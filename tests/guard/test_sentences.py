"""Test that a growing text has the sentences of the whole text, found in linear time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur import Evaluation
from demur._text import sentences
from demur.guard import REFUSAL
from demur.guard.call import GuardedCall
from demur.guard.sentences import Sentences
from demur.guard.streamed import Leaving, StreamedAnswer
from demur.runtime import drive
from support.streams import Telling, guard

Spans = list[tuple[int, int]]


def cut(pieces: list[str]) -> Spans:
    growing = Sentences()
    for piece in pieces:
        growing.add(piece)
    growing.end()
    assert growing.text == "".join(pieces)
    return growing.spans


def in_pieces(text: str, data: st.DataObject) -> list[str]:
    pieces, at = [], 0
    while at < len(text):
        size = data.draw(st.integers(1, 12))
        pieces.append(text[at : at + size])
        at += size
    return pieces


def lettered(text: str, found: Spans) -> Spans:
    """Join each sentence that has no letter to the next one."""
    spans: Spans = []
    begin: int | None = None
    for at, (first, end) in enumerate(found):
        begin = first if begin is None else begin
        if any(map(str.isalpha, text[first:end])) or at == len(found) - 1:
            spans.append((begin, end))
            begin = None
    return spans


PROSE = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "Ann met Dr. Smith at 3.5 m.",
                "It was opened in the spring of 1911, on a Monday.",
                "Was it? So it is!",
                "甲は乙です。丙も。",
                "1. One item",
                "- another item",
                "Notes:",
                "The U.S. built No. 5, e.g. this one, for $3.20.",
                "... and so on.",
                "12.",
                "😀 Cafe\u0301 is open.",
            ]
        ),
        st.sampled_from([" ", "  ", "\n", "\n\n", "\r\n", "\u2028", "\n  "]),
    ),
    max_size=12,
).map(lambda parts: "".join(said + between for said, between in parts))


@settings(max_examples=50)
@given(PROSE, st.data())
def test_the_sentences_are_those_of_the_whole_text(text: str, data: st.DataObject) -> None:
    assert cut(in_pieces(text, data)) == lettered(text, sentences(text))


def test_a_line_that_wraps_a_paragraph_does_not_end_a_sentence() -> None:
    text = "It is tall. The tower stands in the middle of the\nold town. It is 84 metres tall.\n"
    found = [text[start:end] for start, end in cut([*text])]
    assert found == [
        "It is tall.",
        "The tower stands in the middle of the\nold town.",
        "It is 84 metres tall.",
    ]


def test_an_ordinary_sentence_is_complete_with_a_word_of_the_next_whatever_came_before() -> None:
    for before in ("", "1. " * 500, "12 " * 500, "! " * 500, "\n" * 1_000, "so " * 500):
        growing = Sentences()
        for sign in f"{before}\n\nIt is tall. So":
            growing.add(sign)
        growing.add(" ")
        growing.add("it")
        assert growing.text[slice(*growing.spans[-1])].endswith("It is tall.")


def judged_at_once(text: str, size: int = 5) -> str:
    """Return the text that leaves of a streamed answer whose sentences all pass."""
    streamed = StreamedAnswer(GuardedCall(guard(Telling("")), "why?", {}))
    left: list[str] = []

    def go_on() -> None:
        for at, _ in streamed.to_judge():
            streamed.judged(at, (Evaluation(name="judge", passed=True),))
        left.extend(streamed.leaving())

    for at in range(0, len(text), size):
        streamed.feed(text[at : at + size])
        go_on()
    streamed.end()
    while not streamed.settled:
        go_on()
    rest, _ = drive(streamed.finish(), {}, None)
    return "".join([*left, *(one.chunk for one in rest if isinstance(one, Leaving))])


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["1. ", "tower", 'He said "so. ', "( ", "\n", "Is it. So. "],
)
def test_time_is_linear_in_the_answer(piece: str) -> None:
    """Take half a second; in quadratic time, it would take minutes, and reach the time limit."""
    text = piece * (30_000 // len(piece))
    assert judged_at_once(text) == text


@pytest.mark.slow
def test_a_correction_of_a_long_answer_is_found_in_linear_time() -> None:
    text = "One is good. " * 4_000 + "Two is bad. So it is."
    abstaining = guard(Telling(""), on_fail="abstain")
    streamed = StreamedAnswer(GuardedCall(abstaining, "why?", {}))
    streamed.feed(text)
    while not streamed.settled:
        for at, sample in streamed.to_judge():
            passed = "bad" not in sample.answer
            streamed.judged(at, (Evaluation(name="judge", passed=passed),))
        assert all("bad" not in chunk for chunk in streamed.leaving())
    left, _ = drive(streamed.finish(), {}, None)
    assert left[-1] == Leaving(REFUSAL)
