"""Test that nothing that is evaluated is trained on, and which rows a pass shows."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur_research.recipe.deduplicating import (
    CLAIM_EVALUATED,
    PASSAGES_EVALUATED,
    REPEATED,
    deduplicated,
    read_evaluated,
    split,
)
from demur_research.recipe.drawing import Item, batches, drawn
from demur_research.recipe.mixing import mixed
from demur_research.recipe.rows import Own, TrainingRow


def words(start: int, number: int) -> str:
    return " ".join(f"word{at}" for at in range(start, start + number))


def row(passages: str, claim: str = "The mill is by the river.") -> TrainingRow:
    return TrainingRow(passages, claim, "support", "x")


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    path = tmp_path / "evaluation.jsonl"
    line = {"passages": words(0, 200), "claim": "Anna Sund built a ferry.", "supported": True}
    path.write_text(json.dumps(line) + "\n" + json.dumps({**line, "claim": "In 1912."}))
    return path


def test_a_row_is_dropped_for_its_claim_its_passages_or_because_it_is_repeated(
    evaluation: Path,
) -> None:
    found = [
        row("Other text.", "anna sund built  a FERRY"),
        # 100 words have 91 runs. 25 words of the evaluation have 16, which are more than 15 %.
        row(f"{words(0, 25)} {words(1000, 75)}"),
        row("Other text."),
        row("Other text!"),
        row("Other text.", "In 1912."),  # too short to be more than alike by chance
        row(f"{words(0, 22)} {words(1000, 78)}"),  # 13 runs, 14 %
        row(words(0, 11)),  # two runs, of which many texts have one
    ]
    kept = deduplicated(found, read_evaluated([evaluation]))
    assert kept.dropped == {CLAIM_EVALUATED: 1, PASSAGES_EVALUATED: 1, REPEATED: 1}
    assert list(kept.rows) == [found[2], *found[4:]]


def test_without_evaluation_rows_only_repetitions_are_dropped() -> None:
    kept = deduplicated([row("A text."), row("A text."), row("B text.")], read_evaluated([]))
    assert (len(kept.rows), kept.dropped) == (2, {REPEATED: 1})


def test_rows_about_the_same_passages_are_on_the_same_side() -> None:
    found = [row(f"Text {at}.", f"Claim {of} of it.") for at in range(600) for of in range(3)]
    train, held = split(found, one_in=20)
    assert not {one.passages for one in train} & {one.passages for one in held}
    assert len(train) + len(held) == len(found)
    assert 0.02 < len(held) / len(found) < 0.09
    assert split(found[:300], one_in=20)[1] == [one for one in found[:300] if one in held]


def test_your_own_documents_alone_give_rows() -> None:
    text = "The mill was built in 1912. It belongs to Anna Sund. Its wheel is made of oak wood."
    kept = mixed([], [Own((row(text),), (text,))], 2, read_evaluated([]), 0)
    assert {one.source for one in kept.rows} == {"x", "made-own", "worlds"}


# -- drawing ---------------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.floats(0.01, 3.0))
def test_a_row_is_drawn_as_often_as_its_weight_says(seed: int, weight: float) -> None:
    one = TrainingRow(words(0, 400), "The mill is old.", "support", "x", weight=weight)
    found = drawn([one] * 200, random.Random(seed))
    assert set(found) <= {one}
    assert abs(len(found) / 200 - weight) < 0.2


def test_passages_of_other_rows_stand_around_some_short_ones() -> None:
    found = [row(f"Text {at}.", f"Claim {at}.") for at in range(100)]
    shown = drawn(found, random.Random(1))
    distracted = [one for one in shown if "\n\n" in one.passages]
    assert 5 < len(distracted) < 50
    for one in distracted:
        assert f"Text {one.claim.split()[1]}" in one.passages


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=200),
    st.integers(50, 500),
    st.integers(0, 100),
)
def test_batches_hold_each_item_once_and_are_not_too_large(
    lengths: list[int], most: int, seed: int
) -> None:
    items = [Item([at] * length, "support") for at, length in enumerate(lengths)]
    found = list(batches(items, most, random.Random(seed)))
    assert sorted(item.tokens[0] for batch in found for item in batch) == [*range(len(items))]
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(len(item.tokens) for item in batch) <= most
