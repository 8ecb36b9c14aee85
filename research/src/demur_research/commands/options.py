"""What the commands have in common: what is wrong with an option is told with its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import typer

from demur.views import terminal

T = TypeVar("T")


def attempt(reading: Callable[[], T], option: str) -> T:
    """Do what depends on an option; what is wrong is told with its name.

    Raises:
        typer.BadParameter: It raised a `ValueError`.
    """
    try:
        return reading()
    except ValueError as error:
        raise typer.BadParameter(terminal.one_line(str(error)), param_hint=option) from error
