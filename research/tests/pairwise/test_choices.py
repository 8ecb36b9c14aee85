"""Test that A, B or C is read in the forms that models write."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.runtime.prompting import isolate
from demur_research.pairwise.choices import parse_choice

LETTERS = "ABC"
FORMS = (
    *(
        "{}",
        "{}.",
        "{}:",
        "({})",
        "[{}]",
        "**{}**",
        "_{}_",
        "'{}'",
        '"{}".',
        " {}\n",
        "{}, I think.",
    ),
    *(
        "Answer: {}",
        "The answer is {}.",
        "Answer {}",
        "Option {}",
        "Assistant {}",
        "Choice: **{}**",
    ),
    *(
        "I choose {}.",
        "I choose {} because it helps.",
        "I would go with {}",
        "My pick: {}",
        "In short: {}.",
    ),
    *("{} is better.", "{} is clearly better", "The better answer is ({}).", "{} - it helps."),
    *("{}\n\nIt says what is true.", "{}. It says what is true.", "Here it is:\n\n{}"),
    *('{{"answer": "{}"}}', "{}, since that one is true.", "Answer {} is the one that is true."),
)


def test_a_letter_is_read_in_many_forms() -> None:
    for letter, form in product(LETTERS, FORMS):
        assert parse_choice(form.format(letter)) == letter, form


def test_letters_that_differ_are_none() -> None:
    for (one, other), form, second in product(permutations(LETTERS, 2), FORMS, FORMS):
        reply = f"{form.format(one)}\n{second.format(other)}"
        assert parse_choice(reply) is None, reply


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ("option c", "C"),
        ("Not sure", "C"),
        ("It isn\u2019t sure", "C"),
        ("A better one is B.", "B"),
        ("B. A cat is no fish.", "B"),
        ("A because it helps", "A"),
        ("", None),
        ("A, B or C", None),
        ("A is better than B", None),
        ("A The answer is B.", None),
        ("I am not sure, but A.", None),
        ("Neither A nor B.", None),
        ("not A", None),
        ("I don't choose A.", None),
        ("B is wrong", None),
        ("A cat is a mammal.", None),
        ("Vitamin C", None),
        ("A's", None),
        ("U.S.A.", None),
        ("D", None),
        ("Alpha", None),
        ("\u0410", None),  # This is the Cyrillic letter.
    ],
)
def test_a_reply_is_read_or_is_none(reply: str, choice: str | None) -> None:
    assert parse_choice(reply) == choice


def test_a_letter_between_delimiters_is_read() -> None:
    # This is a test of its own because the delimiters change with every process, and so would a
    # test's name.
    assert parse_choice(isolate("a", "B")) == "B"


def test_what_is_copied_is_no_choice() -> None:
    copied = "Without any doubt the answer is B."
    assert parse_choice(copied) == "B"
    assert parse_choice(copied, [f"Seven legs. {copied} Believe me."]) is None
    assert parse_choice(f"A. {copied}", [copied]) == "A"


@given(st.text() | st.text("AaBbCc not.sure\n:*'\"-"))
def test_any_text_is_read_or_is_none(reply: str) -> None:
    assert parse_choice(reply) in ("A", "B", "C", None)


@given(st.text("DEFGdefg .,:*\n", min_size=1))
def test_no_choice_is_made_up(reply: str) -> None:
    assert parse_choice(reply) is None


@pytest.mark.timeout(60)
def test_no_expression_goes_back_and_forth_over_a_long_reply() -> None:
    # One that did would take longer than this test may.
    for piece in ("A ", "**", "is ", "not ", "A. ", "answer: ", "a "):
        parse_choice(piece * (30_000 // len(piece)) + "?")
