"""Run `demur report`: write a page that shows what handlers and guards have recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli.console import PASSED, errors, may_write, output, pipe_may_close, say_left_out
from demur.cli.options import PriceIn, PriceOut, beside, out_option, read_prices
from demur.observe.log import LogError, open_log, read_labels
from demur.schema import Threshold
from demur.views import plural, terminal
from demur.views.report import MOST, write_report


def report(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A file (SQLite, JSON lines, saved traces), or postgresql://user@host/database.",
        ),
    ],
    out: Annotated[
        Path | None, out_option("the page", "LOG with the suffix .html", readable=False)
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="A file that says which first answers are hallucinated: CSV or JSON lines with "
            "the fields id (or run) and hallucinated. [default: the runs' metadata]",
        ),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--last",
            min=1,
            help="The number of newest runs to use. [default: all; the newest "
            f"{MOST:,} are shown with their answers]",
        ),
    ] = None,
    threshold: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, help="A file that `demur calibrate` wrote, whose threshold is marked."
        ),
    ] = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a page that exists.")] = False,
) -> int:
    """Write a page that shows the runs in a log: figures, thresholds, and every answer.

    Quality and cost cover all runs; thresholds and answers cover the newest. The page needs no
    network. It contains the texts of the log: questions, answers and references.

    Exit codes: 0, also if the log is empty, 2 the log cannot be read or the page cannot be written,
    64 wrong usage, 130 interrupted.
    """
    prices = read_prices(price_in, price_out)
    if out is None and not Path(log).name:
        raise LogError(f"cannot read {log}: it is a folder")
    page = beside(log, ".html") if out is None else out
    may_write([page], labels, threshold, force=force, option="--out")
    with errors().status("writing the report"), open_log(log) as opened:
        try:
            written = write_report(
                opened,
                page,
                title=title,
                labels=None if labels is None else read_labels(labels),
                last=last,
                prices=prices,
                threshold=None if threshold is None else Threshold.load(threshold),
            )
        except ValueError as error:
            raise typer.BadParameter(terminal.one_line(str(error))) from error
        except OSError as error:
            raise LogError(f"cannot write {page}: {error.strerror or error}") from error
    with pipe_may_close():
        say_left_out(opened.name, written.damaged)
        if written.unknown:
            unknown = plural(written.unknown, "label belongs", "labels belong")
            terminal.say(errors(), f"{unknown} to runs that are not in the log")
        runs, changes = plural(written.rows, "run"), "(--last changes that)"
        if last is not None and written.runs > last:
            runs = f"the newest {written.rows:,} of {written.runs:,} runs {changes}"
        elif last is None and written.runs > MOST:
            runs = f"{written.runs:,} runs, the newest {MOST:,} with their answers {changes},"
        terminal.say(output(), terminal.one_line(f"{runs} written to {page}"))
    return PASSED
