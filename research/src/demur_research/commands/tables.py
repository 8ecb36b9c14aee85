"""Define a command for each table, with the options for its data, recording, model and output.

Every model call of a table is recorded. After a stop, the same command goes on. With `--replay`,
the command makes the table again without a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from demur.cli import progress
from demur.cli.console import escaped, output, pipe_may_close
from demur.cli.console import table as print_table
from demur.recording import Recording
from demur.views import terminal
from demur_research import showing
from demur_research.bench import Bench, Result, Table
from demur_research.commands.options import (
    RECORDING,
    AtOnce,
    DataPath,
    Model,
    RecordingPath,
    Replay,
    Seed,
    attempt,
    opened,
    say,
)
from demur_research.datasets import DATA_SETS, read
from demur_research.datasets.rows import Reading
from demur_research.tables import NOT_RUN, TABLES


class Format(str, Enum):
    """List the formats that a table can be printed in."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    json = "json"


def command(table: Table) -> Callable[..., None]:
    """Return the function that typer makes the table's command of."""

    def run(
        data: DataPath = None,
        recording: RecordingPath = RECORDING,
        replay: Replay = False,
        model: Model = "local",
        limit: Annotated[
            int | None, typer.Option(min=1, help="The greatest number of items of each kind.")
        ] = None,
        at_once: AtOnce = 1,
        seed: Seed = 0,
        option: list[str] | None = None,
        form: Annotated[
            Format, typer.Option("--format", help="The format of the printed table.")
        ] = Format.table,
    ) -> None:
        options = attempt(lambda: _options(table, option or ()), "--option")
        readings: dict[str, Reading] = {}

        with _calls(table, recording, replay) as calls, progress.counts() as report:

            @cache
            def reading(name: str) -> Reading:
                found = attempt(lambda: read(name, data, report), "--data")
                readings[name] = found
                return found

            bench = Bench(
                reading,
                calls,
                model,
                limit,
                at_once,
                seed,
                options,
                lambda what, done, of: None if replay else report(what, table.name, done, of),
            )
            result = attempt(lambda: table.make(bench), f"demur-bench {table.name}")
            attempt(lambda: _refuse_undecided(calls, result), "--replay")
        told = replace(result, notes=(*result.notes, *_of_data(readings)))
        with pipe_may_close():
            _show(table, told, form)

    run.__doc__ = f"{table.what}\n\nSource: {table.source}."
    # `table` is not known where the annotations of `run` are evaluated, so this one is set here.
    typer_option = typer.Option("-O", "--option", metavar="NAME=VALUE", help=_options_help(table))
    run.__annotations__["option"] = Annotated[list[str] | None, typer_option]
    return run


def _options_help(table: Table) -> str:
    if not table.options:
        return "This table has no options of its own."
    return "; ".join(f"{name}: {meaning}" for name, meaning in table.options.items())


def _options(table: Table, given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in table.options:
            known = ", ".join(table.options) or "none"
            raise ValueError(f"expected NAME=VALUE with a name of {known}, got {text!r}")
        found[name] = value
    return found


def _calls(table: Table, path: Path, replay: bool) -> AbstractContextManager[Recording]:
    return opened(path, replay) if table.asks else nullcontext(Recording(path, writes=False))


def _refuse_undecided(recording: Recording, result: Result) -> None:
    """Refuse a replay that could decide nothing because the recording is of something else."""
    # Rows that ask no model, such as floors, are always decided.
    asked = [row for row in result.rows if row.undetermined or row.spent is not None]
    if recording.lacking and asked and not any(row.items for row in asked):
        held = Counter(call.model for call in recording.calls.values())
        replies = ", ".join(f"{count:,} of {name}" for name, count in held.items()) or "none"
        raise ValueError(
            f"nothing could be decided: {recording.path} lacks {len(recording.lacking):,} replies "
            f"or vectors that were asked for (replies that it holds: {replies}). Record them, "
            "without --replay, or replay with the data, the options, the version of demur and the "
            "DEMUR_SECRET of the recording"
        )


def _show(table: Table, result: Result, form: Format) -> None:
    if form is Format.json:
        typer.echo(escaped(showing.as_json(table.name, result)))
    elif form is Format.csv:
        typer.echo(showing.as_csv(result), nl=False)
    elif form is Format.markdown:
        typer.echo(f"{table.what} ({table.source})\n\n{showing.as_markdown(result)}")
    else:
        terminal.say(output(), f"{table.source}: {table.what}")
        print_table(output(), ["row"], showing.heads(result)[1:], showing.cells(result))
        for note in result.notes:
            say(note)


def _of_data(readings: Mapping[str, Reading]) -> Iterator[str]:
    """Yield a note for each data set: how many rows were read, and what the set cannot show."""
    for name, found in readings.items():
        known = DATA_SETS[name]
        of = f" of {known.published_rows:,}" if known.published_rows else ""
        counted = (
            _counted("left out", found.left_out),
            _counted("kept", found.kept),
            _counted("missing", {"files": len(found.missing)}),
        )
        told = "; ".join([f"{len(found):,} rows{of}", *filter(None, counted)])
        yield f"{known.title}: {told}. Cannot show: {known.cannot_show}"


def _counted(what: str, counts: Mapping[str, int]) -> str:
    """Return the counts above 0 with their names, or an empty text if there is none."""
    some = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"{what}: {some}" if some else ""


def tables() -> None:
    """List every table and figure of the papers: what can be run, and why the others cannot."""
    rows = [
        [table.name, table.source, table.what, ", ".join(table.sets) or "-"]
        for table in TABLES.values()
    ]
    rows += [["-", one.source, f"{one.what} Not run: {one.why}", "-"] for one in NOT_RUN]
    with pipe_may_close():
        print_table(output(), ["command", "source"], ["what it shows", "data"], rows)
