"""What `demur score` and `demur compare` have in common: options, and how a run is told."""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Annotated, TypeAlias

import typer
from langchain_core.language_models import BaseChatModel

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
    bool, typer.Option("--restart", help="Begin anew; findings that are there are put aside.")
]
Retry: TypeAlias = Annotated[
    bool, typer.Option("--retry", help="Ask again about what was left undetermined.")
]
MaxConcurrency: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Rows at a time, and calls to one model at a time. [default: 16 rows, and as many "
        "calls as fit the model]",
    ),
]
PriceIn: TypeAlias = Annotated[
    float | None, typer.Option(min=0, help="Price of a million tokens that models read.")
]
PriceOut: TypeAlias = Annotated[
    float | None, typer.Option(min=0, help="Price of a million tokens that models write.")
]


def read_prices(price_in: float | None, price_out: float | None) -> Prices | None:
    """The prices that were given, if they were.

    Raises:
        typer.BadParameter: One is missing, or is not a finite number.
    """
    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise typer.BadParameter("--price-in and --price-out are given together")
    for option, price in (("--price-in", price_in), ("--price-out", price_out)):
        if not math.isfinite(price):
            raise typer.BadParameter(f"expected a number, got {price}", param_hint=option)
    return price_in, price_out


def policy_of(model: BaseChatModel, at_once: int | None) -> CallPolicy | None:
    """The model's own policy with another number of calls at a time, if one was given."""
    return None if at_once is None else replace(policy_for(model, None), max_concurrency=at_once)


def unknown(what: str, name: str, known: Iterable[str], lists: str) -> str:
    """What to say of a name that is not known: which ones are close, and which option lists all."""
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
    """Score what is missing, and show how far the run is.

    Args:
        run: The run.
        task: What it is called while it goes on.
        prices: For the cost so far.
        first: What comes before it, unless all is done.

    Returns:
        False after an interrupt, else True.
    """
    results, path = run.results, terminal.one_line(str(run.results.path))
    if results.aside:
        aside = terminal.one_line(str(results.aside))
        terminal.say(errors(), f"the earlier results are in {aside}")
    if results.cut:
        cut = f"{path} ended in a line that was not whole: {results.cut} bytes cut"
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
