"""Run `demur compare`: score one labelled set with every detector, and compare them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.console import Console

from demur import __version__
from demur.cli.console import (
    INTERRUPTED,
    PASSED,
    UNDECIDED,
    USAGE,
    complain,
    errors,
    may_write,
    output,
    pipe_may_close,
    print_json,
    reason,
    table,
    write_page,
)
from demur.cli.data_sets import rows_of
from demur.cli.options import (
    MaxConcurrency,
    PriceIn,
    PriceOut,
    Restart,
    Retry,
    json_option,
    out_option,
    read_prices,
    unknown,
    usable,
)
from demur.cli.runs import ROWS_AT_ONCE, carry_out, policy_of
from demur.comparing import (
    DETECTORS,
    EXTRA,
    QUALITY,
    Comparison,
    Cost,
    Detector,
    Labelled,
    about,
    cost_heads,
    cost_rows,
    csv_table,
    markdown,
    pareto,
    quality_rows,
    read_comparison,
    read_labelled,
    write_notes,
)
from demur.errors import DemurError
from demur.evaluators import Evaluator, Judge, resolve_judge
from demur.observe.log import LogError, read_labels
from demur.scoring import (
    Data,
    ScoringError,
    is_results,
    open_run,
    read_fields,
    read_input,
)
from demur.views import terminal
from demur.views.report import comparison_page

_PRINTED = Path("-")


def compare(
    file: Annotated[
        str | None,
        typer.Argument(
            help="A file of labelled rows, the name of a data set of demur-research, or a file of "
            "findings that an earlier run wrote."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The model that detectors ask: local, local:FILE.gguf, openai:NAME or "
            "ollama:NAME; small: none, and only detectors that need none run. [default: local]"
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="A detector that --list names; may be repeated. [default: all but those with a "
            "yes-or-no judge]"
        ),
    ] = None,
    list_detectors: Annotated[bool, typer.Option("--list", help="List the detectors.")] = False,
    labels: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="A file of labels that replace the rows' own: CSV or JSON lines with the fields "
            "id and hallucinated.",
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            help="The field of the rows that holds a value, such as question=prompt, "
            "hallucinated=wrong or group=document; may be repeated.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder with the publisher's files of a named data set.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Compare only this many rows, drawn by their ids.")
    ] = None,
    limit_expensive: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Run detectors that make more than three calls an answer on this many rows only.",
        ),
    ] = None,
    out: Annotated[Path | None, out_option("the findings", "FILE.compare.jsonl")] = None,
    restart: Restart = False,
    retry: Retry = False,
    max_concurrency: MaxConcurrency = None,
    cost: Annotated[
        str, typer.Option(help="The cost of the Pareto line: tokens, seconds, calls or money.")
    ] = "tokens",
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    markdown_file: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            dir_okay=False,
            help="Write the tables as Markdown to this file; - prints them instead.",
        ),
    ] = None,
    csv_file: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            dir_okay=False,
            help="Write CSV with all digits to this file; - prints it instead.",
        ),
    ] = None,
    html_file: Annotated[
        Path | None,
        typer.Option("--html", dir_okay=False, help="Write a page with the chart to this file."),
    ] = None,
    as_json: Annotated[bool, json_option("the comparison as one line of JSON")] = False,
) -> int:
    """Compare how well detectors find hallucinated answers, and at what cost.

    Each line of FILE is a row of `demur score` with a label: hallucinated, true or false. Findings
    are written one by one, and after an interruption the same command continues. Given a file of
    findings, the command prints the figures again without a model. docs/compare.md explains the
    figures.

    Exit codes: 0 all is determined, 2 something is undetermined, 64 wrong usage or input, 130
    interrupted.
    """
    if list_detectors:
        _list()
        return PASSED
    if file is None:
        raise typer.BadParameter("expected a file or the name of a data set", param_hint="FILE")
    if cost not in get_args(Cost):
        expected = ", ".join(get_args(Cost))
        raise typer.BadParameter(f"expected one of {expected}, got {cost!r}", param_hint="--cost")
    prices = read_prices(price_in, price_out)
    if cost == "money" and prices is None:
        raise typer.BadParameter("money needs --price-in and --price-out", param_hint="--cost")
    path, pages = Path(file), (markdown_file, csv_file, html_file)
    try:
        given = {} if labels is None else read_labels(labels)
        shown: dict[str, Any] = {"given": given, "cost": cost, "prices": prices}
        if path.is_file() and is_results(path):
            _no_effect(
                model=model, field=fields, data=data, limit=limit, limit_expensive=limit_expensive,
                out=out, restart=restart, retry=retry, max_concurrency=max_concurrency,
            )  # fmt: skip
            may_write(pages, path, labels)
            target = path
            shown["only"] = method
        else:
            detectors = _chosen(method)
            with (
                contextlib.redirect_stdout(sys.stderr),
                rows_of(file, data) as (source, beside),
            ):
                target = out or beside.with_name(f"{beside.stem}.compare.jsonl")
                may_write(pages, source, target, labels)
                with usable("--field"):
                    mapping = read_fields(fields or (), EXTRA)
                labelled = read_labelled(
                    Data(source, source.name if source == beside else file, mapping, extra=EXTRA),
                    given,
                    detectors,
                    limit=limit,
                    limit_expensive=limit_expensive,
                )
                asked = model or "local"
                with usable("--model"):
                    judge = resolve_judge(asked)
                evaluators, left_out = _made(labelled, detectors, judge, max_concurrency)
                if method is not None and left_out:
                    name, why = next(iter(left_out.items()))
                    raise typer.BadParameter(f"{name}: {why}", param_hint="--method")
                with (
                    read_input(labelled.data) as rows,
                    open_run(
                        rows,
                        evaluators,
                        target,
                        settings={"demur": __version__, "command": "compare", "model": asked},
                        rows_at_once=max_concurrency or ROWS_AT_ONCE,
                        restart=restart,
                        retry=retry,
                        wants=lambda key, name: labelled.wants(key, DETECTORS[name]),
                    ) as run,
                ):
                    if labelled.unlabelled:
                        count = f"{labelled.unlabelled:,}"
                        terminal.say(errors(), f"answers without a label, left out: {count}")
                    _say_left_out(errors(), left_out)
                    write_notes(run.results, labelled.notes(asked, left_out))
                    if not carry_out(run, "comparing", prices):
                        return INTERRUPTED
            shown |= {"labels": labelled.labels, "only": evaluators}
        comparison = read_comparison(target, **shown)
    except (ScoringError, LogError) as error:
        complain(str(error))
        return USAGE
    missing = {*(method or ())} - {one.name for one in comparison.detectors}
    if missing:
        message = terminal.one_line(f"{target} holds no findings of {min(missing)!r}")
        raise typer.BadParameter(message, param_hint="--method")
    printed: list[str] = []
    for page, text in zip(pages, (markdown, csv_table, comparison_page), strict=True):
        if page == _PRINTED:
            printed.append(text(comparison))
        elif page is not None:
            write_page(page, text(comparison))
    with pipe_may_close():
        if printed:
            typer.echo("\n".join(printed), nl=False)
        elif as_json:
            print_json({"results": str(target), **vars(comparison)})
        else:
            _show(comparison)
            terminal.say(output(), terminal.one_line(f"findings: {target}"))
    return UNDECIDED if any(one.undetermined for one in comparison.detectors) else PASSED


def _chosen(names: Sequence[str] | None) -> list[Detector]:
    """Return the detectors that were named, in their own order; else all but `on_request`."""
    for name in names or ():
        if name not in DETECTORS:
            message = unknown("detector", name, DETECTORS, "--list")
            raise typer.BadParameter(message, param_hint="--method")
    return [
        one
        for name, one in DETECTORS.items()
        if (not one.on_request if names is None else name in names)
    ]


def _no_effect(**given: Any) -> None:
    """Refuse options for asking models, because the findings are there already."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise typer.BadParameter(
                "it has no effect on what was found already",
                param_hint=f"--{name.replace('_', '-')}",
            )


