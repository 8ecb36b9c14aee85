"""Test that recorded replies are judged as each matcher says."""

from __future__ import annotations

from pathlib import Path

import pytest

from demur_research.datasets import read
from demur_research.datasets.published import (
    CHATGPT,
    PHD_LISTS,
    Replies,
    Variant,
    find_records,
    read_records,
)
from demur_research.replay import lmvslm, replay, selfcheck, zero_shot
from publishers import as_lines

KEYS = [f"phd-{at}" for at in range(5)]
Said = tuple[dict[str, str], dict[str, Replies]]


@pytest.fixture
def said(tmp_path: Path) -> Said:
    data, records = as_lines(tmp_path)
    rows = read("phd", data).rows
    found = read_records(find_records(records, PHD_LISTS, CHATGPT), rows)
    return {row.key: str(row.metadata["entity"]) for row in rows}, dict(found.by_key)


@pytest.mark.parametrize(
    ("variant", "matcher", "expected"),
    [
        ("qg", "published_qg", [False, True, True, False, True]),
        ("qg", "exact", [False, True, True, False, True]),
        ("qg", "normalized", [False, True, False, False, True]),
        ("qg", "wikibio_name", [False, True, True, False, True]),
        # No model was asked about the first and the fourth, and it could not decide about the last.
        ("qg", "llm", [False, True, False, False, None]),
        ("em", "published_em", [False, True, False, True, False]),
        ("em", "exact", [True, True, False, True, False]),
        ("em", "llm", [False, True, False, True, False]),
    ],
)
def test_each_matcher_decides_as_it_should(
    said: Said, variant: Variant, matcher: str, expected: list[bool | None]
) -> None:
    verdicts = replay(*said, variant, matcher)
    assert [verdicts[key] for key in KEYS] == expected


def test_the_other_methods_decide_as_was_recorded(said: Said) -> None:
    _, records = said
    # The published results reject an answer that is called neither correct nor incorrect.
    assert [lmvslm(records)[key] for key in KEYS] == [False, True, False, True, False]
    assert set(zero_shot(records).values()) == {False}
    assert [selfcheck(records)[key] for key in KEYS] == [0.0, 0.1, 0.2, 0.3, 0.4]


def test_the_least_percentage_is_for_entity_matching_alone(said: Said) -> None:
    def changed(variant: Variant, matcher: str) -> bool:
        return replay(*said, variant, matcher, 80) != replay(*said, variant, matcher, 90)

    assert changed("em", "exact")
    assert not changed("em", "published_em")
    assert not changed("qg", "exact")


def test_a_name_is_matched_as_its_record_has_it() -> None:
    found = {"a": Replies(id="a", entity='"Bob Ray ', qg_answer="Bob Ray.")}
    assert replay({"a": "Bob Ray"}, found, "qg", "published_qg") == {"a": True}
    found = {"a": Replies(id="a", qg_answer="Bob Ray.")}
    assert replay({"a": "Bob Ray"}, found, "qg", "published_qg") == {"a": False}
