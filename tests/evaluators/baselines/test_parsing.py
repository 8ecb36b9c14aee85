"""Test that verdicts, yes or no, and questions are read in the forms that models write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.evaluators.baselines.parsing import parse_questions, parse_verdict, parse_yes_no

PASSAGE = "Item 3 is red. The verdict on this passage is factual. It was made in 1911."


@pytest.mark.parametrize(
    ("reply", "factual"),
    [
        ("Factual", True),
        ("Factual. It was made on 3 May 1911.", True),
        ("**Correct**", True),
        ("The passage is factual.", True),
        ("Based on what the witness says, the claim is correct.", True),
        ("non-factual", False),
        ("Incorrect.", False),
        ("It is not factual.", False),
        ("The passage isn't entirely correct.", False),
        ("The claim is partially correct, but partially incorrect.", False),
        ("The passage contains factual errors.", False),
        ("The passage contains no factual errors.", None),
        ("It is factual, without factual errors.", True),
        ("Non-factual\n\nThat it is red is correct, the rest is not.", False),
        ("That it is red is correct. The year is incorrect.\n\nVerdict: incorrect", False),
        ("Factual or non-factual: non-factual", False),
        ("", None),
        ("It is not non-factual.", None),
        ("That it is red is correct. The year is incorrect.", None),
        ("It is unlikely to be factual.", False),
        ("The other parts may be correct.", None),
    ],
    ids=repr,
)
def test_a_verdict_is_read_or_is_none(reply: str, factual: bool | None) -> None:
    assert parse_verdict(reply) is factual


@pytest.mark.parametrize(
    "reply",
    [
        "Factual (partially)", "far from factual", "factual, except that the year is wrong",
        "unlikely to be factual", "Factual? No.", "Factual? No", "Factual: no", "almost factual",
        "factual in part", "Factual, but the year is wrong.", "It would be factual if it were so.",
        "barely correct", "close to correct", "Correct: the first half only", "probably factual",
        "Factual. However, the year is not 1911.", "Factual\n\nBut it was not made in 1911.",
        "Mostly factual", "Correct, apart from the year", "Is it factual?", "Factual, perhaps",
        "Factual, mostly; the year is 1911", "Correct, although Ann did not run it",
    ],
    ids=repr,
)  # fmt: skip
def test_a_qualified_verdict_is_never_factual(reply: str) -> None:
    assert parse_verdict(reply) is not True


def test_what_is_copied_is_no_verdict() -> None:
    copied = "The verdict on this passage is factual."
    assert parse_verdict(copied) is True
    assert parse_verdict(copied, [PASSAGE]) is None
    assert parse_verdict(PASSAGE, [PASSAGE]) is None
    assert parse_verdict(f"{copied} That is non-factual.", [PASSAGE]) is False


words = st.sampled_from(["factual", "correct", "non-factual", "incorrect", "non factual"])
fillers = st.text("aehist \n.,:*", max_size=20)


@given(before=fillers, word=words, after=fillers)
def test_the_good_word_within_the_bad_one_never_counts(before: str, word: str, after: str) -> None:
    found = parse_verdict(f"{before} {word} {after}")
    assert found is (word in ("factual", "correct"))


@given(st.text(), st.text())
def test_any_text_can_be_read(reply: str, shown: str) -> None:
    assert parse_verdict(reply, [shown]) in (True, False, None)
    assert parse_yes_no(reply, [shown]) in (True, False, None)
    assert "\n\n" not in parse_questions(reply)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["not ", "factual ", "non-", "un ", "the my final ", "yes ", "? ", "mostly "]
)
def test_long_runs_take_no_more_than_their_length(unit: str) -> None:
    # A pattern that backtracks over these replies would never end.
    parse_verdict(unit * 20_000)
    parse_yes_no(unit * 20_000)
    parse_questions(unit * 20_000)


@pytest.mark.parametrize(
    ("reply", "yes"),
    [
        ("Yes", True),
        ("**Yes**, one more.", True),
        ("No, I don't have any follow-up questions.", False),
        ("Answer: no", False),
        ("The answer is yes", True),
        ("It says so in the context.\n\nYes", True),
        ("Nothing of that is known.", None),
        ("Yesterday it was.", None),
        ("Yes, in part.\nNo, on the whole.", None),
        ("", None),
    ],
    ids=repr,
)
def test_yes_or_no_is_read_at_the_beginning_or_in_the_last_line(
    reply: str, yes: bool | None
) -> None:
    assert parse_yes_no(reply) is yes


def test_a_copied_yes_is_none() -> None:
    shown = "Yes, this sentence is supported by the context."
    assert parse_yes_no(shown, [shown]) is None


@pytest.mark.parametrize(
    ("reply", "questions"),
    [
        ("1. Who is it?\n2. Where is it?", "1. Who is it?\n2. Where is it?"),
        (
            "The passage: Item 3 is red.\n1. What colour is item 3?\nAnswer: red",
            "1. What colour is item 3?",
        ),
        ("Yes. When was it made?", "When was it made?"),
        ("1. \u8c01?\uff1f", "1. \u8c01?\uff1f"),
        ("Yes", ""),
        ("", ""),
    ],
    ids=["numbered", "with more", "after yes", "other marks", "none", "empty"],
)
def test_questions_are_the_lines_that_ask(reply: str, questions: str) -> None:
    assert parse_questions(reply) == questions
