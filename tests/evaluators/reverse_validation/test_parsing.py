"""Test that the replies of stages 1 and 2 are read in the forms that models write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.evaluators.reverse_validation.parsing import (
    Built,
    parse_entity,
    parse_question,
    parse_requirements,
    parse_unmet,
)

QUESTIONS = [
    ("two lines", "Entity: Hoy\nQuestion: Which island is it?", "Hoy", "Which island is it?"),
    ("markup", "**Entity:** Hoy\n**Question:** *Which island?*", "Hoy", "Which island?"),
    ("announced", "Sure! Here it is:\n\nWhich island is it?", None, "Which island is it?"),
    ("writes on", "Question: Which one?\n\nAnswer: Hoy", None, "Which one?"),
    ("on two lines", "Question: Which island\nis it?", None, "Which island is it?"),
    ("no question mark", "Question: Name the island.", None, "Name the island."),
    ("none", "Entity: none", "none", ""),
    ("chatter", "I cannot do that.", None, ""),
]

LISTS = [
    ("numbered", "1. Red\n2. Heavy", "1. Red\n2. Heavy"),
    ("bullets", "- Red\n* Heavy\n\u2022 Old", "1. Red\n2. Heavy\n3. Old"),
    ("announced", "The features of it:\n\n1. Red", "1. Red"),
    ("bold", "1. **Red**\n**2. Heavy**", "1. Red\n2. Heavy"),
    # The publishers' script for a small model lost every item with a digit in it.
    ("digits", "1. Founded in 1904\n2. 3.5 km long", "1. Founded in 1904\n2. 3.5 km long"),
    ("empty items", "1.\n2. Red", "1. Red"),
    ("nested", "1. Four:\n\t* Red\n\t* Old\n2. Big", "1. Four: Red; Old\n2. Big"),
    ("left out", "1. Red\n\nIt does not say:\n\n1. Old", "1. Red"),
    ("an item that ends so", "1. Not red:\n2. Old", "1. Not red:\n2. Old"),
    ("a second list", "1. Red\n\nAnd of the other:\n\n1. Old", "1. Red\n2. Old"),
    ("no list", "It is red and heavy.", ""),
]

REQUIREMENTS = "1. Red\n2. Heavy\n3. Old"
UNMET = [
    ("a number", "Not met: 2", ("Heavy",)),
    ("and", "**Not met:** 1 and 3.", ("Red", "Old")),
    ("a range", "Not met: 1-3", ("Red", "Heavy", "Old")),
    ("on lines", "Not met:\n1. Red\n3. Old", ("Red", "Old")),
    ("in words", "Unmet requirements: it is not that old", ("it is not that old",)),
    ("none", "Not met: None.", ()),
    ("no number of the list", "Not met: 0", ()),
    ("not said", "It meets all.", ()),
    ("except", "It meets all requirements except for its weight. So 67%.", ("its weight",)),
    ("fails", "X does not meet requirements 1 and 3.", ("Red", "Old")),
    ("fails something", "It does not meet the needs of all.", ()),
]


@pytest.mark.parametrize(
    ("reply", "entity", "query"), [case[1:] for case in QUESTIONS], ids=[c[0] for c in QUESTIONS]
)
def test_questions(reply: str, entity: str | None, query: str) -> None:
    assert parse_question(reply) == Built(entity, query)


@pytest.mark.parametrize(
    ("reply", "expected"), [case[1:] for case in LISTS], ids=[case[0] for case in LISTS]
)
def test_lists(reply: str, expected: str) -> None:
    assert parse_requirements(reply) == Built(None, expected)
    assert parse_requirements(f"Entity: Hoy\n{reply}") == Built("Hoy", expected)


def test_the_last_item_of_a_reply_that_was_cut_is_left_out() -> None:
    assert parse_requirements("1. Red\n2. Hea", truncated=True).query == "1. Red"
    assert parse_requirements("1. Red and hea", truncated=True).query == "1. Red and hea"


@pytest.mark.parametrize(
    ("said", "expected"),
    [("none", "none"), ("None.", "none"), ("SEVERAL", "several"), ("Hoy", "one"), (None, "one")],
)
def test_how_many_entities(said: str | None, expected: str) -> None:
    assert Built(said, "").entities == expected


@pytest.mark.parametrize(
    ("reply", "expected"), [case[1:] for case in UNMET], ids=[case[0] for case in UNMET]
)
def test_unmet(reply: str, expected: tuple[str, ...]) -> None:
    assert parse_unmet(reply, REQUIREMENTS) == expected


@pytest.mark.parametrize(
    ("reply", "name"),
    [
        ("Entity: Hoy\nPercentage: 90%", "Hoy"),
        ("**Entity:** *Hoy* - Percentage: 90%", "Hoy"),
        ("Entity: 50 Cent", "50 Cent"),
        ("Entity: 7% Solution\nPercentage: 75%", "7% Solution"),
        ("Entity: The Seven-Per-Cent Solution (7%)", "The Seven-Per-Cent Solution"),
        ("Entity: 80%\n\nIt is Hoy.", None),
        ("Entity:  Percentage:\n\nHoy - 80%", None),
        ("", None),
    ],
)
def test_the_entity_of_stage_2(reply: str, name: str | None) -> None:
    assert parse_entity(reply) == name


FEATURES = st.lists(
    st.text("abcdefg 0123456789", min_size=1, max_size=20).map(str.strip).filter(bool),
    min_size=1,
    max_size=9,
    unique_by=lambda text: " ".join(text.split()),
)


@given(FEATURES, st.data())
def test_what_is_listed_is_read_back_and_can_be_named_by_number(
    features: list[str], data: st.DataObject
) -> None:
    features = [" ".join(one.split()) for one in features]
    reply = "\n".join(f"{at}. {one}" for at, one in enumerate(features, start=1))
    read = parse_requirements(reply)
    assert read.query == reply
    places = data.draw(st.lists(st.sampled_from(range(len(features))), min_size=1, unique=True))
    said = f"Not met: {', '.join(str(at + 1) for at in places)}"
    assert parse_unmet(said, read.query) == tuple(features[at] for at in places)


@given(st.text())
def test_any_reply_can_be_read(reply: str) -> None:
    parse_question(reply)
    parse_entity(f"Entity: {reply}")
    for line in parse_requirements(reply).query.splitlines():
        assert line.partition(". ")[2].strip()
    parse_unmet(reply, REQUIREMENTS)
    parse_unmet(f"Not met: {reply}", REQUIREMENTS)
