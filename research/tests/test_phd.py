"""The tables of PHD, on a small set and on the publishers' records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demur_research.datasets.phd import read_passages, read_phd_records
from demur_research.detection import Ratio
from demur_research.phd import Row, table
from demur_research.replay import replay
from publishers import as_lines, published
from support.shared import shared


def rows(data: Path, records: Path, **options: Any) -> dict[tuple[str, str | None, str], Row]:
    passages = read_passages(data)
    judged = replay(passages, read_phd_records(records, passages))
    found = table(passages, judged, **options)
    by_name = {(row.method, row.matcher, str(row.domain)): row for row in found}
    assert len(by_name) == len(found)
    return by_name


def counts(row: Row) -> tuple[int, int, int, int]:
    found = row.figures.counts
    return found.tp, found.fp, found.fn, found.tn


def test_there_is_one_row_for_each_method_matcher_and_domain(tmp_path: Path) -> None:
    found = rows(*published(tmp_path))
    assert {key[2] for key in found} == {"all", "low", "medium", "high"}
    assert len(found) == 4 * (5 + 5 + 1)
    assert counts(found["qg", "published_qg", "all"]) == (2, 1, 1, 1)
    assert counts(found["qg", "published_qg", "high"]) == (1, 0, 1, 0)
    assert counts(found["all-false", None, "medium"]) == (0, 1, 0, 0)


def test_passages_that_nothing_is_decided_of_are_counted(tmp_path: Path) -> None:
    data, records = as_lines(tmp_path)
    lines = records.read_text(encoding="utf-8").splitlines(keepends=True)
    records.write_text("".join(lines[1:]), encoding="utf-8")
    found = rows(data, records)["qg", "llm", "all"]
    assert (found.undetermined, found.missing) == (1, 1)
    assert found.figures.counts.total == 3
    assert found.plain()["undetermined"] == 1


def test_f1_is_held_against_the_published_decision_on_the_same_replies(tmp_path: Path) -> None:
    found = rows(*as_lines(tmp_path))
    own, other = found["qg", "normalized", "all"], found["qg", "published_qg", "all"]
    assert own.over_published.value == pytest.approx(
        (own.figures.f1.value or 0) - (other.figures.f1.value or 0)
    )
    assert other.over_published == Ratio(None, None)
    assert found["all-false", None, "all"].over_published == Ratio(None, None)


def test_with_a_matcher_there_are_only_its_rows(tmp_path: Path) -> None:
    found = rows(*as_lines(tmp_path), matcher="published_em")
    assert {key[:2] for key in found} == {("em", "published_em")}


# The figures of the part that the workplace has, and of the whole benchmark as published.
PART, WHOLE = 187, 300


def test_the_publishers_records_give_the_published_figures() -> None:
    data = shared("official", "phd", "PHD_benchmark.json")
    found = rows(data, shared("official", "phd"))
    qg, em = found["qg", "published_qg", "all"], found["em", "published_em", "all"]
    if qg.figures.counts.total == WHOLE:
        assert figures(qg) == (52.3, 40.7, 73.1)
        assert figures(em) == (59.1, 48.0, 76.9)
        return
    assert qg.figures.counts.total == PART
    assert counts(qg) == (38, 56, 11, 82)
    assert counts(em) == (43, 43, 6, 95)
    assert counts(found["em", "exact", "all"]) == (42, 45, 7, 93)
    assert counts(found["all-false", None, "all"]) == (49, 138, 0, 0)
    f1 = [row.figures.f1.value or 0 for row in (qg, em, found["em", "exact", "all"])]
    assert [round(value, 2) for value in f1] == [53.15, 63.70, 61.76]


def test_chatgpts_recorded_replies_are_judged_as_before() -> None:
    found = rows(shared("phd", "phd.jsonl"), shared("phd", "records_chatgpt.jsonl"))
    assert counts(found["qg", "published_qg", "all"]) == (38, 56, 11, 82)
    assert counts(found["em", "published_em", "all"]) == (43, 43, 6, 95)
    assert counts(found["qg", "normalized", "all"]) == (37, 50, 12, 88)
    assert counts(found["em", "normalized", "all"]) == (41, 43, 8, 95)
    assert counts(found["em", "wikibio_name", "all"]) == (34, 39, 15, 99)
    assert counts(found["em", "llm", "all"]) == (32, 24, 17, 114)


def figures(row: Row) -> tuple[float, ...]:
    found = row.figures
    return tuple(round(one.value or 0, 1) for one in (found.f1, found.precision, found.recall))


@pytest.mark.slow
@pytest.mark.parametrize("of", ["phd/phd.jsonl", "official/phd/PHD_benchmark.json"])
def test_llama_2_gives_its_published_figures_too(of: str) -> None:
    found = rows(shared(*of.split("/")), shared("phd", "records_llama2_7b.jsonl"))
    qg, em = found["qg", "published_qg", "all"], found["em", "published_em", "all"]
    assert qg.figures.counts.total == PART
    f1 = [row.figures.f1.value or 0 for row in (qg, em)]
    assert [round(value, 2) for value in f1] == [50.57, 51.69]
