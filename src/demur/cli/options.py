"""Define the options that several commands share, and read their values."""

from __future__ import annotations

import contextlib
import difflib
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from demur.cli.console import reason
from demur.errors import DemurError
from demur.observe.log import database_of
from demur.schema import Prices, Threshold
from demur.views import terminal

# --- Options --------------------------------------------------------------------------------------


def out_option(what: str, default: str, **rest: Any) -> Any:
    """Return the option `-o`, which names the file for the command's result.

    Args:
        what: What the file is for.
        default: The name of the file without this option.
        rest: Further arguments of `typer.Option`.
    """
    text = f"The file for {what}. [default: {default}]"
    return typer.Option("-o", "--out", dir_okay=False, help=text, **rest)


def json_option(what: str) -> Any:
    """Return the option `--json`; `what` says what it prints."""
    return typer.Option("--json", help=f"Print {what}.")


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

# --- Values ---------------------------------------------------------------------------------------


def beside(where: str, suffix: str) -> Path:
    """Return the file for what is made of a log.

    It is beside the log's file. For a database, it is in the current folder and has the database's
    name.
    """
    if (database := database_of(where)) is not None:
        return Path(re.sub(r"[^\w.-]", "_", database) + suffix)
    return Path(where).with_suffix(suffix)


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


def read_threshold(text: str | None, share: bool = False) -> float | Threshold | None:
    """Return the value of `--threshold`: a number, or the threshold in a file of `demur calibrate`.

    Args:
        text: The option's text; None if it was not given.
        share: Whether a number must be in [0, 1].

    Raises:
        typer.BadParameter: The text is neither a valid number nor such a file.
    """
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        return _threshold_file(text)
    if not math.isfinite(number) or (share and not 0 <= number <= 1):
        expected = "a number in [0, 1]" if share else "a finite number"
        raise typer.BadParameter(
            f"expected {expected}, or a file that demur calibrate wrote, got {text}",
            param_hint="--threshold",
        )
    return number


def _threshold_file(name: str) -> Threshold:
    try:
        return Threshold.load(name)
    except DemurError as error:
        message = f"{error}. Expected a number, or a file that demur calibrate wrote"
        raise typer.BadParameter(terminal.one_line(message), param_hint="--threshold") from error


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
