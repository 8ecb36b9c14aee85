"""Test which words of a name may stand for the whole name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.evaluators.reverse_validation.parts import parts

CASES = [
    ("Ada Bell", True, ["ada", "bell"]),
    ("Ada Israel Bell", True, ["ada", "bell"]),  # A middle name alone is another person's.
    ("Ada Bell Jr.", True, ["ada", "bell"]),
    ("Pope Boniface V", True, ["boniface"]),
    ("Ada of Ulm", True, ["ada"]),
    ("Anne de Ruiter", True, ["anne", "ruiter"]),
    ("Warsaw Castle", False, ["castle"]),
    ("The Gold Pan", False, ["pan"]),
    ("Palma de Ulm", False, ["palma"]),
    ("Kingdom of Ulm", False, ["kingdom"]),
    ("Battle of Monte Lupo", False, ["lupo"]),
    ("The Adventures of Miro", False, ["miro"]),
    ("Lake Baikal", False, ["baikal"]),
    ("Thames River", False, ["thames"]),
    ("North East Wales", False, []),
    ("Just another Perl hacker", False, []),
    ("Condition number", False, []),
    ("The", False, []),
    ("", True, []),
]


@pytest.mark.parametrize(("name", "person", "found"), CASES)
def test_parts(name: str, person: bool, found: list[str]) -> None:
    assert parts(name, person) == found


@given(st.text(max_size=60), st.booleans())
def test_of_any_name_there_are_two_parts_at_most(name: str, person: bool) -> None:
    found = parts(name, person)
    assert len(found) <= (2 if person else 1)
    assert len(set(found)) == len(found)
