"""`demur compare`: every detector over one labelled set, side by side."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from demur import __version__, resolve_model
from demur._jsonl import write_whole
from demur.cli import figures
from demur.cli.console import (
    INTERRUPTED,
    PASSED,
    UNDECIDED,
    USAGE,
    complain,
    errors,
    escaped,
    output,
    pipe_may_close,
    reason,
    table,
)
from demur.cli.data_sets import rows_of
from demur.cli.figures import Prices
from demur.cli.progress import Report, counts
from demur.cli.score import say_stopped, say_what_was_there
from demur.comparing import (
    DETECTORS,
    EXTRA,
    GROUP,
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
from demur.evaluators import Evaluator
from demur.observe.log import read_labels
from demur.report import write_comparison
from demur.runtime import policy_for
from demur.scoring import (
    Data,
    Progress,
    ScoringError,
    is_results,
    open_run,
    read_fields,
    read_input,
)
from demur.views import terminal

_ROWS_AT_ONCE = 16


def compare(
    file: Annotated[
        str | None,
        typer.Argument(
            help="A file of labelled rows, the name of a set of demur-research, or what an earlier "
            "run wrote."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="local, local:FILE.gguf, openai:NAME or ollama:NAME. [default: local]"),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="A detector that --list names; may be repeated. [default: all]"),
    ] = None,
    list_detectors: Annotated[bool, typer.Option("--list", help="List the detectors.")] = False,
    labels: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="Which answers are hallucinated, beside or instead of the rows' own labels: CSV "
            "or JSON lines with the fields id and hallucinated.",
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            help="Where the rows hold what, such as question=prompt or hallucinated=wrong; may be "
            "repeated.",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="Answers that belong together, such as those of a document."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where the publisher's files of a named set are.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Compare so many rows, drawn by their ids.")
    ] = None,
    limit_expensive: Annotated[
        int | None,
        typer.Option(
            min=1, help="Ask detectors of more than three calls an answer about so many rows only."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", dir_okay=False, help="The findings. [default: FILE.compare.jsonl]"
        ),
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew; findings that are there are put aside.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Ask again about what was left undetermined.")
    ] = False,
    max_concurrency: Annotated[
        int | None,
        typer.Option(
            min=1, help="Rows at a time, and calls to one model. [default: 16, and as it bears]"
        ),
    ] = None,
    cost: Annotated[
        str, typer.Option(help="What the Pareto line weighs: tokens, seconds, calls or money.")
    ] = "tokens",
    price_in: Annotated[
        float | None, typer.Option(min=0, help="Price of a million tokens of prompts.")
    ] = None,
    price_out: Annotated[
        float | None, typer.Option(min=0, help="Price of a million tokens of replies.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the halves and of the bootstrap.")] = 0,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", dir_okay=False, help="Write Markdown tables.")
    ] = None,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", dir_okay=False, help="Write a table of all digits.")
    ] = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", dir_okay=False, help="Write a page with the chart.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparison as one line of JSON.")
    ] = False,
) -> int:
    """Compare how well detectors tell hallucinated answers, and at what cost.

    Each line of FILE is a row of `demur score` with a label: hallucinated, true or false. Findings
    are written one by one: the same command goes on after any end. Given what it wrote, the command
    prints the figures again without a model. docs/compare.md says what they mean.

    Exit codes: 0 all is determined, 2 something is not, 64 wrong usage or input, 130 interrupted.
    """
    if list_detectors:
        _list()
        return PASSED
    if file is None:
        raise typer.BadParameter(
            "a file, or the name of a data set, is expected", param_hint="FILE"
        )
    if cost not in get_args(Cost):
        expected = ", ".join(get_args(Cost))
        raise typer.BadParameter(f"expected one of {expected}, got {cost!r}", param_hint="--cost")
    prices = None if price_in is None and price_out is None else (price_in or 0.0, price_out or 0.0)
    if cost == "money" and prices is None:
        raise typer.BadParameter("money needs --price-in and --price-out", param_hint="--cost")
    detectors = _chosen(method)
    path, pages = Path(file), (markdown_file, csv_file, html_file)
    try:
        given = {} if labels is None else read_labels(labels)
        show: dict[str, Any] = {"given": given, "cost": cost, "prices": prices, "seed": seed}
        if path.is_file() and is_results(path):
            _no_effect(
                model=model, field=fields, group=group, data=data, limit=limit, out=out,
                limit_expensive=limit_expensive, restart=restart, retry=retry,
                max_concurrency=max_concurrency,
            )  # fmt: skip
            _may_write(pages, path, labels)
            target = path
            show["only"] = None if method is None else [detector.name for detector in detectors]
        else:
            mapping = _fields(fields, group)
            with (
                contextlib.redirect_stdout(sys.stderr),
                rows_of(file, data) as (source, beside),
            ):
                target = out or beside.with_name(f"{beside.stem}.compare.jsonl")
                _may_write(pages, source, target, labels)
                labelled = read_labelled(
                    Data(source, source.name if source == beside else file, mapping, extra=EXTRA),
                    given,
                    detectors,
                    limit=limit,
                    limit_expensive=limit_expensive,
                )
                asked = _made(labelled, detectors, model or "local", max_concurrency)
                if method is not None and asked.left_out:
                    name, why = next(iter(asked.left_out.items()))
                    raise typer.BadParameter(f"{name}: {why}", param_hint="--method")
                options = {"restart": restart, "retry": retry}
                if not _carry_out(labelled, asked, target, prices, **options):
                    return INTERRUPTED
            show |= {"labels": labelled.labels, "only": list(asked.evaluators)}
        comparison = read_comparison(target, **show)
    except ScoringError as error:
        complain(str(error))
        return USAGE
    if markdown_file is not None:
        _write(partial(write_whole, content=markdown(comparison).encode()), markdown_file)
    if csv_file is not None:
        _write(partial(write_whole, content=csv_table(comparison).encode()), csv_file)
    if html_file is not None:
        _write(partial(write_comparison, comparison), html_file)
    with pipe_may_close():
        if as_json:
            held = {"results": str(target), **dataclasses.asdict(comparison)}
            typer.echo(escaped(json.dumps(held)))
        else:
            _show(comparison)
            terminal.say(output(), terminal.one_line(f"findings: {target}"))
    return UNDECIDED if any(one.undetermined for one in comparison.detectors) else PASSED


# -- what was asked for ----------------------------------------------------------------------------


def _chosen(names: Sequence[str] | None) -> list[Detector]:
    """The detectors that were named, in their own order; all of them without a name."""
    for name in names or ():
        if name not in DETECTORS:
            close = difflib.get_close_matches(name, DETECTORS, 3)
            hint = f"did you mean {' or '.join(close)}? " if close else ""
            raise typer.BadParameter(
                terminal.one_line(f"unknown detector {name!r}: {hint}--list lists them"),
                param_hint="--method",
            )
    return [one for name, one in DETECTORS.items() if names is None or name in names]


def _fields(texts: Sequence[str] | None, group: str | None) -> dict[str, str]:
    wanted = [*(texts or ()), *([] if group is None else [f"{GROUP}={group}"])]
    try:
        return read_fields(wanted, EXTRA)
    except ValueError as error:
        raise typer.BadParameter(reason(error), param_hint="--field") from error


def _no_effect(**given: Any) -> None:
    """Refuse options that say what to ask, where nothing is asked any more."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise typer.BadParameter(
                "it has no effect on what was found already",
                param_hint=f"--{name.replace('_', '-')}",
            )


