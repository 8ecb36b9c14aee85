"""Test whether the windows that are read hold what supports a claim."""

from __future__ import annotations

from pathlib import Path

from benches import made, values
from demur_research.datasets.rows import Answer, LabelledRow
from demur_research.tables import windows
from support.fakes import scripted


def cites(count: int) -> list[LabelledRow]:
    """Return `count` claims, each with a page of which two sentences support it and many do not."""
    rows = []
    for at in range(count):
        padding = [f"Street {at * 100 + number} is quiet." for number in range(40)]
        support = [f"The mill of ward {at} is tall.", f"The mill of ward {at} burnt down."]
        told = {
            "evidence": [support[0], *padding, support[1]],
            "supporting_sentences": [[0, 41], [41]] if at else [[]],
        }
        answer = Answer(f"The tall mill of ward {at} burnt down.", not at)
        rows.append(LabelledRow(str(at), None, (answer,), metadata=told))
    return rows


def test_claims_whose_support_is_read_are_counted_by_the_number_of_windows(tmp_path: Path) -> None:
    sets, options = {"wice": cites(30)}, {"pages": "30"}
    found = made(windows.WINDOWS, tmp_path / "r", scripted(""), sets, options=options)
    assert found.columns[0].head == "max_windows=1, %"
    assert values(found, "3,000 tokens, one claim") == [100] * 4
    assert [row.items for row in found.rows] == [29] * 6
    first, *_, last = values(found, windows.IN_ORDER)
    assert first is not None
    assert last is not None
    assert first < last
    assert first < 50


def test_support_that_stands_in_no_passage_that_is_read_is_not_found(tmp_path: Path) -> None:
    rows = cites(6)
    rows[3].metadata["evidence"][41] = "Elsewhere. " * 20_000
    found = made(
        windows.WINDOWS, tmp_path / "r", scripted(""), {"wice": rows}, options={"pages": "6"}
    )
    assert values(found, "3,000 tokens, one claim") == [80] * 4
