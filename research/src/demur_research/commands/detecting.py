"""`demur-bench phd`, `record`, `wikibio`: passages that are not factual, detected."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from demur.cli.console import errors, escaped, output, pipe_may_close, table
from demur.views import terminal
from demur_research import methods
from demur_research import phd as on_phd
from demur_research import wikibio as on_wikibio
from demur_research.commands.options import (
    AtOnce,
    ModelName,
    Out,
    Retry,
    attempt,
    model_of,
    names,
    session,
)
from demur_research.datasets.phd import LabelledPassage, read_passages, read_phd_records
from demur_research.datasets.published import PublishedReplies
from demur_research.datasets.wikibio import read_biographies, read_wikibio_records
from demur_research.detection import Ratio
from demur_research.recorder import is_recording, read
from demur_research.replay import KNOWN, PERCENTAGE, Judging, replay

_Data = Annotated[Path, typer.Option(help="PHD_benchmark.json, or its passages as .jsonl.")]
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


def phd(
    data: _Data,
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
    passages: Sequence[LabelledPassage] = attempt(lambda: read_passages(data), "--data")
    if is_recording(records):
        if selfcheck_threshold is not None:
            raise typer.BadParameter(
                "it has no effect with a recording of `demur-bench record`, which holds no scores",
                param_hint="--selfcheck-threshold",
            )
        passages, judged = attempt(lambda: _recorded(records, passages, percentage), "--records")
    else:
        joined = attempt(lambda: read_phd_records(records, passages), "--records")
        judged = replay(passages, joined, percentage, selfcheck_threshold)
        _tell(joined, len(passages))
    rows = attempt(lambda: on_phd.table(passages, judged, matcher), "--matcher")
    heads = ["method", "matcher", "domain", "tp", "fp", "fn", "tn", "F1", "95 %", "P", "95 %"]
    heads += ["R", "95 %", "F1 over published", "95 %", "undetermined", "missing"]
    heads += ["tokens", "seconds"]
    _show(heads, [_phd_cells(row) for row in rows], [row.plain() for row in rows], as_json)


def record(
    data: _Data,
    out: Out,
    method: Annotated[
        list[str] | None,
        typer.Option(help=f"One of {', '.join(methods.METHODS)}; may be repeated. [default: all]"),
    ] = None,
    model: ModelName = "local",
    passages: Annotated[int | None, typer.Option(min=1, help="So many only.")] = None,
    at_once: AtOnce = 1,
    retry: Retry = False,
) -> None:
    """Have a model judge passages of PHD by the methods, for `demur-bench phd --records`.

    The same command goes on where an earlier one was stopped.
    """
    chosen = names(method, methods.METHODS, "--method")
    items = attempt(lambda: methods.items(read_passages(data), passages), "--data")
    chat = model_of(model)
    with session(out, items, chat, at_once, retry) as open_session:
        open_session.judge(items, methods.judges(chosen, chat))


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
    passages = attempt(lambda: read_biographies(data), "--data")
    joined = attempt(lambda: read_wikibio_records(records, passages), "--records")
    rows = attempt(lambda: on_wikibio.table(passages, joined, matcher, percentage), "--matcher")
    _tell(joined, len(passages))
    heads = ["method", "matcher", "passages", "rejected", "accuracy", "95 %"]
    heads += ["least wrong of them", "undetermined", "missing"]
    _show(heads, [_wikibio_cells(row) for row in rows], [row.plain() for row in rows], as_json)


def _recorded(
    path: Path, passages: Sequence[LabelledPassage], percentage: float
) -> tuple[Sequence[LabelledPassage], list[Judging]]:
    """What a recording holds, and the passages that it is about."""
    lines = list(read(path, methods.items(passages)).values())
    if not lines:
        raise ValueError(f"{path}: nothing in it is about a passage of the data")
    about = {line.item for line in lines}
    judged = list(methods.judgings(passages, lines, percentage))
    return [passage for passage in passages if passage.key in about], judged


def _tell(records: PublishedReplies, passages: int) -> None:
    """What of the records and of the data does not fit together."""
    missing = passages - len(records.by_key)
    if missing:
        terminal.say(errors(), f"{missing} of {passages} passages have no record: not in the rows")
    if records.left_over:
        names = ", ".join(records.left_over)
        count = len(records.left_over)
        terminal.say(errors(), f"{count} records are of passages that the data lacks: {names}")


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
            at = sum(head in ("method", "matcher", "domain") for head in heads)
            table(output(), heads[:at], heads[at:], cells)
