"""Share what all commands need: exit codes, consoles, tables and error messages."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from demur._system import write_whole
from demur._text import replace_surrogates
from demur.errors import DemurError
from demur.observe.log import Damaged
from demur.views import terminal

PASSED, FAILED, UNDECIDED, USAGE, FAULT, INTERRUPTED = 0, 1, 2, 64, 70, 130

# Newer versions of typer contain a copy of click; older ones depend on it. The error class is
# reached through a class that both export: BadParameter < UsageError < ClickException.
_ClickError: Any = typer.BadParameter.__mro__[2]

_MOST_TOLD = 20
"""The number of unreadable runs that are named one by one."""

# Characters that JSON need not escape, but that may control a terminal.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def run_app(app: typer.Typer, name: str, argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code. No error is raised.

    Args:
        app: The commands.
        name: The name of the command that the user typed.
        argv: The arguments; by default those of the process.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        command = typer.main.get_command(app)
        code = command.main(args=arguments, prog_name=name, standalone_mode=False)
        return code if isinstance(code, int) else PASSED
    except _ClickError as error:
        error.show()
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except DemurError as error:
        complain(str(error))
        return UNDECIDED
    except Exception:
        complain(f"this is a fault in demur:\n{traceback.format_exc()}")
        return FAULT


def need_subcommand(context: typer.Context) -> None:
    """Show the help and exit if a group of commands is called without a command."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE)


def output() -> Console:
    """Return the console for results: standard output."""
    return Console(highlight=False)


def errors() -> Console:
    """Return the console for everything else: standard error."""
    return Console(stderr=True, highlight=False)


def complain(message: str) -> None:
    """Print what went wrong, to standard error."""
    terminal.say(errors(), "demur:", terminal.harmless(message), style="bold red")


def reason(error: Exception) -> str:
    """Return what is wrong with an argument, without the text that pydantic adds around it."""
    details = getattr(error, "errors", None)
    if not callable(details):
        return str(error)
    return "; ".join(str(detail["msg"]).removeprefix("Value error, ") for detail in details())


def escaped(text: str) -> str:
    """Return JSON in which characters that may control a terminal are written as escapes."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def print_json(values: Mapping[str, Any]) -> None:
    """Print one line of JSON, in which an object is its fields."""
    typer.echo(escaped(json.dumps(values, default=vars)))


def line(console: Console, cells: Iterable[str]) -> None:
    """Print cells with tabs between them, for another program."""
    console.file.write("\t".join(map(terminal.one_line, cells)) + "\n")  # rich's print expands tabs


def table(
    console: Console,
    names: Sequence[str],
    figures: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    whole: Collection[str] = (),
    padding: int = 1,
) -> None:
    """Print a table on a terminal, or lines with tabs in a pipe.

    Args:
        console: The console to print to.
        names: The heads of the first columns, which say what a row is about.
        figures: The heads of the other columns, which are aligned to the right.
        rows: The cells of each row.
        whole: The columns that are never wrapped.
        padding: The number of blanks beside a column, on a terminal.
    """
    if not console.is_terminal:
        for row in [[*names, *figures], *rows]:
            line(console, row)
        return
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, padding))
    for name in names:
        grid.add_column(name, no_wrap=name in whole, max_width=40)
    for figure in figures:
        grid.add_column(figure, justify="right", no_wrap=figure in whole)
    for row in rows:
        grid.add_row(*(Text(terminal.one_line(cell)) for cell in row))
    console.print(grid)


def say_left_out(log: str, damaged: Sequence[Damaged]) -> None:
    """Print which runs of a log cannot be read, and why."""
    lines = [f"{run.place} is left out: {run.why}" for run in damaged[:_MOST_TOLD]]
    if len(damaged) > _MOST_TOLD:
        rest = len(damaged) - _MOST_TOLD
        lines.append(f"{rest:,} more are left out, to {damaged[-1].place}")
    for line in lines:
        terminal.say(errors(), terminal.one_line(f"{log}, {line}"))


def may_write(
    pages: Iterable[Path | None],
    *read: Path | None,
    force: bool = True,
    option: str | None = None,
) -> None:
    """Refuse to write a page over a file that is read, and over any file without `force`."""
    for page in filter(None, pages):
        message = f"{page} exists: replace it with --force, or name another file with -o"
        if any(one and one.resolve() == page.resolve() for one in read):
            message = f"it would replace a file that is read, {page}: name another"
        elif force or not os.path.exists(page):  # Path.exists raises where access is denied
            continue
        raise typer.BadParameter(terminal.one_line(message), param_hint=option)


def write_page(page: Path, text: str) -> None:
    """Write a text to a file, completely or not at all."""
    try:
        write_whole(page, replace_surrogates(text).encode())
    except OSError as error:
        raise DemurError(f"cannot write {page}: {error.strerror or error}") from error


@contextlib.contextmanager
def pipe_may_close() -> Iterator[None]:
    """Continue if nobody reads the output any more: the exit code still gives the verdict."""
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich turns BrokenPipeError into SystemExit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
