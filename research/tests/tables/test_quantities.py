"""Test the quantities of supported claims, and planted errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from benches import made, row_of, values
from demur_research.bench import Bench, Result
from demur_research.datasets import read
from demur_research.datasets.rows import Answer, LabelledRow
from demur_research.recording import Recording
from demur_research.tables import quantities
from support.fakes import scripted
from support.shared import SHARED, shared

BRIDGES = [
    LabelledRow(
        str(at),
        None,
        (Answer(f"The bridge of town {at} is {at + 20} metres long.", at % 2 == 1),),
        contexts=(f"In town {at} there is a bridge. It is {at + 20} metres long.",),
    )
    for at in range(40)
]


def of(path: Path, **options: str) -> Result:
    sets = {"factcheck-bench": BRIDGES}
    options = {"sets": "factcheck-bench", **options}
    return made(quantities.QUANTITIES, path, scripted(""), sets, options=options)


def test_planted_quantities_are_caught_in_both_halves(tmp_path: Path) -> None:
    halves = [of(tmp_path / "r", half=half) for half in quantities.HALVES]
    counts = [row_of(found, "all").items or 0 for found in halves]
    assert sum(counts) == 20
    assert min(counts) > 0
    for found, count in zip(halves, counts, strict=True):
        assert values(found, "factcheck-bench") == [count, 0, count, 100]
        assert values(found, "every quantity") == [None, 100, None, 100]


def test_what_goes_wrong_is_told_where_it_is_asked_for(tmp_path: Path) -> None:
    wrong = quantities.count(quantities.SupportedClaim("It is 5 m long.", ("It is long.",)))
    assert wrong.flagged
    assert wrong.told[0].startswith("flagged")
    assert len(of(tmp_path / "r").notes) == len(of(tmp_path / "r", show="mistakes").notes)


@pytest.mark.slow
def test_the_quantities_of_public_claims_are_those_of_the_results() -> None:
    """Count public claims: Factcheck-Bench without its duplicate pairs, FEVER in other halves."""
    for folder in ("wice", "fool_me_twice", "summedits", "nli", "halueval"):
        shared(folder)
    bench = Bench(lambda name: read(name, SHARED), Recording(Path("none"), writes=False))
    found = quantities.QUANTITIES.make(bench)

    def counts(name: str) -> list[int]:
        row = row_of(found, name)
        stating, flagged, planted, caught = [figure.value for figure in row.figures]
        assert row.items is not None
        return [
            row.items,
            round(stating),
            round(flagged * row.items / 100),
            round(planted),
            round(caught * planted / 100),
        ]

    assert counts("wice") == [57, 37, 1, 35, 35]
    assert counts("halueval-qa") == [312, 56, 0, 56, 56]
    assert counts("fool-me-twice") == [171, 49, 4, 48, 45]
    assert counts("summedits") == [236, 93, 0, 78, 68]
    assert counts("factcheck-bench") == [181, 37, 17, 43, 43]
    assert counts("all") == [1151, 314, 24, 296, 283]
