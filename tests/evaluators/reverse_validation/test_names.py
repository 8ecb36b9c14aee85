"""Test the ways to write a name, and the places in a text where a name is written so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.evaluators.reverse_validation.names import (
    abbreviates,
    fold,
    initials,
    places,
    trimmed,
    ways,
    without_qualifier,
)


@pytest.mark.parametrize("entity", ["", "  ", '"', ", ,", "()", "...", "(", '"“”"'])
def test_an_entity_without_a_name_is_refused(entity: str) -> None:
    for function in (trimmed, without_qualifier):
        with pytest.raises(ValueError, match="expected the name of one entity"):
            function(entity)


@pytest.mark.parametrize(
    ("entity", "whole", "bare"),
    [
        ("John Smith ", "John Smith", "John Smith"),
        ('"Buddy Miller ', "Buddy Miller", "Buddy Miller"),
        ("Mario Rossi, ", "Mario Rossi", "Mario Rossi"),
        ("Metis (mythology)", "Metis (mythology)", "Metis"),
        ("(Untitled)", "(Untitled)", "(Untitled)"),
        ("A (b) c (d)", "A (b) c (d)", "A"),
    ],
)
def test_what_data_sets_leave_at_the_ends_is_no_part_of_a_name(
    entity: str, whole: str, bare: str
) -> None:
    assert trimmed(entity) == whole
    assert without_qualifier(entity) == bare


@pytest.mark.parametrize(
    ("entity", "written"),
    [
        ("Mary Anning", ["mary anning"]),
        ("The Aeneid", ["the aeneid", "aeneid"]),
        ("Smith, John", ["smith john", "john smith"]),
        ("Otto, Count of Ulm", ["otto count of ulm", "otto"]),
        ("Sir John Soane", ["sir john soane", "john soane"]),
        ("Big Research Programme (BRP)", ["big research programme", "brp"]),
        ("Big Research Programme (NATO)", ["big research programme"]),
        ("Metis (mythology)", ["metis"]),
    ],
)
def test_the_ways_to_write_a_name(entity: str, written: list[str]) -> None:
    assert [" ".join(name.folded) for name in ways(entity)] == written


@pytest.mark.parametrize(
    ("entity", "short"),
    [
        ("National Hockey League", "NHL"),
        ("Body mass index", "BMI"),
        ("Organisation for the Prohibition of Chemical Weapons", "OPCW"),
        ("Mary Anning", None),
        ("Kingdom of Ulm", None),
    ],
)
def test_initials_are_of_three_words_or_more(entity: str, short: str | None) -> None:
    assert initials(entity) == short


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("\u00c9mile", "emile"),
        ("\u0141\u00f3d\u017a", "lodz"),
        ("O'Brien", "obrien"),
        ("\u00c6sir", "aesir"),
    ],
)
def test_folding_leaves_plain_small_letters(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_an_abbreviation_has_letters_of_the_name_in_their_order() -> None:
    assert abbreviates(
        "ESPRIT", "European Strategic Programme on Research in Information Technology"
    )
    assert not abbreviates("NHL", "League of Hockey")


@pytest.mark.parametrize(
    ("name", "words", "found"),
    [
        (["ann", "lee"], ["ann", "lee", "annlee"], [(0, 2), (2, 3)]),
        (["annlee"], ["ann", "lee", "s"], [(0, 2)]),
        (["raven"], ["ravens", "raven"], [(0, 1), (1, 2)]),
        (["hoy"], ["hoys", "ahoy", "hoyt"], []),
        (["hoy"], ["", "hoy", ""], [(1, 2)]),
        ([""], ["", "a"], []),
    ],
)
def test_places(name: list[str], words: list[str], found: list[tuple[int, int]]) -> None:
    assert list(places(name, words)) == found


FOLDED = st.lists(st.text("ab", max_size=3), max_size=12)


@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3), FOLDED, FOLDED)
def test_a_name_between_other_words_has_its_place(
    name: list[str], before: list[str], after: list[str]
) -> None:
    found = list(places(name, [*before, *name, *after]))
    assert (len(before), len(before) + len(name)) in found
    for start, end in found:
        assert "".join([*before, *name, *after][start:end]) == "".join(name)
