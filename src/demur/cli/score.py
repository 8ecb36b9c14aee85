"""Run `demur score`: score a data set of answers, from one file of JSON lines to another."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from demur import __version__
from demur.cli.clusters import on_ray
from demur.cli.console import (
    INTERRUPTED,
    PASSED,
    UNDECIDED,
    USAGE,
    complain,
    output,
    pipe_may_close,
    print_json,
)
from demur.cli.methods import METHODS, OPTIONS, Maker, evaluators_of
from demur.cli.options import (
    MaxConcurrency,
    PriceIn,
    PriceOut,
    Restart,
    Retry,
    json_option,
    out_option,
    read_prices,
    read_threshold,
    usable,
)
from demur.cli.progress import Report
from demur.cli.runs import ROWS_AT_ONCE, carry_out
from demur.cli.summary import as_json_values, show, spent
from demur.evaluators import Fitted
from demur.schema import Prices
from demur.scoring import (
    Data,
    Prepare,
    Run,
    ScoringError,
    open_run,
    read_fields,
    read_input,
    summarise,
)
from demur.views import terminal

_MODEL = "local, local:FILE.gguf, openai:NAME or ollama:NAME"


def score(
    file: Annotated[
        str | None, typer.Argument(help="A file of JSON lines, or - for standard input.")
    ] = None,
    method: Annotated[str, typer.Option(help=f"The method: one of {', '.join(METHODS)}.")] = "fewl",
    config: Annotated[
        list[str] | None,
        typer.Option(help="A configuration of the method; may be repeated. See --list-configs."),
    ] = None,
    list_configs: Annotated[
        bool, typer.Option("--list-configs", help="List the method's configurations.")
    ] = False,
    reference_model: Annotated[
        list[str] | None,
        typer.Option(
            help=f"fewl: the model that answers the questions, {_MODEL}. May be repeated: one "
            "model gives several answers, several models give one each."
        ),
    ] = None,
    generator: Annotated[
        str | None, typer.Option(help="fewl: the model that writes wrong and corrected answers.")
    ] = None,
    similarity: Annotated[
        str | None, typer.Option(help="fewl: the similarity of two texts, such as cosine or hhem.")
    ] = None,
    premise: Annotated[
        str | None,
        typer.Option(
            help="fewl: the text that is the premise of the similarity, answer or reference."
        ),
    ] = None,
    neighbors: Annotated[
        str | None,
        typer.Option(
            help="fewl: the folder or URL of the Chroma that keeps the references' answers."
        ),
    ] = None,
    neighbors_collection: Annotated[
        str | None, typer.Option(help="fewl: the collection in that Chroma.")
    ] = None,
    n_answers: Annotated[
        int | None,
        typer.Option(min=1, help="fewl: the number of answers of a single reference model."),
    ] = None,
    n_wrong: Annotated[
        int | None,
        typer.Option(min=1, help="fewl: the number of pairs of wrong and corrected answers."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=f"refchecker, reverse-validation: the judge, {_MODEL}; for refchecker also "
            "small, or a yes-or-no judge such as factcg. [default: local]"
        ),
    ] = None,
    validator: Annotated[
        str | None,
        typer.Option(
            help="reverse-validation: the model that answers the queries. [default: as --model]"
        ),
    ] = None,
    matcher: Annotated[
        str | None, typer.Option(help="reverse-validation: how names are matched.")
    ] = None,
    checker: Annotated[
        str | None, typer.Option(help="refchecker: how claims are checked, as in demur check.")
    ] = None,
    claims: Annotated[
        str | None,
        typer.Option(help="refchecker: the parts to check: sentences or triplets."),
    ] = None,
    aggregation: Annotated[
        str | None,
        typer.Option(help="refchecker: how labels become the verdict: strict, soft or major."),
    ] = None,
    refusals: Annotated[
        list[str] | None,
        typer.Option(
            "--refusal",
            metavar="TEXT",
            help="refchecker: an answer that states nothing, such as NO_ANSWER; may be repeated.",
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|FILE",
            help="The score at which an answer passes, or a file that demur calibrate wrote.",
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            help="The field of the rows that holds a value, such as question=prompt, "
            "answers=good,bad or metadata.correct=best_answers; may be repeated.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Score only this many rows, the first ones.")
    ] = None,
    out: Annotated[Path | None, out_option("the results", "FILE.scores.jsonl")] = None,
    restart: Restart = False,
    retry: Retry = False,
    max_concurrency: MaxConcurrency = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Score on a Ray cluster: auto, HOST:PORT, ray://HOST:PORT, or local for one on "
            "this machine. --max-concurrency then holds for all workers together. Needs demur-ray.",
        ),
    ] = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    as_json: Annotated[bool, json_option("the summary as one line of JSON")] = False,
) -> int:
    """Score a data set of answers, and continue where an earlier run stopped.

    Each line of FILE is an object with a question and an answer, or with several named answers.
    Results are written one by one, so the same command continues after any end. docs/score.md
    describes both files.

    Exit codes: 0 all is determined, 2 something is undetermined, 64 wrong usage or input, 130
    interrupted.
    """
    # The first line, while there are no other locals than the arguments.
    of_methods = {name: value for name, value in locals().items() if name in OPTIONS}
    maker = METHODS.get(method)
    if maker is None:
        raise typer.BadParameter(
            f"expected one of {', '.join(METHODS)}, got {method!r}", param_hint="--method"
        )
    if list_configs:
        with pipe_may_close():
            for name, line in maker.configurations.items():
                typer.echo(f"{name}: {line}")
        return PASSED
    if file is None:
        raise typer.BadParameter("expected a file, or - for standard input", param_hint="FILE")
    of_methods["threshold"] = read_threshold(threshold)
    options = {name: value for name, value in of_methods.items() if value not in (None, [])}
    _known(maker, method, options)
    prices = read_prices(price_in, price_out)
    at_once = max_concurrency or ROWS_AT_ONCE
    if ray is not None:
        options["ray"] = ray
    try:
        with contextlib.redirect_stdout(sys.stderr), _file(file, out) as (path, name, target):
            with usable():
                data = Data(path, name, read_fields(fields or ()), maker.check(options), limit)
            with read_input(data) as rows:
                with usable():
                    chosen = maker.make(options, target)
                    make = partial(evaluators_of, method, options, target)
                here = contextlib.nullcontext(chosen)
                there = ray and on_ray(ray, chosen, make, at_once, rows.count)
                with (
                    there or here as scoring,
                    open_run(
                        rows,
                        scoring.evaluators,
                        target,
                        settings={"demur": __version__, "method": method, **chosen.settings},
                        rows_at_once=at_once,
                        restart=restart,
                        retry=retry,
                    ) as run,
                ):
                    ask = scoring.prepare
                    first = None if ask is None else partial(_prepare, run, ask, prices)
                    if not carry_out(run, "scoring", prices, first):
                        return INTERRUPTED
                    summary = summarise(run.ledger, run.evaluators)
                chosen.close()
    except ScoringError as error:
        complain(str(error))
        return USAGE
    with pipe_may_close():
        if as_json:
            print_json({"results": str(target), **as_json_values(summary, prices)})
        else:
            show(output(), summary, prices)
            terminal.say(output(), terminal.one_line(f"results: {target}"))
    return UNDECIDED if any(figure.undetermined for figure in summary.figures) else PASSED


def _known(maker: Maker, method: str, options: Iterable[str]) -> None:
    """Refuse an option that the method does not have, instead of ignoring it."""
    for name in options:
        if name not in maker.options:
            option = "--" + name.replace("_", "-")
            raise typer.BadParameter(f"it has no effect with --method {method}", param_hint=option)


@contextlib.contextmanager
def _file(file: str, out: Path | None) -> Iterator[tuple[Path, str, Path]]:
    """Yield the input file, its name for messages, and the results file.

    Standard input is read to its end and kept in a temporary file.
    """
    if file != "-":
        path = Path(file)
        yield path, file, out or path.with_name(f"{path.stem}.scores.jsonl")
        return
    if out is None:
        raise typer.BadParameter("results of standard input need a file: name one with -o")
    with tempfile.TemporaryDirectory(prefix="demur-") as folder:
        path = Path(folder) / "rows.jsonl"
        with path.open("wb") as spooled:
            shutil.copyfileobj(sys.stdin.buffer, spooled)
        yield path, "standard input", out


def _prepare(run: Run, ask: Prepare, prices: Prices | None, report: Report) -> None:
    """Have the references asked about all questions, and show the progress."""

    def show(now: Fitted) -> None:
        failed = f"{len(now.failed):,} failed, " if now.failed else ""
        note = f"{failed}{spent(now.usage, prices)}"
        report("asking the references", note, now.done + len(now.failed), now.questions)

    run.prepare(ask, show)
