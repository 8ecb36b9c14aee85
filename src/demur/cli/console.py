"""What the commands have in common: exit codes, where they print, and how."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator

from rich.console import Console

from demur import display

PASSED, FAILED, UNDECIDED, USAGE, FAULT, INTERRUPTED = 0, 1, 2, 64, 70, 130

# Characters that JSON may hold as they are and a terminal may obey.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def output() -> Console:
    """Where results go."""
    return Console(highlight=False)


def errors() -> Console:
    """Where all else goes."""
    return Console(stderr=True, highlight=False)


def complain(message: str) -> None:
    """Say what went wrong."""
    display.say(errors(), "demur:", display.harmless(message), style="bold red")


def reason(error: Exception) -> str:
    """What is wrong with an argument, without the frame that pydantic puts around it."""
    details = getattr(error, "errors", None)
    if not callable(details):
        return str(error)
    return "; ".join(str(detail["msg"]).removeprefix("Value error, ") for detail in details())


def escaped(json: str) -> str:
    """JSON in which what a terminal may obey is written as an escape."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", json)


@contextlib.contextmanager
def pipe_may_close() -> Iterator[None]:
    """Go on when nobody reads the output any more: the exit code is still the verdict's."""
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich turns the one into the other
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
