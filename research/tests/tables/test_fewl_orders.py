"""Test what each order of premise and hypothesis misses."""

from __future__ import annotations

from pathlib import Path

from benches import made, row_of
from colours import chale, knowing
from demur_research.tables import TABLES


def test_each_order_misses_what_the_other_sees(path: Path) -> None:
    result = made("fewl-orders", path, knowing(), {"chale": chale()})
    assert not TABLES["fewl-orders"].asks

    def words(name: str) -> list[float]:
        figures = row_of(result, name).figures[:2]
        return [one.value for one in figures if one is not None and one.value is not None]

    # "red . It is painted ." and "blue . It was found ." have four words each, and share one.
    assert words("the right one, then a wrong one") == [1, 0.625]
    assert words("the right one's first half") == [0.5, 1]
    assert words("a wrong one") == [0.25, 0.25]
    assert result.rows[0].items == 4
