"""The table of WikiBio, on a small set and on the publishers' records."""

from __future__ import annotations

from pathlib import Path

import pytest

from demur_research.datasets.wikibio import read_biographies, read_wikibio_records
from demur_research.wikibio import Row, table
from publishers import biographies
from support.shared import shared


def rows(data: Path, records: Path) -> dict[tuple[str, str | None], Row]:
    passages = read_biographies(data)
    found = table(passages, read_wikibio_records(records, passages))
    by_name = {(row.method, row.matcher): row for row in found}
    assert len(by_name) == len(found)
    return by_name


def test_rejected_passages_are_counted_with_the_least_wrong_of_them(tmp_path: Path) -> None:
    found = rows(*biographies(tmp_path))
    own = found["qg", "wikibio_name"]
    assert (own.passages, own.rejected, own.missing, own.undetermined) == (3, 2, 1, 0)
    assert own.accuracy.value == pytest.approx(200 / 3)
    assert own.min_ratio == 25
    assert found["all-false", None].accuracy.value == 100
    assert ("qg", "llm") not in found
    assert own.plain()["matcher"] == "wikibio_name"


def test_where_nothing_is_rejected_nothing_is_the_least_wrong(tmp_path: Path) -> None:
    data, folder = biographies(tmp_path)
    one = folder / "wiki_bio_qg_record.json"
    one.write_text(
        one.read_text(encoding="utf-8")
        .replace('"Eve."', '"Bob Ray"')
        .replace("Nobody.", "Cy Dent"),
        encoding="utf-8",
    )
    found = rows(data, folder)["qg", "exact"]
    assert (found.rejected, found.accuracy.value, found.min_ratio) == (0, 0.0, None)


def test_what_the_recorded_replies_give_is_near_the_paper() -> None:
    found = rows(shared("wikibio_gpt3", "wikibio.jsonl"), shared("wikibio_gpt3"))
    paper = {
        ("qg", "wikibio_name"): 74.2,
        ("em", "published_em"): 67.2,
        ("lmvslm", None): 29.8,
        ("zero-shot", None): 0.0,
    }
    for name, accuracy in paper.items():
        interval = found[name].accuracy.interval
        assert interval is not None
        assert interval[0] <= accuracy <= interval[1]
    assert found["zero-shot", None].min_ratio is None
