"""Run `demur demo`: a guarded retrieval chain over the standard library's documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur import resolve_model
from demur.cli.console import errors, output, pipe_may_close
from demur.cli.options import usable


def demo(
    model: Annotated[
        str,
        typer.Option(
            help="The model that answers and checks: local, local:FILE.gguf, openai:NAME or "
            "ollama:NAME."
        ),
    ] = "local",
    traces: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="The file for the traces, as JSON. [default: a new file, whose path is shown]",
        ),
    ] = None,
) -> None:
    """Watch a guarded chain answer questions about Python's standard library.

    Each answer is checked claim by claim against the passages that the chain retrieved.
    """
    from demur.cli.demo.play import play

    try:
        with usable("--model"):
            chat = resolve_model(model)
        with pipe_may_close():
            play(output(), chat, traces)
    except KeyboardInterrupt:
        errors().print("stopped")
        raise
