"""Test that this distribution's page lists everything in order, and that the README links to it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from demur_research.commands import app
from demur_research.datasets import DATA_SETS
from demur_research.tables import TABLES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "demur-bench.md"
README = ROOT / "research" / "README.md"
SITE = "https://demur-dev.github.io/demur/"


def _table(head: str) -> list[str]:
    """Return the rows of the table that begins with this line."""
    _, _, below = PAGE.read_text(encoding="utf-8").partition(f"\n{head}\n")
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


@pytest.mark.parametrize("path", [PAGE, README], ids=["page", "README"])
def test_every_command_is_one(path: Path) -> None:
    lines = re.findall(r"^demur-bench .+$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) >= 3
    whole: Any = typer.main.get_command(app)
    for line in lines:
        words, command = shlex.split(line)[1:], whole
        context = command.make_context("demur-bench", [], resilient_parsing=True)
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        # This raises an error for an unknown option.
        command.make_parser(context).parse_args(args=words)
