"""`demur check`, `demur demo`, `demur models pull`.

Exit codes: 0 passed, 1 failed, 2 undetermined or abstained, 64 wrong usage, 70 a fault in demur
itself, 130 interrupted. A pipeline that asks "may this answer go out?" can act on them alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from langchain_core.language_models import BaseChatModel
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from demur import RefChecker, __version__, display, resolve_model
from demur.errors import DemurError
from demur.schema import Evaluation

PASSED, FAILED, UNDECIDED, USAGE, FAULT, INTERRUPTED = 0, 1, 2, 64, 70, 130

# Newer typer carries a copy of click inside, older typer depends on it: its error class is reached
# through one that both export. BadParameter < UsageError < ClickException.
_ClickError: Any = typer.BadParameter.__mro__[2]

# Characters that JSON may hold as they are and a terminal may obey.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

_TEXT = "Text, @FILE to read a file, - for standard input, or @@TEXT for a text that begins with @."

app = typer.Typer(
    name="demur",
    help="Check generated answers against reference texts, claim by claim.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
models = typer.Typer(help="The local models' files.", rich_markup_mode=None)
app.add_typer(models, name="models")


class Claims(str, Enum):
    """What to cut an answer into."""

    triplets = "triplets"
    sentences = "sentences"


class Aggregation(str, Enum):
    """How the labels of the claims become one verdict."""

    strict = "strict"
    soft = "soft"
    major = "major"


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing that goes wrong is raised."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        command = typer.main.get_command(app)
        code = command.main(args=arguments, prog_name="demur", standalone_mode=False)
        return code if isinstance(code, int) else PASSED
    except _ClickError as error:
        error.show()
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except DemurError as error:
        _complain(str(error))
        return UNDECIDED
    except Exception:
        _complain(f"this is a fault in demur:\n{traceback.format_exc()}")
        return FAULT


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if show_version:
        typer.echo(f"demur {__version__}")
        raise typer.Exit
    _need_subcommand(context)


@models.callback(invoke_without_command=True)
def _models(context: typer.Context) -> None:
    _need_subcommand(context)


@app.command()
def check(
    answer: Annotated[str, typer.Option(help=f"The answer to check. {_TEXT}")],
    reference: Annotated[
        list[str], typer.Option(help=f"What to check it against; may be repeated. {_TEXT}")
    ],
    question: Annotated[
        str | None, typer.Option(help=f"The question that was answered. {_TEXT}")
    ] = None,
    model: Annotated[
        str, typer.Option(help="local, local:FILE.gguf, openai:NAME or ollama:NAME.")
    ] = "local",
    checker: Annotated[
        str | None,
        typer.Option(
            help="auto, joint, per_claim, logprobs, or the name of a CrossEncoder. [default: auto]"
        ),
    ] = None,
    claims: Annotated[Claims | None, typer.Option(help="What to check one by one.")] = None,
    aggregation: Annotated[
        Aggregation | None, typer.Option(help="From the claims' labels to the verdict.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Pass at this share of entailed claims."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the evaluation as one line of JSON.")
    ] = False,
) -> int:
    """Check the claims of an answer against reference texts.

    Exit codes: 0 passed, 1 failed, 2 undetermined or abstained, 64 wrong usage.
    """
    given = [("--answer", answer), *(("--reference", text) for text in reference)]
    if question is not None:
        given.append(("--question", question))
    texts = _read_all(given)
    contexts = texts[1 : len(reference) + 1]
    options = {
        "checker": checker,
        "claims": claims and claims.value,
        "aggregation": aggregation and aggregation.value,
        "threshold": threshold,
    }
    # Libraries that print must not spoil the JSON.
    with contextlib.redirect_stdout(sys.stderr), _errors().status("checking the claims"):
        evaluation = _evaluate(
            model,
            {name: value for name, value in options.items() if value is not None},
            {
                "answer": texts[0][0],
                "contexts": [text for text, _ in contexts],
                "question": texts[-1][0] if question is not None else None,
            },
        )
    with _pipe_may_close():
        if as_json:
            typer.echo(_json(evaluation))
        else:
            display.show(_output(), evaluation, _names(contexts))
    return {True: PASSED, False: FAILED, None: UNDECIDED}[evaluation.passed]


@app.command()
def demo(
    model: Annotated[
        str, typer.Option(help="local, local:FILE.gguf, openai:NAME or ollama:NAME.")
    ] = "local",
    traces: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="The file for what was found, as JSON. [default: a new one, its path shown]",
        ),
    ] = None,
) -> None:
    """Watch a guarded chain answer questions about Python's standard library.

    Answers are checked claim by claim against the passages they were given from.
    """
    from demur.demo.play import play

    try:
        with _pipe_may_close():
            play(_output(), _resolve(model), traces)
    except KeyboardInterrupt:
        _errors().print("stopped")
        raise


@models.command()
def pull() -> None:
    """Fetch the files of the local models, 1.1 GB, unless they are here; print where they are."""
    from demur.models.weights import EVERY
    from demur.models.weights import pull as pull_file

    with _progress() as report:
        paths = [pull_file(partial(report, one.file), manifest=one) for one in EVERY]
    for path in paths:
        typer.echo(path)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, str, int, int], None]]:
    """Reports of a file, what is being done, bytes done, bytes in all: bars, or lines in a log."""
    errors = _errors()
    if not errors.is_terminal:
        yield _lines(errors)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors) as bar:
        tasks: dict[str, TaskID] = {}

        def move(file: str, what: str, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file, total=total)
            description = display.one_line(f"{file}, {what}")
            bar.update(tasks[file], description=description, completed=done, total=total)

        yield move


def _lines(console: Console) -> Callable[[str, str, int, int], None]:
    """Progress for a log: a line for every tenth of the way, instead of a bar."""
    shown: set[tuple[str, str, int]] = set()

    def move(file: str, what: str, done: int, total: int) -> None:
        tenth = 10 * done // total if total else 0
        if (file, what, tenth) not in shown:
            shown.add((file, what, tenth))
            line = display.one_line(f"{file}, {what}: {tenth * 10} % of {total:,} bytes")
            display.say(console, line)

    return move


def _evaluate(model: str, options: dict[str, Any], sample: dict[str, Any]) -> Evaluation:
    """Build the evaluator that the options describe, and judge one sample."""
    chat = _resolve(model)
    try:
        evaluator = RefChecker(chat, **options)
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(_reason(error)) from error
    return evaluator.invoke(sample)


def _resolve(model: str) -> BaseChatModel:
    try:
        return resolve_model(model)
    except ValueError as error:
        raise typer.BadParameter(_reason(error), param_hint="--model") from error


def _reason(error: Exception) -> str:
    """What is wrong with an argument, without the frame that pydantic puts around it."""
    details = getattr(error, "errors", None)
    if not callable(details):
        return str(error)
    return "; ".join(str(detail["msg"]).removeprefix("Value error, ") for detail in details())


def _read_all(given: Sequence[tuple[str, str]]) -> list[tuple[str, str | None]]:
    """The texts that options give, each with the name of the file it was read from, if any."""
    if sum(value in ("-", "@-") for _, value in given) > 1:
        raise typer.BadParameter("standard input can be read for one option only")
    return [_read(option, value) for option, value in given]


def _read(option: str, value: str) -> tuple[str, str | None]:
    if value in ("-", "@-"):
        return _decode(option, "standard input", sys.stdin.buffer.read()), "standard input"
    if value.startswith("@@") or not value.startswith("@"):
        return value.removeprefix("@"), None
    name = value[1:]
    if not name:
        raise typer.BadParameter("@ is followed by no file name", param_hint=option)
    try:
        # Bytes, since reading text would change line ends, and so the offsets of what is found.
        raw = Path(name).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        message = display.one_line(f"cannot read {name}: {why}")
        raise typer.BadParameter(message, param_hint=option) from error
    return _decode(option, name, raw), name


def _decode(option: str, name: str, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = display.one_line(f"{name} is not UTF-8 text (byte {error.start})")
        raise typer.BadParameter(message, param_hint=option) from error


def _names(contexts: Sequence[tuple[str, str | None]]) -> list[str]:
    return [
        f"reference {at} ({name})" if name else f"reference {at}"
        for at, (_, name) in enumerate(contexts, start=1)
    ]


def _json(evaluation: Evaluation) -> str:
    """The evaluation as JSON; what a terminal may obey is written as an escape."""
    return _UNSAFE_IN_JSON.sub(
        lambda match: f"\\u{ord(match.group()):04x}", evaluation.model_dump_json()
    )


@contextlib.contextmanager
def _pipe_may_close() -> Iterator[None]:
    """Go on when nobody reads the output any more: the exit code is still the verdict's."""
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich turns the one into the other
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _need_subcommand(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE)


def _output() -> Console:
    return Console(highlight=False)


def _errors() -> Console:
    return Console(stderr=True, highlight=False)


def _complain(message: str) -> None:
    display.say(_errors(), "demur:", display.harmless(message), style="bold red")
