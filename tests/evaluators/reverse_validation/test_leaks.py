"""Test that an entity's name is found in a query in all its forms, and nothing else is."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demur.evaluators.reverse_validation.leaks import HIDDEN, mask, stands_in

HE = "He was born in a small town, where his father kept a shop."
IT = "It was founded long ago and is known in all the country."

MASKED = [
    ("the name", "Ada Bell", IT, "Who knew Ada Bell best?", "Who knew [hidden] best?"),
    ("another case", "Ada Bell", IT, "Where is ADA BELL buried?", "Where is [hidden] buried?"),
    ("no diacritics", "Emperor Ōjin", IT, "When did Emperor Ojin rule?", "When did [hidden] rule?"),
    ("diacritics", "Muhlegg", IT, "What did Mühlegg win?", "What did [hidden] win?"),
    ("a possessive", "Hoy", IT, "What is Hoy's highest hill?", "What is [hidden]'s highest hill?"),
    ("a plural", "Desmothoracid", IT, "Where do desmothoracids live?", "Where do [hidden] live?"),
    ("no qualifier", "Metis (myth)", IT, "Metis was a Titaness.", "[hidden] was a Titaness."),
    (
        "an acronym in brackets",
        "Big Research Programme (BRP)",
        IT,
        "What did BRP pay for?",
        "What did [hidden] pay for?",
    ),
    (
        "initials",
        "Object Group Board",
        IT,
        "What does the OGB decide?",
        "What does the [hidden] decide?",
    ),
    (
        "no article",
        "The Gold Pan",
        IT,
        "Who sang of Gold Pan first?",
        "Who sang of [hidden] first?",
    ),
    ("a comma", "Otto, Count of Ulm", HE, "Otto ruled Ulm.", "[hidden] ruled Ulm."),
    ("turned", "Smith, John", HE, "Where was John Smith born?", "Where was [hidden] born?"),
    ("a family name", "Ada Bell", HE, "What did Bell invent?", "What did [hidden] invent?"),
    ("a first name", "Ada Bell", HE, "What did Ada invent?", "What did [hidden] invent?"),
    ("the last word", "Tower Bridge Fund", IT, "Fund of 1890", "[hidden] of 1890"),
    ("items", "Ada Bell", HE, "1. Ada Bell\n2. Bell's house", "1. [hidden]\n2. [hidden]'s house"),
    (
        "a passage's acronym",
        "Amber League",
        f"The Amber League (AL) is small. {IT}",
        "Who won the AL in 1990?",
        "Who won the [hidden] in 1990?",
    ),
    (
        "an abbreviation",
        "Amber League",
        f"Amber League (abbr. AMLE) is small. {IT}",
        "Who won the AMLE?",
        "Who won the [hidden]?",
    ),
    ("small letters", "Body mass index", IT, "What is a good BMI?", "What is a good [hidden]?"),
    ("no hyphen", "North-East Wales", IT, "What is northeast Wales?", "What is [hidden]?"),
    ("initials with dots", "J. R. Bell", HE, "What did J.R. Bell do?", "What did [hidden] do?"),
    ("behind a title", "Ada Bell", HE, "Who met President Bell?", "Who met President [hidden]?"),
    ("a foundation", "Ada Bell", HE, "Who runs the Bell Trust?", "Who runs the [hidden] Trust?"),
    ("a house", "Ada Bell", HE, "Who opened Bells of Ulm?", "Who opened [hidden] of Ulm?"),
    (
        "what it is named after",
        "Battle of Monte Lupo",
        IT,
        "What was near Monte Lupo and Lupo?",
        "What was near [hidden] and [hidden]?",
    ),
    ("a bracket", "Ada Bell (born 1901)", HE, "Ada Bell (born 1901) ran", "[hidden] ran"),
    ("a river", "Thames River", IT, "Where does the Thames rise?", "Where does the [hidden] rise?"),
    ("Japanese", "東京塔", "東京塔は赤い。", "東京塔の高さは?", "[hidden]の高さは?"),
]

KEPT = [
    ("another name", "Ada Bell", HE, "Who was Graham Bell's pupil?"),
    ("a longer word", "Ann Lee", HE, "Who lived in Annapolis and was sleeping?"),
    (
        "an ordinary word",
        "Ice Hockey League",
        f"{IT} It plays in a league.",
        "Which league has six teams?",
    ),
    ("a lone place", "Kingdom of Ulm", IT, "Who ruled Ulm?"),
    ("a first word that is a place", "Warsaw Castle", IT, "What stands in Warsaw by the river?"),
    ("a relative", "Anne de Ruiter", HE, "Whose father was Karel de Ruiter?"),
    ("a relative's initials", "Ada Bell", HE, "Whose brother was Graham F. Bell?"),
    ("a saint", "John Bell", HE, "Who led St. John's College?"),
    ("a middle name", "Ada Israel Bell", HE, "Who lived in Israel?"),
    ("a larger place", "North East Wales", IT, "Which part of Wales has coal?"),
    ("a word before the last", "Just another Perl hacker", IT, "Who says it of Perl?"),
    ("a small word", "Us (film)", IT, "Who told us of it?"),
    ("another era", "ERA (baseball)", IT, "Who played in the golden era?"),
    ("a strange acronym", "Amber League", f"The Amber League (XY) is. {IT}", "Who won the XY?"),
    ("a title", "Pope Boniface V", HE, "Who was Pope from 619 to 625?"),
    ("a number", "Alexander II", HE, "Who fought in World War II?"),
    ("lower case", "Grace Rose", HE, "Who planted a rose with grace?"),
]


@pytest.mark.parametrize(
    ("entity", "passage", "query", "expected"),
    [case[1:] for case in MASKED],
    ids=[case[0] for case in MASKED],
)
def test_a_name_is_masked(entity: str, passage: str, query: str, expected: str) -> None:
    found = mask(query, entity, passage)
    assert found.text == expected
    assert len(found.leaks) == expected.count(HIDDEN)
    assert all(leak in query for leak in found.leaks)


@pytest.mark.parametrize(
    ("entity", "passage", "query"), [case[1:] for case in KEPT], ids=[case[0] for case in KEPT]
)
def test_what_is_no_name_stays(entity: str, passage: str, query: str) -> None:
    found = mask(query, entity, passage)
    assert (found.text, found.leaks) == (query, ())


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


def test_whether_a_name_stands_in_a_text() -> None:
    assert stands_in("John Smith", "Who was Smith, John?")
    assert stands_in("The Émile", "emile was there")
    assert not stands_in("John Smith", "Who was John?")
    assert not stands_in("The", "the")
    assert not stands_in("?!", "what?!")


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
