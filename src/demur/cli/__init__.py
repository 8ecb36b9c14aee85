"""Define the commands.

They are `check`, `score`, `compare`, `agree`, `diff`, `log`, `report`, `calibrate`, `demo`,
`models` and `judge`.

The exit codes are 0 passed, 1 failed, 2 undetermined or nothing to check, 64 wrong usage, 70 a
fault in demur itself, 130 interrupted, and 143 terminated (SIGTERM). A pipeline that asks "may this
answer go out?" can act on the exit code alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from demur import __version__
from demur.cli.agree import agree
from demur.cli.calibrate import calibrate
from demur.cli.check import check
from demur.cli.compare import compare
from demur.cli.console import need_subcommand, run_app
from demur.cli.demo import demo
from demur.cli.diff import diff
from demur.cli.judge import judge
from demur.cli.log import log
from demur.cli.models import models
from demur.cli.report import report
from demur.cli.score import score

app = typer.Typer(
    name="demur",
    help="Check generated answers against reference texts, claim by claim.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(check)
app.command()(score)
app.command()(compare)
app.command()(agree)
app.command()(diff)
app.add_typer(log, name="log")
app.command()(report)
app.command()(calibrate)
app.command()(demo)
app.add_typer(models, name="models")
app.add_typer(judge, name="judge")


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. No error is raised."""
    return run_app(app, "demur", argv)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if show_version:
        typer.echo(f"demur {__version__}")
        raise typer.Exit
    need_subcommand(context)
