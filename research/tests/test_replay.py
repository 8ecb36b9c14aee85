"""Replies replies are judged as each matcher says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur_research.datasets.phd import read_passages, read_phd_records
from demur_research.datasets.published import Exchange
from demur_research.replay import KNOWN, Judging, chosen, first_percentage, replay
from demur_research.replay import rejected as rejected_by
from publishers import as_lines


@pytest.fixture
def judged(tmp_path: Path) -> dict[tuple[str, str | None], Judging]:
    data, records = as_lines(tmp_path)
    passages = read_passages(data)
    found = replay(passages, read_phd_records(records, passages), selfcheck=0.2)
    assert len({(one.method, one.matcher) for one in found}) == len(found)
    return {(one.method, one.matcher): one for one in found}


def rejected(one: Judging) -> list[bool | None]:
    return [one.verdicts[f"phd-{at}"] for at in range(5)]


@pytest.mark.parametrize(
    ("method", "matcher", "expected"),
    [
        ("qg", "published_qg", [False, True, True, False, True]),
        ("qg", "exact", [False, True, True, False, True]),
        ("qg", "normalized", [False, True, False, False, True]),
        ("qg", "wikibio_name", [False, True, True, False, True]),
        # Nobody was asked about the first and the fourth; of the last the model could not tell.
        ("qg", "llm", [False, True, False, False, None]),
        ("em", "published_em", [False, True, False, True, False]),
        ("em", "exact", [True, True, False, True, False]),
        ("em", "llm", [False, True, False, True, False]),
        ("all-false", None, [True] * 5),
        # What says neither correct nor incorrect is a rejection in the published results.
        ("lmvslm", None, [False, True, False, True, False]),
        ("zero-shot", None, [False] * 5),
        ("selfcheck-bertscore", None, [False, False, False, True, True]),
    ],
)
def test_each_method_decides_as_it_should(
    judged: dict[tuple[str, str | None], Judging],
    method: str,
    matcher: str | None,
    expected: list[bool | None],
) -> None:
    assert rejected(judged[method, matcher]) == expected


def test_a_published_decision_reads_only_its_own_variant(
    judged: dict[tuple[str, str | None], Judging],
) -> None:
    assert ("qg", "published_em") not in judged
    assert ("em", "published_qg") not in judged


def test_the_least_percentage_is_for_entity_matching_alone(tmp_path: Path) -> None:
    data, records = as_lines(tmp_path)
    passages = read_passages(data)
    joined = read_phd_records(records, passages)
    at = {
        least: {
            (one.method, one.matcher): rejected(one)
            for one in replay(passages, joined, percentage=least)
        }
        for least in (80, 90)
    }
    assert at[80]["em", "exact"] != at[90]["em", "exact"]
    assert at[80]["em", "published_em"] == at[90]["em", "published_em"]
    assert at[80]["qg", "exact"] == at[90]["qg", "exact"]
    assert ("selfcheck-bertscore", None) not in at[80]


@pytest.mark.parametrize(
    ("reply", "share"),
    [
        ("X meets 90% of it, Y 66.67 %.", 0.9),
        ("85,5% of it", 0.855),
        ("80 percent, or 70 per cent", 0.8),
        ("\uff18\uff10\uff05", 0.8),
        ("about 80-90%", 0.9),
        ("250%", 1.0),
        # As the published decision has it: what is not given is not asked for.
        ("all 8 criteria", 1.0),
        ("5 percentages", 1.0),
        ("9" * 500 + "%", 1.0),
        ("", 1.0),
    ],
)
def test_of_a_recorded_reply_the_first_percentage_anywhere_counts(reply: str, share: float) -> None:
    assert first_percentage(reply) == share


@given(st.text())
def test_the_first_percentage_of_any_text_is_a_share(reply: str) -> None:
    assert 0 <= first_percentage(reply) <= 1


def test_without_a_share_a_name_that_is_the_right_one_decides_nothing() -> None:
    said = Exchange("Entity: Hoy", None)
    assert rejected_by("Hoy", said, "em", "normalized", 80, None) is None
    assert rejected_by("Skye", said, "em", "normalized", 80, None) is True
    assert rejected_by("Hoy", said, "em", "published_em", 80, None) is False
    assert rejected_by("Hoy", said, "qg", "normalized", 80, None) is False


def test_one_matcher_can_be_chosen(judged: dict[tuple[str, str | None], Judging]) -> None:
    every = list(judged.values())
    assert chosen(every, None) == every
    assert [one.method for one in chosen(every, "exact")] == ["qg", "em"]
    with pytest.raises(ValueError, match="unknown matcher 'fuzzy': expected one of exact, ") as no:
        chosen(every, "fuzzy")
    assert all(name in str(no.value) for name in KNOWN)


def test_what_nobody_asked_cannot_be_chosen(tmp_path: Path) -> None:
    data, records = as_lines(tmp_path)
    text = records.read_text(encoding="utf-8")
    for said in ('"No."', '"Yes."', '"I cannot tell."'):
        text = text.replace(f'_is_same": {said}', '_is_same": null')
    records.write_text(text, encoding="utf-8")
    passages = read_passages(data)
    found = replay(passages, read_phd_records(records, passages))
    assert "llm" not in {one.matcher for one in found}
    with pytest.raises(ValueError, match="the records hold no reply that 'llm' decides on"):
        chosen(found, "llm")
