"""Test sets of claims with their texts, in the forms of their publishers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demur_research.datasets import (
    factcheck_bench,
    fever_symmetric,
    fool_me_twice,
    read_set,
    summedits,
    wice,
)
from demur_research.datasets.catalogue import DataSet
from demur_research.datasets.rows import Reading
from publishers import dump
from support.shared import shared

WICE: dict[str, Any] = {
    "claim": "The bridge opened in 1901 and was painted red.",
    "label": "partially_supported",
    "evidence": ["# The bridge", "It opened in 1901.", "Contact us"],
    "supporting_sentences": [[1], [0, 1]],
    "meta": {"id": "dev1", "claim_title": "Old Bridge", "claim_section": "History."},
}
FEVER: dict[str, Any] = {
    "id": "70000002",
    "claim": "The lake is deep .",
    "evidence": "The lake is 200 m deep .",
    "gold_label": "SUPPORTS",
    "label": "SUPPORTS",
}
FACTCHECK: dict[str, Any] = {
    "claim": "Ann Lee wrote the song.",
    "evidence": "Ann Lee sang it.",
    "stance": "irrelevant",
}
SUMMEDITS: dict[str, Any] = {
    "id": "mail_1_0",
    "doc": "Dear Bo, we meet at nine.",
    "summary": "Bo is told of a meeting at ten.",
    "label": 0,
    "original_summary": "Bo is told of a meeting at nine.",
    "edit_types": ["entity_modification"],
    "split": "test",
}
FOOL_ME: dict[str, Any] = {
    "id": "x1",
    "text": "The film was never shown.",
    "label": "REFUTES",
    "gold_evidence": [{"section_header": "Release", "text": "It opened in May."}],
    "retrieved_evidence": [
        {"section_header": "Cast", "text": "Bo Ray plays a cook."},
        {"section_header": "Release", "text": "It opened in May."},
    ],
    "wikipedia_page": "A Film",
    "category": "Popular Culture",
    "total_votes": 3,
    "correct_votes": 1,
}


def read(known: DataSet, path: Path, rows: Any) -> Reading:
    return read_set(known, dump(path, rows))


def test_wice_has_the_page_as_the_context_and_keeps_each_annotators_choice(tmp_path: Path) -> None:
    other = {
        **WICE,
        "claim": "It is old.",
        "label": "supported",
        "meta": {**WICE["meta"], "id": "dev2"},
    }
    one, two = read(wice.DATA_SET, tmp_path / "dev.jsonl", [WICE, other])
    (answer,) = one.answers
    assert (one.key, one.question, one.group) == ("dev1", None, "Old Bridge")
    assert (answer.hallucinated, answer.label) == (True, "partially_supported")
    assert one.contexts == ("# The bridge\nIt opened in 1901.\nContact us",)
    assert one.metadata["supporting_sentences"] == [[1], [0, 1]]
    assert two.answers[0].hallucinated is False


def test_fever_symmetric_groups_pairs_that_share_a_text(tmp_path: Path) -> None:
    rows = [
        FEVER,
        {**FEVER, "id": "3", "claim": "The lake is flat .", "label": "REFUTES"},
        {**FEVER, "id": 4, "claim": "The lake is flat .", "evidence": "It is 1 m deep ."},
        {**FEVER, "id": "5", "claim": "Iron is a metal .", "evidence": "Iron is a metal ."},
    ]
    found = read(fever_symmetric.DATA_SET, tmp_path / "dev.jsonl", rows)
    assert [row.key for row in found] == ["70000002", "3", "4", "5"]
    assert [row.answers[0].hallucinated for row in found] == [False, True, False, False]
    first, second, third, alone = (row.group for row in found)
    assert first == second == third != alone


def test_factcheck_bench_takes_whole_support_alone_for_support(tmp_path: Path) -> None:
    stances = ["completely-support", "partially-support", "refute", "irrelevant"]
    rows = [{**FACTCHECK, "evidence": f"Text {stance}.", "stance": stance} for stance in stances]
    found = read(factcheck_bench.DATA_SET, tmp_path / "stance.jsonl", [*rows, rows[0]])
    answers = [row.answers[0] for row in found]
    assert [answer.hallucinated for answer in answers] == [False, True, True, True]
    assert [answer.label for answer in answers] == stances
    assert {row.group for row in found} == {FACTCHECK["claim"]}
    assert len({row.key for row in found}) == 4
    assert found.left_out["repeated pairs"] == 1


def test_summedits_is_read_from_a_file_for_each_domain_or_from_one_of_all(tmp_path: Path) -> None:
    known = summedits.DATA_SET
    (one,) = read(known, tmp_path / "summedits_sales_email.json", [SUMMEDITS])
    seed = SUMMEDITS["original_summary"]
    others = {name: SUMMEDITS[name] for name in ("id", "doc", "summary", "label", "edit_types")}
    of_all = {**others, "seed_summary": seed, "domain": "sales_email"}
    assert [one] == [*read(known, tmp_path / "summedits.json", [of_all])]
    assert one.key == "sales_email mail_1_0"
    assert (one.answers[0].hallucinated, one.answers[0].label) == (True, "inconsistent")
    assert one.metadata["domain"] == "sales_email"


def test_fool_me_twice_has_what_decides_first_and_each_sentence_once(tmp_path: Path) -> None:
    (one,) = read(fool_me_twice.DATA_SET, tmp_path / "dev.jsonl", [FOOL_ME])
    assert one.contexts == ("It opened in May.", "Bo Ray plays a cook.")
    assert (one.metadata["gold"], one.group) == (1, "A Film")
    assert one.answers[0].hallucinated is True


@pytest.mark.parametrize(
    ("known", "rows", "hallucinated", "left_out"),
    [
        (wice.DATA_SET, 349, 234, {}),
        (fever_symmetric.DATA_SET, 816, 410, {"repeated pairs": 4}),
        (
            factcheck_bench.DATA_SET,
            *(1_900, 1_533, {"repeated pairs": 119, "pairs with two labels": 11}),
        ),
        (summedits.DATA_SET, 1_387, 924, {"repeated pairs": 12}),
        (fool_me_twice.DATA_SET, 723, 357, {}),
    ],
    ids=lambda value: value.name if isinstance(value, DataSet) else "",
)
def test_the_publishers_rows_are_read(
    known: DataSet, rows: int, hallucinated: int, left_out: dict[str, int]
) -> None:
    found = read_set(known, shared())
    assert (len(found), sum(bool(row.answers[0].hallucinated) for row in found)) == (
        rows,
        hallucinated,
    )
    assert {why: count for why, count in found.left_out.items() if count} == left_out
    assert left_out.keys() <= known.filters.keys()
    assert all(row.contexts and row.group for row in found)
    assert sum(left_out.values()) + rows <= (known.published_rows or 0)
