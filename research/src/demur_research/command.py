"""`demur-bench`: published experiments, repeated from recorded replies or with another model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from demur._resolve import resolve_model
from demur.cli import progress
from demur.cli.console import errors, escaped, need_subcommand, output, pipe_may_close, run_app
from demur.views import terminal as display
from demur_research import methods as live
from demur_research import phd as on_phd
from demur_research import wikibio as on_wikibio
from demur_research.datasets.phd import Judged, read_passages, read_phd_records
from demur_research.datasets.recorded import Records
from demur_research.datasets.wikibio import read_biographies, read_wikibio_records
from demur_research.detection import Ratio
from demur_research.replay import KNOWN, PERCENTAGE, Judging, replay

app = typer.Typer(
    name="demur-bench",
    help="Published experiments, repeated from recorded replies or with another model.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_Read = TypeVar("_Read")
_Records = Annotated[
    Path,
    typer.Option(help="The recorded replies: the publishers' folder, or one file of them."),
]
_Matcher = Annotated[
    str | None,
    typer.Option(help=f"Only this decision of stage 3: {', '.join(KNOWN)}. [default: all]"),
]
_Percentage = Annotated[
    float,
    typer.Option(
        min=0,
        max=100,
        help="The least percentage that entity matching has to give (published_em has its own).",
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print the rows as a JSON list.")]


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing that goes wrong is raised."""
    return run_app(app, "demur-bench", argv)


@app.callback(invoke_without_command=True)
def _top(context: typer.Context) -> None:
    need_subcommand(context)


