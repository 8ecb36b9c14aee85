"""Define the command line `demur-bench`, which has the exit codes of `demur`."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from demur.cli.console import need_subcommand, run_app
from demur_research.commands import building, datasets, training
from demur_research.commands import tables as of_tables
from demur_research.tables import TABLES

app = typer.Typer(
    name="demur-bench",
    help="Repeat published experiments, and measure judges on public data.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(of_tables.tables)
app.command()(datasets.datasets)
app.add_typer(building.app, name="build")
app.add_typer(training.app, name="train")
for table in TABLES.values():
    app.command(table.name)(of_tables.command(table))


@app.callback(invoke_without_command=True)
def _top(context: typer.Context) -> None:
    need_subcommand(context)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code, also after an error: nothing is raised."""
    return run_app(app, "demur-bench", argv)
