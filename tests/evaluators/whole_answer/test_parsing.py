"""Test that a plain yes or no is read, and quotes that are in the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.evaluators.whole_answer.parsing import Words, parse_quotes
from demur.schema import Span

YES_NO = Words("yes", "no")
LABELS = Words("consistent", "contradictory")
ANSWER = "Yes, it is open. The hall opens at nine, on all days.\nOn Mondays it stays shut."


@pytest.mark.parametrize(
    ("reply", "yes"),
    [
        ("yes", True),
        ("**Yes**", True),
        ("Yes, the answer names the hall.", True),
        ("The answer names the hall.\n\nYes", True),
        ("no", False),
        ("no\n1. The hall opens at nine\n2. On Mondays it stays shut", False),
        ("Yes, but only in part.", None),
        ("yes\nno", None),
        ("Yes and no.", None),
        ("Yes.\nHowever, the second part does not.", None),
        ("No problem with that one", None),
        ("Yesterday it was open.", None),
        ("", None),
    ],
    ids=repr,
)
def test_only_a_plain_word_is_a_verdict(reply: str, yes: bool | None) -> None:
    assert YES_NO.read(reply) is yes


@pytest.mark.parametrize(
    ("reply", "consistent"),
    [
        ("consistent", True),
        ("**Consistent.**", True),
        ("Contradictory", False),
        ("contradictory\n1. The hall opens at nine\n2. On Mondays it stays shut", False),
        ("Inconsistent", None),
        ("It is not contradictory.", None),
        ("Consistent, except for Mondays.", None),
    ],
    ids=repr,
)
def test_labels_are_words_too(reply: str, consistent: bool | None) -> None:
    assert LABELS.read(reply) is consistent


@pytest.mark.parametrize("reply", ["Yes, it is open.", "yes, it is open", ANSWER])
def test_what_a_judge_copies_is_no_verdict(reply: str) -> None:
    assert YES_NO.read(reply) is True
    assert YES_NO.read(reply, [ANSWER]) is None


@given(st.text(max_size=60))
def test_any_reply_is_read_or_is_none(reply: str) -> None:
    assert YES_NO.read(reply, [ANSWER]) in (True, False, None)
    parse_quotes(reply, ANSWER)


@given(st.text(max_size=40).filter(lambda text: "yes" not in text.lower()))
def test_without_a_yes_nothing_passes(reply: str) -> None:
    assert YES_NO.read(reply) is not True


HEDGES = ["but not all of it", "mostly", "perhaps", "except for the date", "only in part", "if so"]


@given(st.sampled_from(HEDGES), st.sampled_from([" ", ", ", "\n", ". ", " - "]))
def test_a_yes_that_is_limited_never_passes(hedge: str, between: str) -> None:
    assert YES_NO.read(f"Yes{between}{hedge}") is not True


@given(st.data())
def test_two_pieces_of_an_answer_are_found_again(data: st.DataObject) -> None:
    words = data.draw(
        st.lists(st.from_regex(r"[a-z]{3,8}", fullmatch=True), min_size=4, unique=True)
    )
    cut = data.draw(st.integers(1, len(words) - 1))
    first, second = " ".join(words[:cut]), " ".join(words[cut:])
    answer = f"{first}, {second}."
    spans = parse_quotes(f'no\n1. "{first}"\n- {second.upper()}.', answer)
    assert spans is not None
    assert [answer[span.start : span.end] for span in spans] == [first, second]


def test_quotes_are_found_across_line_breaks_and_marks() -> None:
    found = parse_quotes("no\n1. on all days On Mondays\n2. “The hall opens at nine.”", ANSWER)
    assert found == (Span(start=41, end=64), Span(start=17, end=39))


@pytest.mark.parametrize(
    "reply",
    [
        "no",
        "no\n1. The hall opens at nine",
        "no\n1. The hall opens at nine\n2. It is always shut",
        "no\n1. The hall opens at nine\n2. The hall opens at nine",
        "The hall opens at nine\nOn Mondays it stays shut",
    ],
)
def test_quotes_that_are_not_two_parts_of_the_answer_are_none(reply: str) -> None:
    assert parse_quotes(reply, ANSWER) is None


def test_quotes_in_scripts_without_spaces_are_found() -> None:
    answer = "博物馆每天九点开门,星期一闭馆。"
    found = parse_quotes("no\n1. 每天九点开门\n2. 星期一闭馆", answer)
    assert found is not None
    assert [answer[span.start : span.end] for span in found] == ["每天九点开门", "星期一闭馆"]