@app.command()
def phd(
    data: Annotated[Path, typer.Option(help="PHD_benchmark.json, or its passages as .jsonl.")],
    records: Annotated[
        Path,
        typer.Option(
            help="The recorded replies: the publishers' folder, one file of them, or what "
            "`demur-bench record` wrote."
        ),
    ],
    matcher: _Matcher = None,
    percentage: _Percentage = PERCENTAGE,
    selfcheck_threshold: Annotated[
        float | None,
        typer.Option(
            help="Judge recorded SelfCheck scores too: above it a passage is rejected.",
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Detection of passages that are not factual, on PHD: F1, precision and recall by domain."""
    passages: Sequence[Judged] = _read(lambda: read_passages(data), "--data")
    if live.is_recording(records):
        if selfcheck_threshold is not None:
            raise typer.BadParameter(
                "it has no effect with a recording of `demur-bench record`, which holds no scores",
                param_hint="--selfcheck-threshold",
            )
        passages, judged = _read(lambda: _recorded(records, passages, percentage), "--records")
    else:
        joined = _read(lambda: read_phd_records(records, passages), "--records")
        judged = replay(passages, joined, percentage, selfcheck_threshold)
        _tell(joined, len(passages))
    rows = _read(lambda: on_phd.table(passages, judged, matcher), "--matcher")
    heads = ["method", "matcher", "domain", "tp", "fp", "fn", "tn", "F1", "95 %", "P", "95 %"]
    heads += ["R", "95 %", "F1 over published", "95 %", "undetermined", "missing"]
    heads += ["tokens", "seconds"]
    _show(heads, [_phd_cells(row) for row in rows], [row.plain() for row in rows], as_json)


@app.command()
def record(
    data: Annotated[Path, typer.Option(help="PHD_benchmark.json, or its passages as .jsonl.")],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", dir_okay=False, help="The recording; what is there is kept."),
    ],
    method: Annotated[
        list[str] | None,
        typer.Option(help=f"One of {', '.join(live.METHODS)}; may be repeated. [default: all]"),
    ] = None,
    model: Annotated[
        str, typer.Option(help="local, local:FILE.gguf, openai:NAME or ollama:NAME")
    ] = "local",
    passages: Annotated[int | None, typer.Option(min=1, help="So many only.")] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Judge again what was left undetermined.")
    ] = False,
) -> None:
    """Have a model judge passages of PHD by the methods, for `demur-bench phd --records`.

    The same command goes on where an earlier one was stopped.
    """
    for name in method or ():
        if name not in live.METHODS:
            known = ", ".join(live.METHODS)
            raise typer.BadParameter(
                f"expected one of {known}, got {name!r}", param_hint="--method"
            )
    asked = _read(lambda: live.drawn(read_passages(data), passages), "--data")
    chat = _read(lambda: resolve_model(model), "--model")
    cut = _read(lambda: live.mend(out), "--out")
    if cut:
        display.say(errors(), f"{out} ended in a line that was not whole: {cut} bytes cut")
    with progress.counts() as report:
        _read(
            lambda: live.record(
                asked,
                method or list(live.METHODS),
                chat,
                out,
                lambda done, total: report("judging", str(out), done, total),
                retry,
            ),
            "--out",
        )


@app.command()
def wikibio(
    data: Annotated[
        Path,
        typer.Option(help="JSON lines with id, entity, passage, labels and in_rv_subset."),
    ],
    records: _Records,
    matcher: _Matcher = None,
    percentage: _Percentage = PERCENTAGE,
    as_json: _Json = False,
) -> None:
    """Rejected passages on WikiBio-GPT3, where all are wrong: how many, and how little wrong."""
    passages = _read(lambda: read_biographies(data), "--data")
    joined = _read(lambda: read_wikibio_records(records, passages), "--records")
    rows = _read(lambda: on_wikibio.table(passages, joined, matcher, percentage), "--matcher")
    _tell(joined, len(passages))
    heads = ["method", "matcher", "passages", "rejected", "accuracy", "95 %"]
    heads += ["least wrong of them", "undetermined", "missing"]
    _show(heads, [_wikibio_cells(row) for row in rows], [row.plain() for row in rows], as_json)


def _read(reading: Callable[[], _Read], option: str) -> _Read:
    try:
        return reading()
    except ValueError as error:
        raise typer.BadParameter(display.one_line(str(error)), param_hint=option) from error


def _recorded(
    path: Path, passages: Sequence[Judged], percentage: float
) -> tuple[Sequence[Judged], list[Judging]]:
    """What a recording holds, and the passages that it is about."""
    lines = list(live.read(path, passages))
    if not lines:
        raise ValueError(f"{path}: nothing in it is about a passage of the data")
    about = {line.key for line in lines}
    judged = list(live.judgings(passages, lines, percentage))
    return [one for one in passages if one.key in about], judged


def _tell(records: Records, passages: int) -> None:
    """What of the records and of the data does not fit together."""
    missing = passages - len(records.by_key)
    if missing:
        display.say(errors(), f"{missing} of {passages} passages have no record: not in the rows")
    if records.left_over:
        names = ", ".join(records.left_over)
        count = len(records.left_over)
        display.say(errors(), f"{count} records are of passages that the data lacks: {names}")


def _phd_cells(row: on_phd.Row) -> list[str]:
    counts, figures = row.figures.counts, row.figures
    return [
        *(row.method, row.matcher or "-", row.domain),
        *(str(count) for count in (counts.tp, counts.fp, counts.fn, counts.tn)),
        *(*_cells(figures.f1), *_cells(figures.precision), *_cells(figures.recall)),
        *(*_cells(row.over_published, "+"), str(row.undetermined), str(row.missing)),
        *(
            ("-", "-")
            if row.cost is None
            else (f"{row.cost.tokens:.0f}", f"{row.cost.seconds:.1f}")
        ),
    ]


def _wikibio_cells(row: on_wikibio.Row) -> list[str]:
    least = "-" if row.min_ratio is None else f"{row.min_ratio:.1f}"
    return [
        *(row.method, row.matcher or "-", str(row.passages), str(row.rejected)),
        *(*_cells(row.accuracy), least, str(row.undetermined), str(row.missing)),
    ]


def _cells(ratio: Ratio, sign: str = "") -> tuple[str, str]:
    if ratio.value is None:
        return "-", "-"
    bounds = ratio.interval
    told = f"{bounds[0]:{sign}.1f} to {bounds[1]:{sign}.1f}" if bounds else "-"
    return f"{ratio.value:{sign}.2f}", told


def _show(heads: Sequence[str], cells: Sequence[Sequence[str]], plain: Any, as_json: bool) -> None:
    with pipe_may_close():
        if as_json:
            typer.echo(escaped(json.dumps(plain, allow_nan=False)))
        else:
            _table(output(), heads, cells)


def _table(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on a terminal; lines with tabs in a pipe."""
    if not console.is_terminal:
        for row in [heads, *rows]:
            console.file.write("\t".join(row) + "\n")  # print has no tabs
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        left = head in ("method", "matcher", "domain")
        table.add_column(head, justify="left" if left else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