def _may_write(pages: Iterable[Path | None], *read: Path | None) -> None:
    for page in pages:
        if page is not None and any(one and one.resolve() == page.resolve() for one in read):
            raise typer.BadParameter(terminal.one_line(f"{page} would replace what is read"))


@dataclass(frozen=True)
class _Asked:
    """Who is asked."""

    model: str
    evaluators: Mapping[str, Evaluator]
    left_out: Mapping[str, str]
    """Detectors that are not, each with why."""
    at_once: int


def _made(
    labelled: Labelled, detectors: Iterable[Detector], name: str, at_once: int | None
) -> _Asked:
    """Make the detectors that the data and the model allow."""
    try:
        model = resolve_model(name)
    except ValueError as error:
        raise typer.BadParameter(reason(error), param_hint="--model") from error
    policy = None if at_once is None else replace(policy_for(model, None), max_concurrency=at_once)
    evaluators, left_out = dict[str, Evaluator](), dict[str, str]()
    for detector in detectors:
        why = labelled.lacks(detector) or detector.fits(model)
        if why is None:
            try:
                evaluators[detector.name] = detector.make(
                    model, name=detector.name, call_policy=policy
                )
            except (DemurError, ValueError) as error:
                why = reason(error)
        if why is not None:
            left_out[detector.name] = terminal.one_line(why)
    return _Asked(name, evaluators, left_out, at_once or _ROWS_AT_ONCE)


# -- asking ----------------------------------------------------------------------------------------


def _carry_out(
    labelled: Labelled, asked: _Asked, target: Path, prices: Prices | None, **options: bool
) -> bool:
    """Ask about what is missing; False after an interrupt."""
    with (
        read_input(labelled.data) as rows,
        open_run(
            rows,
            asked.evaluators,
            target,
            settings={"demur": __version__, "command": "compare", "model": asked.model},
            rows_at_once=asked.at_once,
            wants=lambda key, name: labelled.wants(key, DETECTORS[name]),
            **options,
        ) as run,
    ):
        say_what_was_there(run.results)
        _say_what_is_missing(labelled, asked)
        write_notes(run.results, labelled.notes(asked.model, asked.left_out))
        try:
            with counts() as report:
                run.score(partial(_report, report, prices))
        except KeyboardInterrupt:
            say_stopped(run)
            return False
    return True


def _say_what_is_missing(labelled: Labelled, asked: _Asked) -> None:
    if labelled.unlabelled:
        terminal.say(errors(), f"without a label, and left out: {labelled.unlabelled:,} answers")
    for name, why in asked.left_out.items():
        terminal.say(errors(), f"left out: {name}: {why}")


def _report(report: Report, prices: Prices | None, now: Progress) -> None:
    open_cases = f"{now.undetermined:,} undetermined, " if now.undetermined else ""
    report("comparing", f"{open_cases}{figures.spent(now.usage, prices)}", now.done, now.total)


# -- what comes of it ------------------------------------------------------------------------------


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
    for name, why in comparison.left_out.items():
        terminal.say(console, terminal.one_line(f"left out: {name}: {why}"))


def _write(write: Callable[[Path], None], goal: Path) -> None:
    try:
        write(goal)
    except OSError as error:
        raise DemurError(f"cannot write {goal}: {error.strerror or error}") from error
