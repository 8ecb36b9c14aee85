"""Test that each matcher decides as its name says, and gives its reason."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.evaluators.reverse_validation.matching import (
    MATCHERS,
    Decision,
    exact,
    normalized,
    published_em,
    published_qg,
    same_entity,
    wikibio_name,
    with_share,
)

ANYTHING = st.text(max_size=80)
NAME = st.from_regex(r"[A-Z][a-z]{4,9}( [A-Z][a-z]{3,9}){0,2}", fullmatch=True)

# --- All decisions -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(MATCHERS))
def test_a_reply_that_is_the_name_matches(name: str) -> None:
    decision = MATCHERS[name]("Mary Anning", "Mary Anning.")
    assert decision.same
    assert "names Mary Anning" in decision.reason


@pytest.mark.parametrize("name", list(MATCHERS))
@pytest.mark.parametrize("reply", ["", " \n", "Charles Lyell meets 100% of it."])
def test_a_reply_that_does_not_name_it_does_not_match(name: str, reply: str) -> None:
    decision = MATCHERS[name]("Mary Anning", reply)
    assert not decision.same
    assert "not name Mary Anning" in decision.reason


@pytest.mark.parametrize("name", list(MATCHERS))
@settings(max_examples=20)
@given(entity=ANYTHING, reply=ANYTHING)
def test_every_decision_has_one_sentence_of_reason(name: str, entity: str, reply: str) -> None:
    try:
        decision = MATCHERS[name](entity, reply)
    except ValueError as error:
        # Whether this raises depends on the drawn name, and `pytest.raises` would always require
        # it.
        assert "expected the name of one entity" in str(error)  # noqa: PT017
    else:
        assert decision.reason.startswith("The reply ")
        assert decision.reason.endswith(".")


@pytest.mark.parametrize("name", list(MATCHERS))
@settings(max_examples=10)
@given(entity=NAME, tail=st.sampled_from([" ", "\n", " (band)"]))
def test_what_stands_around_an_entity_does_not_count(name: str, entity: str, tail: str) -> None:
    assert MATCHERS[name](f" {entity}{tail}", f"It is {entity}.").same


# --- Differences between the matchers ------------------------------------------------------------


def test_exact_wants_the_whole_name_and_not_its_case() -> None:
    assert exact("Mary Anning", "it is MARY ANNING").same
    assert not exact("Mary Anning", "it is Anning").same
    assert exact("Ann", "Annapolis").same  # The match is of strings, not words.


def test_published_qg_does_not_look_at_percentages() -> None:
    decision = published_qg("Metis (mythology)", "It is metis, 10%")
    assert decision == Decision(True, "The reply names Metis.")


@pytest.mark.parametrize(
    ("entity", "reply", "same"),
    [
        ("Raven", "It is the raven, by 80%", True),
        ("Raven", "It is the raven, by 79%", False),
        ("Raven", "It is the raven.", True),
        ("Raven", "The raven meets all, by 50%", True),
        ("Raven", "A perfect match is the raven, by 50%", True),
        ("Raven", "The raven, by 87.5%", False),
        ("Raven", "The raven, by 50%, or the crow, by 100%", True),
        ("Raven", "The raven meets all except one, 50%", False),
        ("Flag", "A flag matches 100%", False),
        ("Flag", "A Flag matches 100%", True),
        ("Flag (heraldry)", "A flag meets all", False),
    ],
)
def test_published_em_is_what_the_recorded_results_require(
    entity: str, reply: str, same: bool
) -> None:
    assert published_em(entity, reply).same is same


@pytest.mark.parametrize(
    ("entity", "reply", "same"),
    [
        ("Mary Jane Anning", "Mary Anning", True),
        ("Mary Anning", "Mary Shelley", False),
        ("Mary Jane Louise Anning", "Mary Anning", False),
    ],
)
def test_wikibio_name_wants_two_thirds_of_the_pieces(entity: str, reply: str, same: bool) -> None:
    decision = wikibio_name(entity, reply)
    assert decision.same is same
    assert "pieces" in decision.reason


@pytest.mark.parametrize(
    ("reply", "same"),
    [
        ("Hoy", True),
        ("Skye, Hoy or Mull", True),
        ("Skye, Hoy, Mull or Jura", False),
        ("- Skye\n- Hoy\n- Mull\n- Jura\n- Islay", False),
        ("Hoy, Orkney, Scotland, United Kingdom, Europe", True),
        ("Hoy\n\nIt is\nthe second\nlargest of those islands in the far north, or nearly so", True),
        ("Entity: Hoy\nPercentage: 90%\nNot met: 1, 2, 3 or 4", True),
        ("Entity: Skye\nPercentage: 90%\nIt is near Hoy.", False),
        ("Entity: none", False),
        ("It is not Hoy.", False),
        ("not Hoy but Skye", False),
        ("Entity: Hoy does not meet the requirements\nPercentage: 0%", False),
        ("I do not know. Perhaps Hoy.", False),
    ],
)
def test_normalized_wants_the_name_given_and_not_only_mentioned(reply: str, same: bool) -> None:
    assert normalized("Hoy", reply).same is same


@pytest.mark.parametrize(
    ("entity", "reply", "same"),
    [
        ("Unknown (album)", "unknown", False),
        ("Unknown (album)", "The answer is unknown.", False),
        ("Unknown (album)", "Entity: unknown\nPercentage: 0%\nNot met: all", False),
        ("Unknown (album)", "Unknown (the album)", True),
        ("Unknown (album)", "It is Unknown, an album of 1988.", True),
        ("None", "Entity: none", False),
        ("I Don't Know", "I don\u2019t know.", False),
        ("I Don't Know How to Love Him", "I Don't Know How to Love Him", True),
        ("No. 5", "No. 5", True),
    ],
)
def test_a_reply_that_knows_no_name_gives_none_whatever_the_entity_is_called(
    entity: str, reply: str, same: bool
) -> None:
    assert normalized(entity, reply).same is same


# --- A model that decides ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "same"),
    [
        ("Yes.", True),
        ("**No**, they differ.", False),
        ("Final answer: yes.", True),
        ("Yes and no.", None),
        ("Yesterday", None),
        ("I cannot answer without more context, so no.", None),
        ("", None),
    ],
)
def test_yes_and_no_are_read_and_nothing_else_is(reply: str, same: bool | None) -> None:
    found = same_entity(reply)
    assert (found and found.same) is same


# --- Share and name -------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_share_has_to_be_as_high_as_the_least(met: float, least: float) -> None:
    decision = with_share(Decision(True, "It names it."), met, least)
    assert decision is not None
    assert decision.same is (met >= least)
    assert decision.reason.startswith("It names it; it gives ")


@given(st.none() | st.floats(0, 1), st.floats(0, 1))
def test_a_share_never_makes_a_match_of_another_name(met: float | None, least: float) -> None:
    other = Decision(False, "Another.")
    assert with_share(other, met, least) == other


def test_without_a_share_nothing_is_decided_on_the_name_that_was_asked_for() -> None:
    assert with_share(Decision(True, "It names it."), None, 0) is None
