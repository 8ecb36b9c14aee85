"""`demur-bench claims`, `unchecked`, `injection`, `long-contexts`, and others of RefChecker."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from demur import RefChecker
from demur.cli.console import errors
from demur.views import terminal
from demur_research import claims as on_claims
from demur_research import injection as on_injection
from demur_research import long_contexts as on_long_contexts
from demur_research import quantities as on_quantities
from demur_research import unchecked as on_unchecked
from demur_research import windows as on_windows
from demur_research.commands.options import (
    AtOnce,
    ModelName,
    Out,
    Retry,
    attempt,
    model_of,
    names,
    session,
    show,
)
from demur_research.recorder import Item, read
from demur_research.texts.answers import ANSWERS
from demur_research.texts.injections import INJECTIONS, Case


class Half(str, Enum):
    """Which rows are counted."""

    development = "development"
    report = "report"


def claims(
    data: Annotated[Path, typer.Option(help="The folder with nli/ and halueval/.")],
    out: Out,
    model: ModelName = "local",
    count: Annotated[int, typer.Option("--claims", min=2, help="Claims per set.")] = 100,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help=f"One of {', '.join(on_claims.SETS)}; may be repeated. [default: all]"
        ),
    ] = None,
    modes: Annotated[
        list[str] | None,
        typer.Option(
            "--mode", help=f"One of {', '.join(on_claims.MODES)}; may be repeated. [default: all]"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the choice.")] = 1,
    at_once: AtOnce = 1,
    retry: Retry = False,
) -> None:
    """How well RefChecker's checkers tell supported claims from unsupported ones.

    What is missing from the recording is judged first. The table is of all that it holds.
    """
    of = names(sets, on_claims.SETS, "--set")
    checkers = names(modes, on_claims.MODES, "--mode")
    chat = model_of(model)
    chosen = attempt(
        lambda: [
            on_claims.items(on_claims.choose(on_claims.SETS[name](data), count, seed))
            for name in of
        ],
        "--data",
    )
    judges = {mode: partial(on_claims.judge, mode=mode, model=chat) for mode in checkers}
    every = [item for items in chosen for item in items]
    with session(out, every, chat, at_once, retry) as open_session:
        for name, items in zip(of, chosen, strict=True):
            open_session.judge(items, judges, name)
    lines = attempt(lambda: read(out), "--out")
    show([on_claims.table([row for line in lines.values() for row in line.result["rows"]])])


def unchecked(
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", dir_okay=False, help="The recording to go on with."),
    ] = None,
    tables: Annotated[
        list[Path] | None,
        typer.Option("--table", help="Only print the tables of this recording; may be repeated."),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--claims", help="As RefChecker takes it. [default: its own]")
    ] = None,
    model: ModelName = "local",
    limit: Annotated[int, typer.Option(min=1, help="So many answers.")] = len(ANSWERS),
    at_once: AtOnce = 1,
    retry: Retry = False,
) -> None:
    """How many answers pass although something that they state was never checked.

    The tables have a column for each recording, and for each --claims in it.
    """
    if (out is None) is (tables is None):
        raise typer.BadParameter(
            "give either -o RECORDING to measure or --table RECORDING to print", param_hint="--out"
        )
    items = on_unchecked.items(on_unchecked.choose(limit))
    if out is not None:
        chat = model_of(model)
        options: dict[str, Any] = {} if form is None else {"claims": form}
        checker = attempt(lambda: RefChecker(chat, **options), "--claims")
        with session(out, items, chat, at_once, retry) as open_session:
            open_session.judge(items, {form or "default": on_unchecked.judge(checker)})
    runs = {}
    for path in tables or [path for path in [out] if path]:
        found = on_unchecked.rows(attempt(partial(read, path, items), "--table"))
        for name, rows in found.items():
            runs[path.stem if len(found) == 1 else f"{path.stem}, {name}"] = rows
    show(on_unchecked.tables(runs))


def injection(
    out: Out,
    modes: Annotated[
        list[str] | None,
        typer.Option(
            "--mode",
            help=f"One of {', '.join(on_injection.MODES)}; may be repeated. "
            "[default: all but answer]",
        ),
    ] = None,
    places: Annotated[
        list[str] | None,
        typer.Option(
            "--place",
            help=f"Behind what: {' or '.join(on_injection.PLACES)}; may be repeated. "
            "[default: both; of answer only claim]",
        ),
    ] = None,
    model: ModelName = "local",
    limit: Annotated[int, typer.Option(min=1, help="So many texts.")] = len(INJECTIONS),
    controls: Annotated[
        bool, typer.Option("--controls/--no-controls", help="Without them in half of the time.")
    ] = True,
    at_once: AtOnce = 1,
    retry: Retry = False,
) -> None:
    """How often the judge is talked into passing a claim that is not supported."""
    wanted = names(modes or on_injection.MODES[:-1], on_injection.MODES, "--mode")
    behind = names(places, on_injection.PLACES, "--place")
    chat = model_of(model)
    chosen = on_injection.choose(limit)
    lines = [
        f"{len(chosen)} texts of {len({one.family for one, _ in chosen})} families",
        on_injection.HEAD,
    ]
    told: list[str] = []
    with session(out, None, chat, at_once, retry) as open_session:

        def judge(items: Sequence[Item[Case]], mode: str) -> None:
            open_session.judge(items, {mode: on_injection.judge(mode, chat)}, mode)

        for mode in wanted:
            for place in behind if mode != "answer" else ["claim"]:
                row, *talked = on_injection.measure(
                    open_session.recording, judge, mode, place, chosen, controls
                )
                lines.append(row)
                told += talked
    show([*lines, *told])


def long_contexts(
    out: Out,
    cases: Annotated[int, typer.Option(min=1)] = 20,
    length: Annotated[int, typer.Option(min=1, help="Of the other text.")] = 50_000,
    model: ModelName = "local",
    at_once: AtOnce = 1,
    retry: Retry = False,
) -> None:
    """How many unsupported answers fail where what decides them stands amid other text."""
    items = attempt(lambda: on_long_contexts.choose(cases), "--cases")
    chat = model_of(model)
    judges = on_long_contexts.judges(RefChecker(chat), len(items), length)
    with session(out, items, chat, at_once, retry) as open_session:
        open_session.judge(items, judges)
        lines = [on_long_contexts.line(name, items, open_session.lines) for name in judges]
    show([on_long_contexts.HEAD, *lines])


def windows(
    data: Annotated[Path, typer.Option(help="The folder with wice/claim_dev.jsonl.")],
    pages: Annotated[int, typer.Option(min=4, help="Against how many a claim is held.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the choice of the other pages.")] = 1,
) -> None:
    """Whether what supports a claim is among the windows that are read of many pages."""
    show(attempt(lambda: on_windows.table(on_windows.read(data), pages, seed), "--data"))


def quantities(
    data: Annotated[Path, typer.Option(help="The folder of the data sets.")],
    half: Annotated[Half, typer.Option()] = Half.report,
    details: Annotated[bool, typer.Option("--show", help="Say what goes wrong.")] = False,
) -> None:
    """How many supported claims are flagged for a quantity, and how many planted errors caught."""
    show(on_quantities.table(data, half.value, details, lambda text: terminal.say(errors(), text)))
