"""Test the claims with worked-out figures: they are as many and as varied as a measure needs."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from demur_research.texts import figures
from demur_research.texts.figures import FORMS, OPERATIONS, WorkedOut, worked_out_claims

CLAIMS = worked_out_claims()
GROUPS = {one.passage_id: one for one in CLAIMS}
KEYS_OF_A_GROUP = ("id", "language", "form", "passages", "held_out")
KEYS_OF_A_CLAIM = ("id", "text", "operation", "claim", "figure", "right", "supported", "question")
# A space belongs to a number where three digits follow it: "1 250" in French.
NUMBER = re.compile(r"\d+(?:[.,:]\d+|[ \u00a0\u202f]\d{3}(?!\d))*")


def stands(figure: str, passage: str) -> bool:
    numbers = set(NUMBER.findall(figure))
    if numbers:
        return numbers <= set(NUMBER.findall(passage))
    return figure.casefold() in passage.casefold()


def test_the_file_has_passages_first_and_its_keys_in_order() -> None:
    path = Path(figures.__file__).with_suffix(".jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == [*GROUPS, *(one.id for one in CLAIMS)]
    assert {tuple(row) for row in rows[: len(GROUPS)]} == {KEYS_OF_A_GROUP}
    assert {tuple(row) for row in rows[len(GROUPS) :]} == {KEYS_OF_A_CLAIM}


def test_there_are_enough_claims_in_each_language() -> None:
    languages = Counter(one.language for one in CLAIMS)
    assert set(languages) == {"en", "de", "es", "fr", "ja"}
    assert languages["en"] >= 100
    assert min(languages.values()) >= 25


@pytest.mark.parametrize("by", ["operation", "language", "form", "held_out"])
def test_exactly_half_are_wrong_of_each_operation_language_form_and_half(by: str) -> None:
    right, not_right = (
        Counter(getattr(one, by) for one in CLAIMS if one.supported is supported)
        for supported in (True, False)
    )
    assert right == not_right


def test_those_set_apart_and_the_others_hold_every_operation_language_and_form() -> None:
    for held_out in (False, True):
        half = [one for one in CLAIMS if one.held_out is held_out]
        assert len(half) >= 120
        operations = Counter(one.operation for one in half)
        assert set(operations) == set(OPERATIONS)
        assert min(operations.values()) >= 8
        assert {one.form for one in half} == set(FORMS)
        assert {one.language for one in half} == {one.language for one in CLAIMS}


def test_about_a_third_of_the_groups_has_each_common_form() -> None:
    forms = Counter(one.form for one in GROUPS.values())
    assert min(forms[form] for form in ("sentences", "list", "table")) >= 0.25 * len(GROUPS)
    assert forms["data"] >= 4
    assert sum(len(one.passages) > 1 for one in GROUPS.values()) >= 4


def test_two_to_four_claims_share_their_passages() -> None:
    assert set(Counter(one.passage_id for one in CLAIMS).values()) <= {2, 3, 4}


def test_no_claim_is_there_twice() -> None:
    assert len({one.claim for one in CLAIMS}) == len(CLAIMS)


def test_few_wrong_claims_are_wrong_in_their_direction_alone() -> None:
    wrong = [one for one in CLAIMS if not one.supported]
    turned = [one for one in wrong if one.figure == one.right]
    assert {one.operation for one in turned} == {"difference", "change"}
    assert len(turned) <= 0.1 * len(wrong)


def test_no_figure_stands_in_its_passages() -> None:
    assert [one.id for one in CLAIMS if stands(one.figure, one.passage)] == []
    assert [one.id for one in CLAIMS if stands(one.right, one.passage)] == []


def test_a_number_stands_only_where_all_its_digits_do() -> None:
    assert stands("29 kg", "It weighs 29 kg.")
    assert not stands("29", "It weighs 129 kg, or 29.5 with the lid.")
    assert stands("1 250", "Prix : 1 250 €")
    assert not stands("1 hour and 45 minutes", "From 1 to 2:45.")
    assert stands("Half", "It is half full.")


def test_the_passage_is_all_passages() -> None:
    one = next(one for one in CLAIMS if len(one.passages) > 1)
    assert one.passage == "\n\n".join(one.passages)


CLAIM = WorkedOut(
    id="x-1",
    passage_id="x",
    language="en",
    form="sentences",
    operation="product",
    passages=("A chair costs 4 €.",),
    claim="Two chairs cost 8 €.",
    figure="8",
    right="8",
    supported=True,
    held_out=False,
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operation": "root"}, "unknown operation"),
        ({"form": "poem"}, "unknown form"),
        ({"passages": ()}, "has no passage"),
        ({"claim": "Two are dear."}, "does not stand in the claim just once"),
        ({"claim": "They cost 8 €, yes, 8 €."}, "does not stand in the claim just once"),
        ({"right": "9"}, "expected the right figure '9'"),
    ],
)
def test_a_claim_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CLAIM, **changes)
