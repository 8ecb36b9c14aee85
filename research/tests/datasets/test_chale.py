"""Test CHALE in both of its forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_sets import reading
from publishers import dump

LISTS: dict[str, list[str]] = {
    "Question": ["who made it", "where is it", "what is it", "when was it"],
    "Short_ans": ["Ann", "in Oslo", "a boat", "1910"],
    "Long_ans": ["<P> Ann made it . </P>", "It is in Oslo .", "A boat .", "In 1910 ."],
    "non-halu": ["Ann made it .", "in Oslo , see <Li> it", "a boat .", "1910 ."],
    "mid-halu": ["Bob , a maker .", "There .", "a car .", "It was in 1910 , not 1912 ."],
    "halu": ["A tree .", "Up .", "a car .", "Blue ."],
}
NAMES = ["question", "short_answer", "long_answer", "non_hallu", "half_hallu", "hallu"]


def _lines() -> list[dict[str, str]]:
    rows = zip(*LISTS.values(), strict=True)
    return [{"id": f"c-{at}", **dict(zip(NAMES, row, strict=True))} for at, row in enumerate(rows)]


@pytest.mark.parametrize("form", ["lists", "lines"])
def test_answers_are_read_with_their_labels_and_filters_are_counted(
    tmp_path: Path, form: str
) -> None:
    if form == "lists":
        path = dump(tmp_path / "hallucinated_ans_final_filtered.json", LISTS)
    else:
        path = dump(tmp_path / "chale.jsonl", _lines())
    found = reading("chale", path)
    assert [row.question for row in found] == ["who made it", "when was it"]
    assert [row.key for row in found] == (["1", "4"] if form == "lists" else ["c-0", "c-3"])
    assert [(one.name, one.hallucinated, one.text) for one in found.rows[0].answers] == [
        ("non_hallu", False, "Ann made it ."),
        ("half_hallu", True, "Bob , a maker ."),
        ("hallu", True, "A tree ."),
    ]
    assert found.rows[0].metadata == {
        "short_answer": "Ann",
        "long_answer": "<P> Ann made it . </P>",
    }
    assert found.left_out == {"markup": 1, "half equals hallu": 1}
    assert found.kept == {"short answer in a wrong one": 1}
