"""Test what is left of an answer without its failing sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur import Claim, Span
from demur.guard.edits import Remainder, remainder


def _claim(answer: str, part: str) -> Claim:
    start = answer.index(part)
    return Claim(text=part, span=Span(start=start, end=start + len(part)))


def _left(answer: str, *failing: str) -> Remainder:
    left = remainder(answer, [_claim(answer, part) for part in failing])
    assert left is not None
    return left


@pytest.mark.parametrize(
    ("answer", "failing", "expected"),
    [
        ("One is here. Two is there. Three is gone.", ["Two"], "One is here. Three is gone."),
        ("  One is here. Two is there.", ["Two"], "  One is here."),
        ("One is here.\n\nTwo is there. Three.", ["Two"], "One is here.\n\nThree."),
        ("One is here. Two is there.\n\nThree.", ["Two"], "One is here.\n\nThree."),
        ("- one red\n- two red\n- three red", ["two red"], "- one red\n- three red"),
        ("1. one red\n2. two red\n3. three", ["two red"], "1. one red\n2. three"),
        ("3) one red\n4) two red\n5) three", ["one red"], "3) two red\n4) three"),
        (
            "1. one red\n2. two red\n\nAlso:\n1. a red\n2. b red",
            ["one red"],
            "1. two red\n\nAlso:\n1. a red\n2. b red",
        ),
        ("The reds are:\n- one\n- two", ["one"], "The reds are:\n- two"),
        ("Here. The reds are:\n- one\n\nMore.", ["one"], "Here.\n\nMore."),
        ("- A is red. B is blue.\n- C is red.", ["A is red"], "- B is blue.\n- C is red."),
        ("- one\n  - two\n  - three\n- four", ["one"], "- four"),
        ("# Head\n\nOne is red.\n\n# Next\n\nTwo.", ["One"], "# Next\n\nTwo."),
        ("# Head\n\n## Sub\n\nOne is red.\n\n# Next\n\nTwo.", ["One"], "# Next\n\nTwo."),
        ("# Head\n\nOne is red.\n\n## Sub\n\nTwo.", ["One"], "# Head\n\n## Sub\n\nTwo."),
        ("Run this:\n```sh\nrm x\n```\nThat is all.", ["rm x"], "That is all."),
        ("See:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nDone.", ["| 1 | 2 |"], "Done."),
        ("Zwei ist da。Drei ist fort.", ["Drei"], "Zwei ist da。"),
    ],
)
def test_lists_paragraphs_and_blocks_keep_their_form(
    answer: str, failing: list[str], expected: str
) -> None:
    assert _left(answer, *failing).text == expected


def test_what_announces_a_list_stays_with_its_first_item() -> None:
    answer = "The reds are:\n- one\n- two"
    claim = Claim(text="The reds are: one", span=Span(start=0, end=answer.index("\n- two")))
    left = remainder(answer, [claim])
    assert left is not None
    assert left.text == "The reds are:\n- two"


@pytest.mark.parametrize(
    ("answer", "failing", "lost"),
    [
        ("The tower is old. Ada built it. She was young.", "Ada", ["She was young."]),
        ("The tower is old. Ada built it. The hall is new.", "Ada", []),
        ("The tower is old. It was red. It is high.", "It was red", []),
        ("It was red. It is high.", "It was red", ["It is high."]),
        ("The tower is old. Ada built it. However, nobody came.", "Ada", ["However, nobody came."]),
        ("The tower is old. Ada built it. Daher kam keiner.", "Ada", ["Daher kam keiner."]),
        ("- Ada built it.\n- She was young.", "Ada", ["She was young."]),
    ],
)
def test_a_sentence_that_went_on_from_one_that_is_gone_is_told(
    answer: str, failing: str, lost: list[str]
) -> None:
    left = _left(answer, failing)
    assert [left.said(at) for at in left.lost] == lost
    assert left.without_lost().lost == []


def test_a_reworded_sentence_takes_its_place_behind_its_marker() -> None:
    left = _left("- Ada built it.\n- She was young.\n- Bo came.", "Ada")
    (at,) = left.lost
    reworded = left.with_reworded({at: "Ada was young."})
    assert reworded.text == "- Ada was young.\n- Bo came."
    assert reworded.lost == []


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Where is the tower?", True),
        ("When was the tower built?", False),
        ("Who is Ada?", False),
        ("Is there a lift?", True),
        (None, True),
    ],
)
def test_what_is_left_answers_if_it_has_the_words_of_the_question(
    question: str | None, answers: bool
) -> None:
    left = _left("The tower is in Lund. Ada built the tower in 1911.", "Ada")
    assert left.answers(question) is answers


def test_a_claim_without_a_place_cannot_be_taken_out() -> None:
    assert remainder("One is here.", [Claim(text="Two")]) is None
    assert remainder("One is here.", []) is None


def test_what_was_taken_out_is_told_in_order() -> None:
    left = _left("The reds are:\n- one\n\nTwo is blue. Three.", "Two", "one")
    assert left.texts_removed == ("The reds are:", "- one", "Two is blue.")


_LINES = st.lists(
    st.sampled_from(
        [
            *("# Head", "## Sub", "A is red.", "B is red. C is blue.", "The list is:"),
            *("- one red", "  - two red", "1. three", "2. four red", "```\nx = 1\n```", ""),
            "| a | b |\n|---|---|\n| 1 | 2 |",
        ]
    ),
    min_size=1,
    max_size=12,
)


@given(_LINES, st.data())
def test_no_word_is_left_of_what_fails_and_none_is_lost_of_the_rest(
    lines: list[str], data: st.DataObject
) -> None:
    answer = "\n".join(lines)
    whole = remainder(answer, [Claim(text="all", span=Span(start=0, end=max(1, len(answer))))])
    if whole is None or not answer.strip():
        return
    failing = data.draw(st.sets(st.sampled_from(range(len(whole.pieces)))))
    left = Remainder(answer, whole.pieces).without(failing)
    assert failing <= left.removed
    kept = [at for at in range(len(left.pieces)) if at not in left.removed]
    at = 0
    for number in kept:  # The pieces keep their order.
        at = left.text.index(left.said(number), at) + len(left.said(number))
    assert not left.text[at:].strip()
