"""`demur log`: what handlers and guards have recorded."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from demur.cli import logged
from demur.cli.console import PASSED, errors, escaped, output, pipe_may_close, say_left_out
from demur.guard import TraceOutcome
from demur.observe import Record
from demur.observe.log import (
    EVERY,
    By,
    Damaged,
    Filters,
    Following,
    Log,
    LogError,
    export,
    find,
    open_log,
    records,
    select,
    summarise,
    worst,
)
from demur.schema import Finding
from demur.views import terminal

_LAST = 20
_POLL_SECONDS = 0.5
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_TIME = (
    "such as 2026-11-20 or 2026-11-20T10:00 (UTC, unless it has an offset), "
    "or an age: 30m, 24h, 7d."
)


def log(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A log: SQLite, or JSON lines.")],
    last: Annotated[
        int | None,
        typer.Option("-n", "--last", min=0, help=f"The newest so many runs. [default: {_LAST}]"),
    ] = None,
    evaluator: Annotated[str | None, typer.Option(help="Runs that this evaluator judged.")] = None,
    model: Annotated[str | None, typer.Option(help="Runs that this chat model answered.")] = None,
    finding: Annotated[
        str | None, typer.Option(help=f"What an evaluator says: {', '.join(get_args(Finding))}.")
    ] = None,
    min_score: Annotated[float | None, typer.Option(help="The least score.")] = None,
    max_score: Annotated[float | None, typer.Option(help="The greatest score.")] = None,
    outcome: Annotated[
        str | None, typer.Option(help=f"How a guard ended: {', '.join(get_args(TraceOutcome))}.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Runs of this name.")] = None,
    id: Annotated[str | None, typer.Option(help="Runs whose id begins like this.")] = None,
    text: Annotated[
        str | None,
        typer.Option(help="Runs with this in the question or the answer, in any case."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help=f"Runs that ended at this time or later: {_TIME}")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Runs that ended before this time.")] = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on with new runs as they come, until Ctrl-C.")
    ] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="How often answers fail, and what it costs.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(help="With --summary, what to tell apart: evaluator, model, day."),
    ] = None,
    worst_of: Annotated[
        int | None,
        typer.Option(
            "--worst", min=1, help="The worst answers, so many, with what speaks against them."
        ),
    ] = None,
    show: Annotated[
        str | None, typer.Option(help="All of the run whose id begins like this.")
    ] = None,
    export_to: Annotated[
        Path | None,
        typer.Option(
            "--export",
            dir_okay=False,
            help="Write the runs to a file: .jsonl or .sqlite, which are logs again; or .csv, a "
            "row for each evaluation, with ' before texts that a spreadsheet would run: those that "
            "begin with =, +, -, @, a tab or a line break.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="With --export: replace a file that is there.")
    ] = False,
    append: Annotated[
        bool, typer.Option("--append", help="With --export: add to a log that is there.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each run, or the summary, as a line of JSON.")
    ] = False,
) -> int:
    """List, sum up, follow and export the runs in a log.

    Runs are listed oldest first. --summary and --worst are about the first answer of each run,
    before any recovery of a guard. Days and times are UTC. docs/observe.md tells more.

    Exit codes: 0, also if no run is found, 2 the log cannot be read, 64 wrong usage, 130
    interrupted.
    """
    now = datetime.now(timezone.utc)
    filters = _filters(
        evaluator=evaluator,
        model=model,
        finding=finding,
        min_score=min_score,
        max_score=max_score,
        outcome=outcome,
        name=name,
        id=id,
        text=text,
        since=_time("--since", since, now),
        until=_time("--until", until, now),
    )
    told_apart = _by(by)
    modes = {
        "--follow": follow,
        "--summary": summary,
        "--worst": worst_of is not None,
        "--show": show is not None,
        "--export": export_to is not None,
    }
    mode = _one_of(modes)
    _only("--by", by is not None, mode == "--summary", mode)
    _only("--last", last is not None, mode in (None, "--follow", "--export"), mode)
    _only("--force", force, mode == "--export", mode)
    _only("--append", append, mode == "--export" and not force, "--force" if force else mode)
    _only("--json", as_json, mode != "--export", mode)
    _only("a filter", filters != EVERY, mode != "--show", mode)
    with _opened(file) as opened, pipe_may_close():
        _say_unreadable(opened, torn=not follow)
        if summary:
            totals = summarise(opened, filters, told_apart)
            number: int = totals.runs
            if as_json:
                whole = {"log": str(file), **logged.as_json(totals, told_apart)}
                typer.echo(escaped(json.dumps(whole)))
            elif number:
                logged.show_totals(output(), totals, told_apart)
        elif worst_of is not None:
            number = _whole(opened, worst(opened, filters, worst_of), as_json, evaluator)
        elif show is not None:
            record = find(opened, show)
            number = 1
            if as_json:
                typer.echo(escaped(record.as_json()))
            else:
                terminal.show_run(output(), record)
        elif export_to is not None:
            number = _export(opened, export_to, filters, last, force, append)
        else:
            newest = _LAST if last is None else last
            number = _list(opened, filters, newest, as_json)
            if follow:
                _follow(opened, filters, as_json)
        if not number:
            terminal.say(errors(), f"{terminal.one_line(str(file))}: no run {_among(filters)}")
    return PASSED


# --- What is asked --------------------------------------------------------------------------------


def _filters(**options: Any) -> Filters:
    try:
        return Filters(**options)
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
            message = f"expected some of {', '.join(known)}, with commas; got {part!r}"
            raise typer.BadParameter(message, param_hint="--by")
    return tuple(known[part] for part in parts)


def _one_of(modes: dict[str, bool]) -> str | None:
    named = [option for option, is_given in modes.items() if is_given]
    if len(named) > 1:
        raise typer.BadParameter(f"{' and '.join(named)} exclude each other")
    return named[0] if named else None


def _only(option: str, is_given: bool, fits: bool, mode: str | None) -> None:
    """Refuse an option that would have no effect, instead of ignoring it."""
    if is_given and not fits:
        where = f"with {mode}" if mode else "in a list"
        raise typer.BadParameter(f"{option} has no effect {where}")


def _among(filters: Filters) -> str:
    return "is in it yet" if filters == EVERY else "matches"


# --- What is answered -----------------------------------------------------------------------------


def _opened(file: Path) -> Log:
    with errors().status("reading the log"):  # lines take a while
        return open_log(file)


def _list(
    opened: Log, filters: Filters, last: int | None, as_json: bool, heads: bool = True
) -> int:
    if as_json:
        return _whole(opened, records(opened, filters, last), as_json)
    return logged.show_list(output(), opened, select(opened, filters, last), heads=heads)


def _follow(opened: Log, filters: Filters, as_json: bool) -> None:
    following, heads = Following(opened), False
    opened.close()  # or a database could not be cut down behind it
    while True:
        sys.stdout.flush()
        time.sleep(_POLL_SECONDS)
        with following.poll() as (log, after):
            _say_unreadable(log)
            _list(log, replace(filters, after=after), None, as_json, heads)


def _whole(
    opened: Log, entries: Iterable[Record | Damaged], as_json: bool, evaluator: str | None = None
) -> int:
    """Print whole runs: as JSON, or as the worst ones; how many there were."""
    count, damaged = 0, []
    for record in entries:
        if isinstance(record, Damaged):
            damaged.append(record)
        elif as_json:
            typer.echo(escaped(record.as_json()))
        else:
            terminal.show_worst(output(), record, evaluator)
        count += 1
    say_left_out(opened.path, damaged)
    return count


def _export(
    opened: Log, out: Path, filters: Filters, last: int | None, force: bool, append: bool
) -> int:
    try:
        done = export(opened, out, filters, last, force=force, append=append)
    except FileExistsError as error:
        message = f"{error}: --force replaces it, --append adds to it if it is a log"
        raise typer.BadParameter(terminal.one_line(message), param_hint="--export") from error
    except ValueError as error:
        raise typer.BadParameter(terminal.one_line(str(error)), param_hint="--export") from error
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror or error}") from error
    say_left_out(opened.path, done.damaged)
    runs = "1 run" if done.runs == 1 else f"{done.runs:,} runs"
    terminal.say(output(), terminal.one_line(f"{runs} written to {out}"))
    return done.runs


def _say_unreadable(opened: Log, torn: bool = False) -> None:
    """Say which lines are left out. A torn last one may still be in the making."""
    last = opened.position.torn if torn and opened.position else None
    say_left_out(opened.path, [*opened.damaged, *([last] if last else [])])
