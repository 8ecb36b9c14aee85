"""Test offers to a store: how they are read, checked and compared with what is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.exemplars.offers import Offer, read_offer, read_offers
from demur.storage import question_id

QUESTIONS = st.sampled_from(["why?", "how?", " how? ", "who?"])
ANSWERS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=4)


def told(offer: Offer) -> dict[str, float | None]:
    """Return the offer's answers with their scores."""
    scores = offer.scores or {}
    return {answer: scores.get(answer) for answer in offer.answers}


@given(st.lists(st.tuples(QUESTIONS, ANSWERS, st.booleans()), max_size=8), st.randoms())
def test_all_answers_of_a_question_compete_and_the_last_score_counts(
    wanted: list[tuple[str, list[str], bool]], chance: Any
) -> None:
    offers: list[tuple[Any, ...]] = []
    scored: dict[str, dict[str, float]] = {}
    open_: dict[str, set[str]] = {}
    for question, answers, with_scores in wanted:
        id_ = question_id(question)
        if with_scores:
            scores = [chance.uniform(-1, 1) for _ in answers]
            scored.setdefault(id_, {}).update(zip(answers, scores, strict=True))
            offers.append((question, answers, scores))
        else:
            open_.setdefault(id_, set()).update(answers)
            offers.append(chance.choice([(question, answers), (question, answers, None)]))
    given_, asked = (
        {question_id(offer.question): offer for offer in some}
        for some in read_offers(offers, "a run")
    )
    assert {id_: told(offer) for id_, offer in given_.items()} == scored
    assert {id_: set(offer.answers) for id_, offer in asked.items()} == open_
    for offer in [*given_.values(), *asked.values()]:
        assert offer.answers == dict.fromkeys(offer.answers, "a run")
    assert all(offer.scores is None for offer in asked.values())


def test_lists_of_any_kind_will_do() -> None:
    expected = {"a": 0.25, "b": 0.5}
    for answers, scores in [
        (("a", "b"), np.array([0.25, 0.5])),
        (np.array(["a", "b"]), [np.float32(0.25), 0.5]),
        ((one for one in "ab"), (score for score in (0.25, 0.5))),
    ]:
        assert told(read_offer(["q", answers, scores], None, "add")) == expected


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        ("ab", r"expected \(question, answers\) or \(question, answers, scores\), got 'ab'"),
        (None, "expected .question, answers. or .*, got None"),
        (("q", ["a"], [1.0], "more"), "expected .question, answers. or"),
        ({"question": "q", "answers": ["a"]}, "expected .question, answers. or"),
        ((" \n", ["a"]), r"expected a question, got ' \\n'"),
        ((None, ["a"]), "expected a question, got None"),
        (("q", "because"), "expected a list of answers to 'q', got 'because'"),
        (("q", []), r"expected a list of answers to 'q', got \[\]"),
        (("q", {"a"}), "expected a list of answers to 'q', got {'a'}"),
        (("q", ["a", "\t"]), r"expected answers to 'q' that say something, got '\\t'"),
        (("q", ["a", None]), "expected answers to 'q' that say something, got None"),
        (("q", ["a", "b"], [1.0]), r"expected 2 finite numbers, one per answer to 'q', got .*1.0"),
        (("q", ["a"], 1.0), "expected 1 finite numbers, one per answer to 'q', got scores=1.0"),
        (("q", ["a"], "1"), "expected 1 finite numbers"),
        (("q", ["a"], {0.5}), "expected 1 finite numbers"),
        (("q", ["a"], [float("nan")]), "expected 1 finite numbers"),
    ],
)
def test_what_is_no_offer_is_refused_with_its_place(offered: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^offer 1: {message}"):
        read_offers([("fine", ["a"]), offered], None)


def test_a_list_of_offers_and_a_text_as_source_are_wanted() -> None:
    with pytest.raises(ValueError, match=r"expected a list of .question, answers., got"):
        read_offers({"why?": ["a"]}, None)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ValueError, match="add: expected a text as source, got 7"):
        read_offer(("q", ["a"]), 7, "add")  # type: ignore[arg-type]  # on purpose
