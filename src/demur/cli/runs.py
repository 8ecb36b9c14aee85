"""Share what `demur score` and `demur compare` need: options, and the messages of a run."""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Annotated, TypeAlias

import typer

from demur.cli import figures
from demur.cli.console import errors, reason
from demur.cli.figures import Prices
from demur.cli.progress import Report, counts
from demur.errors import DemurError
from demur.runtime import CallPolicy, policy_for
from demur.scoring import Progress, Run
from demur.views import terminal

ROWS_AT_ONCE = 16

Restart: TypeAlias = Annotated[
    bool, typer.Option("--restart", help="Start over; the earlier file is kept under another name.")
]
Retry: TypeAlias = Annotated[
    bool, typer.Option("--retry", help="Score undetermined answers again.")
]
MaxConcurrency: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="The number of rows at a time, and of calls to one model at a time. [default: 16 "
        "rows, and as many calls as fit the model]",
    ),
]
PriceIn: TypeAlias = Annotated[
    float | None, typer.Option(min=0, help="The price of a million tokens that models read.")
]
PriceOut: TypeAlias = Annotated[
    float | None, typer.Option(min=0, help="The price of a million tokens that models write.")
]


def read_prices(price_in: float | None, price_out: float | None) -> Prices | None:
    """Return the two prices, or None if neither was given.

    Raises:
        typer.BadParameter: One price is missing, or is not a finite number.
    """
    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise typer.BadParameter("--price-in and --price-out are given together: one is missing")
    for option, price in (("--price-in", price_in), ("--price-out", price_out)):
        if not math.isfinite(price):
            raise typer.BadParameter(f"expected a number, got {price}", param_hint=option)
    return price_in, price_out


def policy_of(model: object, at_once: int | None) -> CallPolicy | None:
    """Return the model's own policy with `at_once` calls at a time; None if no number is given."""
    return None if at_once is None else replace(policy_for(model, None), max_concurrency=at_once)


def unknown(what: str, name: str, known: Iterable[str], lists: str) -> str:
    """Return the message for an unknown name: close names, and the option that lists all names."""
    close = difflib.get_close_matches(name, known, 3)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return terminal.one_line(f"unknown {what} {name!r}: {hint}{lists} lists them")


@contextlib.contextmanager
def usable(option: str | None = None) -> Iterator[None]:
    """Report values that cannot be used as wrong usage."""
    try:
        yield
    except DemurError:
        raise
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(reason(error), param_hint=option) from error


def carry_out(
    run: Run, task: str, prices: Prices | None, first: Callable[[Report], None] | None = None
) -> bool:
    """Score what is missing, and show the progress of the run.

    Args:
        run: The run.
        task: The name of the task, for the progress.
        prices: The prices, for the cost so far.
        first: A function that is called first, unless everything is done.

    Returns:
        False after an interrupt, otherwise True.
    """
    results, path = run.results, terminal.one_line(str(run.results.path))
    if results.aside:
        aside = terminal.one_line(str(results.aside))
        terminal.say(errors(), f"the earlier results are in {aside}")
    if results.cut:
        cut = f"{path} ended in a torn line: {results.cut} bytes were removed"
        terminal.say(errors(), cut)

    def tell(now: Progress) -> None:
        open_cases = f"{now.undetermined:,} undetermined, " if now.undetermined else ""
        report(task, f"{open_cases}{figures.spent(now.usage, prices)}", now.done, now.total)

    try:
        with counts() as report:
            if first is not None and run.done < run.total:
                first(report)
            run.score(tell)
    except KeyboardInterrupt:
        far = f"stopped: {run.done:,} of {run.total:,} are in {path}; the same command goes on"
        terminal.say(errors(), far)
        return False
    return True