def _made(
    labelled: Labelled,
    detectors: Iterable[Detector],
    judge: Judge,
    at_once: int | None,
) -> tuple[dict[str, Evaluator], dict[str, str]]:
    """Return the evaluators that data and model allow, and the reason for each that is left out."""
    policy = policy_of(judge, at_once)
    evaluators, left_out = dict[str, Evaluator](), dict[str, str]()
    for one in detectors:
        why = labelled.lacks(one) or one.unfit(judge)
        if why is None:
            try:
                evaluators[one.name] = one.make(judge, name=one.name, call_policy=policy)
            except (DemurError, ValueError) as error:
                why = reason(error)
        if why is not None:
            left_out[one.name] = terminal.one_line(why)
    return evaluators, left_out


def _list() -> None:
    rows = [
        [one.name, "grows" if one.calls is None else str(one.calls), one.what]
        for one in DETECTORS.values()
    ]
    with pipe_may_close():
        table(output(), ["detector", "calls", "what it does"], [], rows, whole=["detector"])


def _show(comparison: Comparison) -> None:
    console = output()
    for sentence in about(comparison):
        terminal.say(console, sentence)
    table(console, ["detector", "line"], QUALITY, quality_rows(comparison), whole=["detector"])
    heads = cost_heads(comparison)
    table(console, ["per answer"], heads, cost_rows(comparison), whole=["per answer"])
    terminal.say(console, pareto(comparison))
    _say_left_out(console, comparison.left_out)


def _say_left_out(console: Console, left_out: Mapping[str, str]) -> None:
    for name, why in left_out.items():
        terminal.say(console, terminal.one_line(f"left out: {name}: {why}"))
