"""Test the claims that passages disagree about: are they as many, and as varied, as it takes?"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from demur_research.texts import disputes
from demur_research.texts.disputes import disputed_claims

CLAIMS = disputed_claims()
KEYS = ("id", "language", "kind", "question", "passages", "pair", "claim", "contested", "held_out")


def test_the_file_has_its_keys_in_order() -> None:
    path = Path(disputes.__file__).with_suffix(".jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert {tuple(row) for row in rows} == {KEYS}


@pytest.mark.parametrize(("held_out", "least"), [(False, 140), (True, 80)])
@pytest.mark.parametrize("contested", [True, False])
def test_each_half_has_as_many_disputes_as_others(
    held_out: bool, contested: bool, least: int
) -> None:
    half = [one for one in CLAIMS if (one.held_out, one.contested) == (held_out, contested)]
    assert len(half) == least
    languages = Counter(one.language for one in half)
    assert set(languages) == {"en", "de", "es", "fr", "ja"}
    assert min(languages.values()) >= 0.1 * least
    assert len({one.kind for one in half}) >= 8


def test_no_claim_or_id_is_there_twice() -> None:
    assert len({one.claim for one in CLAIMS}) == len({one.id for one in CLAIMS}) == len(CLAIMS)


def test_a_third_of_the_disputes_and_of_the_others_hangs_on_no_number() -> None:
    for contested in (True, False):
        side = [one for one in CLAIMS if one.contested is contested]
        assert sum(not re.search(r"\d", one.claim) for one in side) >= len(side) / 3


def test_the_numbers_of_a_claim_stand_in_its_pair() -> None:
    strange = [
        one.id
        for one in CLAIMS
        for number in re.findall(r"\d+", one.claim)
        if not any(number in one.passages[at] for at in one.pair) and number not in one.question
    ]
    assert len(strange) <= 0.03 * len(CLAIMS)  # a time or a unit may be written otherwise


@pytest.mark.parametrize("pair", [(0, 0), (0, 9), (-1, 0)])
def test_a_pair_that_is_none_is_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="expected two different indices"):
        replace(CLAIMS[0], pair=pair)
