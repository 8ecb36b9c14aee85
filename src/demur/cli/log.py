"""Run `demur log`: list, summarise and export what handlers and guards have recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, TypeVar, get_args

import typer

from demur.cli import console, logged
from demur.cli.options import json_option
from demur.observe import Record
from demur.observe.log import (
    EVERY,
    By,
    Damaged,
    Filters,
    Log,
    LogError,
    LoggedAnswer,
    answered,
    delivered,
    export_csv,
    find,
    labels_of_attempts,
    open_log,
    read_labels,
    records,
    summarise,
    worst,
)
from demur.schema import Finding
from demur.views import plural, terminal

_Entry = TypeVar("_Entry", Record, LoggedAnswer)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_TIME = (
    "such as 2026-11-20 or 2026-11-20T10:00 (UTC, unless it has an offset), "
    "or an age: 30m, 24h, 7d."
)

log = typer.Typer(
    help="List, summarise and export what handlers and guards have recorded. Days and times are "
    "UTC. docs/observe.md explains the log, and how to query it with SQL.",
    rich_markup_mode=None,
)

_Where = Annotated[
    str,
    typer.Argument(
        metavar="LOG", help="A file (SQLite, or JSON lines), or postgresql://user@host/database."
    ),
]
_Evaluator = Annotated[str | None, typer.Option(help="Runs that this evaluator judged.")]
_Finding = Annotated[
    str | None, typer.Option(help=f"Runs with this finding: {', '.join(get_args(Finding))}.")
]
_Model = Annotated[str | None, typer.Option(help="Runs in which this chat model answered.")]
_Since = Annotated[str | None, typer.Option(help=f"Runs that ended at this time or later, {_TIME}")]
_Until = Annotated[str | None, typer.Option(help="Runs that ended before this time.")]
_Text = Annotated[
    str | None,
    typer.Option(help="Runs with this text in the question or the answer, in upper or lower case."),
]
_Json = Annotated[bool, json_option("JSON, one run on each line")]


@log.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    console.need_subcommand(context)


@log.command("list")
def list_runs(
    where: _Where,
    last: Annotated[
        int, typer.Option("-n", "--last", min=0, help="The number of newest runs to list.")
    ] = 20,
    evaluator: _Evaluator = None,
    finding: _Finding = None,
    model: _Model = None,
    since: _Since = None,
    until: _Until = None,
    text: _Text = None,
    as_json: _Json = False,
) -> int:
    """List the newest runs; the newest is last.

    With --json, each run is printed completely, so that the output is a log again. Exit codes: 0,
    also if no run is found, 2 the log cannot be read, 64 wrong usage.
    """
    filters = _filters(evaluator, finding, model, since, until, text)
    with _opened(where) as opened:
        runs = [*_readable(opened, records(opened, filters, last))]
        if as_json:
            _print(runs)
        else:
            logged.show_list(console.output(), runs)
        _say_if_none(opened, len(runs), filters)
    return console.PASSED


@log.command()
def show(
    where: _Where,
    id: Annotated[str, typer.Argument(metavar="ID", help="The beginning of the run's id.")],
    as_json: _Json = False,
) -> int:
    """Show one run: every attempt, every claim with its evidence, and what a guard did."""
    with _opened(where) as opened:
        record = find(opened, id)
        if as_json:
            _print([record])
        else:
            terminal.show_run(console.output(), record)
    return console.PASSED


@log.command()
def summary(
    where: _Where,
    by: Annotated[
        str | None,
        typer.Option(help="What to group by: evaluator, model, day, separated by commas."),
    ] = None,
    evaluator: _Evaluator = None,
    finding: _Finding = None,
    model: _Model = None,
    since: _Since = None,
    until: _Until = None,
    text: _Text = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="A file that says which answers are hallucinated: CSV or JSON lines with the "
            "fields id (or run), hallucinated and attempt. The summary then says what users got "
            "with the guard, and what they would have got without it.",
        ),
    ] = None,
    as_json: _Json = False,
) -> int:
    """Show how often first answers fail, before any recovery of a guard, and what they cost."""
    filters = _filters(evaluator, finding, model, since, until, text)
    told_apart = _by(by)
    with _opened(where) as opened:
        totals = summarise(opened, filters, told_apart)
        got = None
        if labels is not None:
            first = read_labels(labels)
            judged = answered(opened, filters, labels=first)
            got = delivered(_readable(opened, judged), labels_of_attempts(labels))
            if (others := len(first) - sum(got["with the guard"].values())) > 0:
                belong = plural(others, "label belongs", "labels belong")
                terminal.say(console.errors(), f"{belong} to no guard's call here")
        if as_json:
            told = {**logged.as_json(totals, told_apart), "users_got": got}
            console.print_json({"log": opened.name, **told})
        elif totals.runs:
            logged.show_totals(console.output(), totals, told_apart)
            if got is not None:
                logged.show_delivered(console.output(), got)
        _say_if_none(opened, totals.runs, filters)
    return console.PASSED


@log.command("worst")
def worst_runs(
    where: _Where,
    most: Annotated[
        int, typer.Option("-n", "--most", min=1, help="The number of runs to show.")
    ] = 10,
    evaluator: _Evaluator = None,
    finding: _Finding = None,
    model: _Model = None,
    since: _Since = None,
    until: _Until = None,
    text: _Text = None,
    as_json: _Json = False,
) -> int:
    """Show the worst first answers, with the evidence against them."""
    filters = _filters(evaluator, finding, model, since, until, text)
    with _opened(where) as opened:
        runs = [*_readable(opened, worst(opened, filters, most))]
        if as_json:
            _print(runs)
        else:
            for record in runs:
                terminal.show_worst(console.output(), record, evaluator)
        _say_if_none(opened, len(runs), filters)
    return console.PASSED


@log.command()
def export(
    where: _Where,
    out: Annotated[
        Path, typer.Argument(metavar="OUT.csv", dir_okay=False, help="The new file to write.")
    ],
    evaluator: _Evaluator = None,
    finding: _Finding = None,
    model: _Model = None,
    since: _Since = None,
    until: _Until = None,
    text: _Text = None,
) -> int:
    """Write a table for spreadsheets, with a row for each evaluation.

    A spreadsheet would run texts that begin with =, +, -, @, a tab or a line break. Such texts get
    a ' in front.
    """
    filters = _filters(evaluator, finding, model, since, until, text)
    with _opened(where) as opened:
        try:
            rows, damaged = export_csv(opened, out, filters)
            console.say_left_out(opened.name, damaged)
        except FileExistsError as error:
            message = terminal.one_line(f"{out} exists: name a new file")
            raise typer.BadParameter(message, param_hint="OUT.csv") from error
        except OSError as error:
            raise LogError(f"cannot write {out}: {error.strerror or error}") from error
        terminal.say(console.output(), terminal.one_line(f"{rows:,} rows written to {out}"))
        _say_if_none(opened, rows, filters)
    return console.PASSED


# --- What is asked --------------------------------------------------------------------------------


def _filters(
    evaluator: str | None,
    finding: str | None,
    model: str | None,
    since: str | None,
    until: str | None,
    text: str | None,
) -> Filters:
    now = datetime.now(timezone.utc)
    try:
        return Filters(
            evaluator=evaluator,
            finding=finding,  # type: ignore[arg-type]  # it is checked there
            model=model,
            since=_time("--since", since, now),
            until=_time("--until", until, now),
            text=text,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _time(option: str, text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    try:
        if age := re.fullmatch(r"(\d+)([smhdw])", text.strip()):
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        time = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text.strip()))
        return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError) as error:
        message = terminal.one_line(f"expected a time {_TIME[:-1]}; got {text!r}")
        raise typer.BadParameter(message, param_hint=option) from error


def _by(text: str | None) -> tuple[By, ...]:
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    known = {str(part): part for part in get_args(By)}
    for part in parts:
        if part not in known:
            message = f"expected some of {', '.join(known)}, separated by commas; got {part!r}"
            raise typer.BadParameter(message, param_hint="--by")
    return tuple(known[part] for part in parts)


# --- What is answered -----------------------------------------------------------------------------


@contextmanager
def _opened(where: str) -> Iterator[Log]:
    with console.errors().status("reading the log"):  # a log of JSON lines takes a while
        opened = open_log(where)
    with opened, console.pipe_may_close():
        console.say_left_out(opened.name, opened.damaged)
        yield opened


def _readable(opened: Log, entries: Iterable[_Entry | Damaged]) -> Iterator[_Entry]:
    """Yield the runs that can be read, and name the others at the end."""
    damaged = []
    for entry in entries:
        if isinstance(entry, Damaged):
            damaged.append(entry)
        else:
            yield entry
    console.say_left_out(opened.name, damaged)


def _print(runs: Iterable[Record]) -> None:
    for record in runs:
        typer.echo(console.escaped(record.as_json()))


def _say_if_none(opened: Log, number: int, filters: Filters) -> None:
    if not number:
        among = "is in it yet" if filters == EVERY else "matches"
        terminal.say(console.errors(), f"{terminal.one_line(opened.name)}: no run {among}")
