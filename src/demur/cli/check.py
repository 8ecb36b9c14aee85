"""Run `demur check`: check one answer against reference texts."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from demur import RefChecker
from demur.cli.console import (
    FAILED,
    PASSED,
    UNDECIDED,
    errors,
    escaped,
    output,
    pipe_may_close,
)
from demur.cli.options import json_option, read_threshold, usable
from demur.evaluators import resolve_judge
from demur.schema import Evaluation
from demur.views import terminal

_TEXT = "A text, @FILE for a file, - for standard input, or @@TEXT for a text that begins with @."


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
            help="What checks: small, local, local:FILE.gguf, openai:NAME, ollama:NAME, or a "
            "yes-or-no judge such as factcg."
        ),
    ] = "local",
    checker: Annotated[
        str | None,
        typer.Option(
            help="How claims are checked: auto, joint, per_claim, logprobs, adapter, or the name "
            "of a CrossEncoder or a yes-or-no judge. [default: auto]"
        ),
    ] = None,
    claims: Annotated[
        Literal["triplets", "sentences"] | None,
        typer.Option(help="The parts of the answer that are checked one by one."),
    ] = None,
    aggregation: Annotated[
        Literal["strict", "soft", "major"] | None,
        typer.Option(help="How the claims' labels become the verdict."),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|FILE",
            help="The score from which the answer passes: the support of its weakest claim, or "
            "with --aggregation soft the share of entailed claims; or a file that demur calibrate "
            "wrote.",
        ),
    ] = None,
    as_json: Annotated[bool, json_option("the evaluation as one line of JSON")] = False,
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
        "claims": claims,
        "aggregation": aggregation,
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


def _evaluate(model: str, options: dict[str, Any], sample: dict[str, Any]) -> Evaluation:
    """Build the evaluator that the options describe, and judge one sample."""
    with usable("--model"):
        judge = resolve_judge(model)
    with usable():
        evaluator = RefChecker(judge, **options)
    return evaluator.invoke(sample)


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
