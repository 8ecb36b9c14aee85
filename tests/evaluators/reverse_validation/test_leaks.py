"""Test that an entity's name is found in a query in all its forms, and nothing else is."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demur.evaluators.reverse_validation.leaks import HIDDEN, mask

HE = "He was born in a small town, where his father kept a shop."
IT = "It was founded long ago and is known in all the country."

MASKED = [
    # The parts in braces name the entity.
    ("Ada Bell", IT, "Who knew {Ada Bell} best?"),
    ("Emperor Ōjin", IT, "When did {Emperor Ojin} rule?"),
    ("Hoy", IT, "What is {Hoy}'s highest hill?"),
    ("Desmothoracid", IT, "Where do {desmothoracids} live?"),
    ("Metis (myth)", IT, "{Metis} was a Titaness."),
    ("Big Research Programme (BRP)", IT, "What did {BRP} pay for?"),
    ("The Gold Pan", IT, "Who sang of {Gold Pan} first?"),
    ("Otto, Count of Ulm", HE, "{Otto} ruled Ulm."),
    ("Smith, John", HE, "Where was {John Smith} born?"),
    ("Ada Bell", HE, "What did {Bell} invent?"),
    ("Ada Bell", HE, "1. {Ada Bell}\n2. {Bell}'s house"),
    ("Amber League", f"The Amber League (AL) is small. {IT}", "Who won the {AL} in 1990?"),
    ("Body mass index", IT, "What is a good {BMI}?"),
    ("North-East Wales", IT, "What is {northeast Wales}?"),
    ("Ada Bell", HE, "Who met President {Bell}?"),
    ("Battle of Monte Lupo", IT, "What was near {Monte Lupo} and {Lupo}?"),
    ("Thames River", IT, "Where does the {Thames} rise?"),
    ("東京塔", "東京塔は赤い。", "{東京塔}の高さは?"),
    # Other names, and words that only sound like it, stay.
    ("Ada Bell", HE, "Who was Graham Bell's pupil?"),
    ("Ann Lee", HE, "Who lived in Annapolis and was sleeping?"),
    ("Ice Hockey League", f"{IT} It plays in a league.", "Which league has six teams?"),
    ("Kingdom of Ulm", IT, "Who ruled Ulm?"),
    ("Warsaw Castle", IT, "What stands in Warsaw by the river?"),
    ("Anne de Ruiter", HE, "Whose father was Karel de Ruiter?"),
    ("John Bell", HE, "Who led St. John's College?"),
    ("Ada Israel Bell", HE, "Who lived in Israel?"),
    ("North East Wales", IT, "Which part of Wales has coal?"),
    ("Us (film)", IT, "Who told us of it?"),
    ("Amber League", f"The Amber League (XY) is. {IT}", "Who won the XY?"),
    ("Pope Boniface V", HE, "Who was Pope from 619 to 625?"),
    ("Grace Rose", HE, "Who planted a rose with grace?"),
]


@pytest.mark.parametrize(("entity", "passage", "marked"), MASKED)
def test_names_are_masked_and_all_else_stays(entity: str, passage: str, marked: str) -> None:
    found = mask(re.sub("[{}]", "", marked), entity, passage)
    assert found.text == re.sub(r"\{[^}]+\}", HIDDEN, marked)
    assert len(found.leaks) == marked.count("{")


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("What is Hoy?", False),
        ("1. Hoy\n2. Hoy", False),
        ("", False),
        ("Which island of Orkney has the highest cliffs?", True),
    ],
)
def test_a_query_without_the_name_may_say_nothing(query: str, says: bool) -> None:
    assert mask(query, "Hoy", IT).says_something is says


NAMES = st.lists(st.text("abcdefgé", min_size=2, max_size=6), min_size=1, max_size=3).map(
    lambda words: " ".join(word.capitalize() for word in words)
)


@given(NAMES, st.text(max_size=40), st.text(max_size=40), st.sampled_from([HE, IT]))
def test_no_name_is_left(name: str, before: str, after: str, passage: str) -> None:
    found = mask(f"{before} {name} {after}", name, passage)
    assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", found.text.replace(HIDDEN, "|"))
    assert found.leaks


@given(st.text(max_size=80), NAMES)
def test_all_else_is_left_as_it_was(query: str, name: str) -> None:
    found = mask(query, name, HE)
    kept = iter(found.leaks)
    assert re.sub(re.escape(HIDDEN), lambda _: next(kept), found.text) == query or HIDDEN in query
    again = mask(found.text, name, HE)
    assert again.text == found.text or "hidden" in name.lower()


@given(st.text(max_size=80), st.text(max_size=30), st.text(max_size=80))
@example("", ":,0", "")  # Nothing precedes the comma.
def test_any_query_and_name_can_be_looked_at(query: str, name: str, passage: str) -> None:
    try:
        found = mask(query, name, passage)
    except ValueError:
        assert not any(map(str.isalnum, name))
    else:
        pieces = found.text.split(HIDDEN)
        assert len(pieces) == len(found.leaks) + 1 + query.count(HIDDEN)
        if HIDDEN not in query:
            rebuilt = "".join(a + b for a, b in zip(pieces, (*found.leaks, ""), strict=True))
            assert rebuilt == query
