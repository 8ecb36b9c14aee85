"""What the commands have in common: their options, and how what is wrong with one is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from demur.cli.console import errors
from demur.views import terminal
from demur_research.recording import Recording, open_recording

T = TypeVar("T")

RecordingPath = Annotated[
    Path, typer.Option("-r", "--recording", dir_okay=False, help="Replies and vectors.")
]
RECORDING = Path("demur-bench.jsonl")
Replay = Annotated[
    bool, typer.Option("--replay", help="Ask no model: take every reply from the recording.")
]
Model = Annotated[str, typer.Option(help="local, local:FILE.gguf, openai:NAME or ollama:NAME.")]
AtOnce = Annotated[int, typer.Option(min=1, help="So many at a time.")]
Seed = Annotated[int, typer.Option(help="Of every choice and bootstrap.")]


def attempt(reading: Callable[[], T], option: str) -> T:
    """Do what depends on an option; what is wrong is told with its name.

    Raises:
        typer.BadParameter: It raised a `ValueError`.
    """
    try:
        return reading()
    except ValueError as error:
        raise typer.BadParameter(terminal.one_line(str(error)), param_hint=option) from error


@contextmanager
def opened(path: Path, replay: bool) -> Iterator[Recording]:
    """Open a recording, as `open_recording` does, and say what was torn of it.

    Raises:
        typer.BadParameter: It cannot be opened.
    """
    with ExitStack() as stack:
        found = attempt(lambda: stack.enter_context(open_recording(path, replay)), "--recording")
        if found.cut:
            done = "passed over" if replay else "cut"
            what = f"{path} ended in a line that was not whole: {found.cut} bytes {done}"
            terminal.say(errors(), terminal.one_line(what))
        yield found
