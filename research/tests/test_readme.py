"""The page of this distribution lists what there is, in its order."""

from __future__ import annotations

from pathlib import Path

from demur_research.datasets import DATA_SETS
from demur_research.tables import TABLES

_PAGE = Path(__file__).parents[1] / "README.md"


def _table(head: str) -> list[str]:
    """The rows of the table that begins with this line."""
    _, _, below = _PAGE.read_text(encoding="utf-8").partition(f"\n{head}\n")
    rows, _, _ = below.partition("\n\n")
    return rows.splitlines()[1:]


def test_every_table_is_listed_in_its_order() -> None:
    expected = [
        f"| `{table.name}` | {table.source} | {table.what} | {'yes' if table.asks else 'no'} |"
        for table in TABLES.values()
    ]
    assert _table("| command | source | what it shows | asks a model |") == expected


def test_every_data_set_is_listed_in_its_order() -> None:
    expected = [
        f"| `{known.name}` | {known.title} | {known.level} | "
        f"{'?' if known.published_rows is None else format(known.published_rows, ',')} |"
        for known in DATA_SETS.values()
    ]
    assert _table("| set | title | labels of each | rows |") == expected
