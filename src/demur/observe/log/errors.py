"""What goes wrong with a log, in words."""

from __future__ import annotations

from pydantic import ValidationError

from demur.errors import DemurError


class LogError(DemurError):
    """A log cannot be read, or what was asked of it is not there."""


def reason(error: ValidationError) -> str:
    """What is wrong with a value first, and where."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else str(first["msg"])
