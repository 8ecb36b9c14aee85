"""Hold what the commands share: their options, and how errors name the option at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from demur.cli.console import errors, output
from demur.recording import Recording, open_recording
from demur.views import terminal

T = TypeVar("T")

RecordingPath = Annotated[
    Path,
    typer.Option(
        "-r", "--recording", dir_okay=False, help="The file of recorded replies and vectors."
    ),
]
RECORDING = Path("demur-bench.jsonl")
DataPath = Annotated[
    Path | None,
    typer.Option(
        help="The folder of all data sets, or the folder or file of this one. [default: the "
        "folder that DEMUR_DATA names, then earlier downloads]"
    ),
]
Replay = Annotated[
    bool, typer.Option("--replay", help="Ask no model: take every reply from the recording.")
]
Model = Annotated[
    str,
    typer.Option(help="The model to ask: local, local:FILE.gguf, openai:NAME or ollama:NAME."),
]
AtOnce = Annotated[
    int, typer.Option(min=1, help="The number of items to work on at the same time.")
]
Seed = Annotated[int, typer.Option(help="The seed of every choice and bootstrap.")]


def attempt(reading: Callable[[], T], option: str) -> T:
    """Return what a function returns, and name the option in the error if the function fails.

    Raises:
        typer.BadParameter: The function raised a `ValueError`.
    """
    try:
        return reading()
    except ValueError as error:
        raise typer.BadParameter(terminal.one_line(str(error)), param_hint=option) from error


def say(text: str) -> None:
    """Print a line to standard output."""
    terminal.say(output(), terminal.one_line(text))


@contextmanager
def opened(path: Path, replay: bool) -> Iterator[Recording]:
    """Open a recording as `open_recording` does, and report a last line that was not complete.

    Raises:
        typer.BadParameter: The recording cannot be opened.
    """
    with ExitStack() as stack:
        found = attempt(lambda: stack.enter_context(open_recording(path, replay)), "--recording")
        if found.cut:
            done = "ignored" if replay else "removed"
            what = f"{path} ended in a torn line: {found.cut} bytes were {done}"
            terminal.say(errors(), terminal.one_line(what))
        yield found
