"""Test the units of an answer: every form of text, with places that stay right."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur._text import word_set
from demur.evaluators.refchecker.assertion import states_nothing
from demur.evaluators.refchecker.units import units


def texts(answer: str) -> list[str]:
    return [unit.text for unit in units(answer)]


def places(answer: str) -> list[str]:
    return [answer[unit.start : unit.end] for unit in units(answer)]


@pytest.mark.parametrize(
    ("answer", "expected", "stands"),
    [
        ("Oslo is old. It is big.", ["Oslo is old.", "It is big."], None),
        ("Oslo is old [1]. It is big [2, 3].", ["Oslo is old.", "It is big."], None),
        ("**Oslo** is old. (Source: 2)", ["Oslo is old."], ["**Oslo** is old."]),
        ("- Oslo\n- Bergen", ["Oslo", "Bergen"], ["Oslo", "Bergen"]),
        ("# Norway\n\nIt is a kingdom.", ["It is a kingdom."], None),
        ("# Norway", ["Norway"], None),
        ("# Closed: Mondays\n\nIt is big.", ["Closed: Mondays", "It is big."], None),
        ("# Closed today\n\nIt is big.", ["It is big."], None),
        ("# Closed today\n\nI do not know.", ["Closed today", "I do not know."], None),
        ("# Answer\n\nI do not know.", ["I do not know."], None),
        ("42. That is how many there are.", ["42. That is how many there are."], None),
        ("A. Smith founded the mill.", ["A. Smith founded the mill."], None),
        (
            "Its rivers are:\n- Alna\n- Lo",
            ["Its rivers are: Alna", "Its rivers are: Lo"],
            ["Its rivers are:\n- Alna", "Lo"],
        ),
        ("Here is what I found:\n- Alna", ["Alna"], None),
        # An announcement of another announcement is not lost.
        (
            "The tower burned down in 1851:\nIts parts are:\n- a gate",
            ["The tower burned down in 1851: Its parts are: a gate"],
            ["The tower burned down in 1851:\nIts parts are:\n- a gate"],
        ),
        ("| The tower burned down |\n|---|", ["| The tower burned down |"], None),
        ("```The tower burned down\nx\n```", ["```The tower burned down", "x"], None),
        (
            "| City | People |\n|---|---:|\n| Oslo | 700,000 |\n| Bergen [1] | |",
            ["City: Oslo; People: 700,000", "City: Bergen"],
            ["| Oslo | 700,000 |", "| Bergen [1] | |"],
        ),
        (
            "Sort it:\n\n```python\nx.sort()\nprint(x)\n```\nThat is all.",
            ["Sort it: x.sort()\nprint(x)", "That is all."],
            ["Sort it:\n\n```python\nx.sort()\nprint(x)", "That is all."],
        ),
        ('```json\n{"a": 1}\n```', ["a: 1"], ["1"]),
        ("东京是首都。它有两条河。", ["东京是首都。", "它有两条河。"], None),
        ("दिल्ली राजधानी है। वहाँ एक नदी है।", ["दिल्ली राजधानी है।", "वहाँ एक नदी है।"], None),
        ("", [], None),
        ("--- *** ...", [], None),
    ],
)
def test_an_answer_in_its_units(answer: str, expected: list[str], stands: list[str] | None) -> None:
    assert texts(answer) == expected
    if stands is not None:
        assert places(answer) == stands


def test_a_json_answer_is_its_values_with_their_paths() -> None:
    answer = json.dumps(
        {
            "capital": "Oslo",
            "largestRivers": ["Alna", "Lo"],
            "mayor": {"name": 'Ann "A." Berg', "since": 2019, "elected": True, "party": None},
            "note": "Oslo is old. It has a port.",
        },
        indent=1,
    )
    assert texts(answer) == [
        "capital: Oslo",
        "largest Rivers: Alna",
        "largest Rivers: Lo",
        'mayor, name: Ann "A." Berg',
        "mayor, since: 2019",
        "mayor, elected: true",
        "Oslo is old.",
        "It has a port.",
    ]
    assert places(answer)[3:6] == ['Ann \\"A.\\" Berg', "2019", "true"]
    assert units(answer)[-1].after == "Oslo is old."


@pytest.mark.parametrize("answer", ["{not json", '{"a": 1} and more', "[1] says so", "[" * 100_000])
def test_what_only_begins_like_json_is_text(answer: str) -> None:
    for unit in units(answer):
        assert answer[unit.start : unit.end]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.dictionaries(st.text(), JSON))
def test_every_value_of_json_that_says_something_stands_in_one_unit(data: dict[str, Any]) -> None:
    def values(of: Any) -> list[str]:
        if isinstance(of, dict):
            return [text for value in of.values() for text in values(value)]
        if isinstance(of, list):
            return [text for value in of for text in values(value)]
        return [] if of is None else [of if isinstance(of, str) else json.dumps(of)]

    answer = json.dumps(data, ensure_ascii=False)
    said = word_set(" ".join(unit.said for unit in units(answer)))
    for value in values(data):
        # Citations and marks of emphasis do not count as said.
        if value.isalnum():
            assert word_set(value) <= said


@given(st.text())
def test_any_text_has_units_in_order_within_it(answer: str) -> None:
    end = 0
    for unit in units(answer):
        assert end <= unit.start < unit.end <= len(answer)
        assert any(map(str.isalnum, unit.said))
        end = unit.end


@given(st.lists(st.sampled_from("Oslo is old. It, up:\n - 1. 2) | ``` *a* [1] ").map(str)))
def test_no_word_falls_between_the_units(pieces: list[str]) -> None:
    answer = "".join(pieces)
    found = units(answer)
    said = word_set(" ".join(f"{unit.text} {unit.said}" for unit in found))
    numbered = re.findall(r"(?m)^[ \t]*(\d{1,3})[.)][ \t]", answer)
    numbers = frozenset(numbered if len(numbered) > 1 else ())
    for start, end in _gaps(found, len(answer)):
        if states_nothing(answer[start:end]):  # such as "So." in front of a statement
            continue
        words = {word for word in word_set(answer[start:end]) if len(word) > 1}
        assert words <= said | numbers


def _gaps(found: Any, length: int) -> list[tuple[int, int]]:
    ends = [0, *(unit.end for unit in found)]
    return list(zip(ends, [*(unit.start for unit in found), length], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["a. ", "| a ", "```\n", "- a\n", "a:\n", "[1]", "# a\n", "{", '"']
)
def test_a_long_answer_takes_no_time_by_its_square(piece: str) -> None:
    units(piece * 20_000)  # In quadratic time this takes longer than a test may.
