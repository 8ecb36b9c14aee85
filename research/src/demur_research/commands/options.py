"""What the commands have in common: options, and a recording that is gone on with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from langchain_core.language_models import BaseChatModel

from demur import resolve_model
from demur._fingerprints import model_fingerprint
from demur.cli import progress
from demur.cli.console import errors, pipe_may_close
from demur.views import terminal
from demur_research.recorder import Item, Lines, Recording, open_recording
from demur_research.runner import Finding, run

T = TypeVar("T")

Out = Annotated[
    Path,
    typer.Option("-o", "--out", dir_okay=False, help="The recording; what is there is kept."),
]
ModelName = Annotated[
    str, typer.Option("--model", help="local, local:FILE.gguf, openai:NAME or ollama:NAME.")
]
Retry = Annotated[bool, typer.Option("--retry", help="Judge again what was left undetermined.")]
AtOnce = Annotated[int, typer.Option("--at-once", min=1, help="So many at a time.")]


def attempt(reading: Callable[[], T], option: str) -> T:
    """Do what depends on an option; what is wrong is told with its name.

    Raises:
        typer.BadParameter: It raised a `ValueError`.
    """
    try:
        return reading()
    except ValueError as error:
        raise typer.BadParameter(terminal.one_line(str(error)), param_hint=option) from error


def names(given: Iterable[str] | None, known: Collection[str], option: str) -> list[str]:
    """What was named, each once, or all that there is.

    Raises:
        typer.BadParameter: One is not known.
    """
    found = list(dict.fromkeys(given or known))
    for name in found:
        if name not in known:
            raise typer.BadParameter(
                f"expected one of {', '.join(known)}, got {name!r}", param_hint=option
            )
    return found


def model_of(name: str) -> BaseChatModel:
    """The model of `--model`."""
    return attempt(lambda: resolve_model(name), "--model")


@dataclass(frozen=True)
class Session:
    """A recording that is open, with how far its runs are on standard error."""

    recording: Recording
    _report: progress.Report
    _at_once: int
    _retry: bool

    @property
    def lines(self) -> Lines:
        """What is recorded by now."""
        return self.recording.lines

    def judge(
        self,
        items: Sequence[Item[T]],
        judges: Mapping[str, Callable[[T], Finding]],
        what: str = "judging",
    ) -> None:
        """Have the items judged by what has not judged them yet."""
        told = partial(self._report, what, str(self.recording.path))
        run(self.recording, items, judges, told, at_once=self._at_once, retry=self._retry)


@contextmanager
def session(
    path: Path,
    items: Sequence[Item[Any]] | None,
    model: BaseChatModel,
    at_once: int,
    retry: bool,
    option: str = "--out",
) -> Iterator[Session]:
    """Open a recording for runs: see `open_recording`."""
    with ExitStack() as stack:
        recording = attempt(
            lambda: stack.enter_context(open_recording(path, items, model_fingerprint(model))),
            option,
        )
        if recording.cut:
            what = f"{path} ended in a line that was not whole: {recording.cut} bytes cut"
            terminal.say(errors(), what)
        report = stack.enter_context(progress.counts())
        yield Session(recording, report, at_once, retry)


def show(lines: Iterable[str]) -> None:
    """Print lines as they come."""
    with pipe_may_close():
        for line in lines:
            typer.echo(line)
