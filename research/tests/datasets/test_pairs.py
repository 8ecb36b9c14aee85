"""Test that each claim with its texts counts once, and that a shared text makes a group."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur_research.datasets.pairs import CONTRADICTED, REPEATED, each_once, linked
from demur_research.datasets.rows import Answer, LabelledRow


def row(key: str, claim: str, label: str = "supported") -> LabelledRow:
    answer = Answer(claim, label != "supported", label=label)
    return LabelledRow(key=key, question=None, answers=(answer,), contexts=("A text.",))


@pytest.mark.parametrize("other", ["refuted", "partly supported"])
def test_a_pair_with_two_labels_is_left_out_whole(other: str) -> None:
    rows = [row("1", "a"), row("2", "b"), row("3", "a", other), row("4", "a")]
    reading = each_once(rows)
    assert [one.key for one in reading] == ["2"]
    assert dict(reading.left_out) == {CONTRADICTED: 3, REPEATED: 0}


TEXTS = st.sampled_from("abcdef")


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=12))
def test_groups_are_what_a_walk_from_pair_to_pair_reaches(pairs: list[tuple[str, str]]) -> None:
    groups = linked(pairs)

    def reached(start: int) -> set[int]:
        seen, ahead = {start}, [start]
        while ahead:
            here = pairs[ahead.pop()]
            new = {at for at in near(here) if at not in seen}
            seen |= new
            ahead += new
        return seen

    def near(here: tuple[str, str]) -> Iterator[int]:
        return (at for at, (one, two) in enumerate(pairs) if one == here[0] or two == here[1])

    for at in range(len(pairs)):
        assert {other for other, name in enumerate(groups) if name == groups[at]} == reached(at)
