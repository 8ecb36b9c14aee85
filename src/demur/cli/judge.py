"""Run `demur judge`: serve the judge of "local" to other processes and machines."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

import typer

from demur.cli import progress
from demur.cli.console import errors, need_subcommand
from demur.cli.options import usable
from demur.views import terminal

judge = typer.Typer(help="Serve the judge of the model 'local'.", rich_markup_mode=None)


@judge.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    need_subcommand(context)


@judge.command()
def serve(
    host: Annotated[
        str, typer.Option(help="The address to listen at. Beside loopback, it needs a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0: any free one.", min=0, max=65535)] = 8080,
) -> None:
    """Serve the judge of the model 'local', so that many processes share one.

    RefChecker("judge:http://HOST:PORT") asks it. If DEMUR_JUDGE_KEY is set, each request has to
    give this key: set it where the judge is asked, too. The files are those of 'demur models pull'.
    """
    from demur.local import SERVED_KEY, bound, own_judge
    from demur.local import serve as serve_judge

    key = os.environ.get(SERVED_KEY) or None
    with usable("--host"), bound(host, port, key) as listening:
        with progress.counts() as report:
            own = own_judge(partial(report, "the judge of the local model"))
        address, number = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        terminal.say(errors(), f"The judge listens at http://{shown}:{number}")
        serve_judge(own.judge, listening, key)
