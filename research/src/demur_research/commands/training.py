"""Define `demur-bench train`, which trains judges like demur's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from demur import DemurError
from demur.cli import progress
from demur.cli.console import need_subcommand, output
from demur.cli.console import table as print_table
from demur.local import QWEN, model_dir
from demur_research.building.writing import refuse_if_there
from demur_research.commands.options import Seed, attempt, say
from demur_research.recipe.deduplicating import read_evaluated, split
from demur_research.recipe.mixing import mixed
from demur_research.recipe.rows import TrainingRow, read_own, read_rows, write_rows
from demur_research.recipe.sources import SOURCES, read_sources

if TYPE_CHECKING:
    from demur_research.recipe.adapter import Judge
    from demur_research.recipe.encoder import PairJudge
    from demur_research.recipe.training import Trained

app = typer.Typer(help="Train judges like demur's own.", rich_markup_mode=None)

_CHECKED = 32
"""The number of rows by which an exported file is compared with PyTorch."""

Rows = Annotated[Path, typer.Argument(metavar="ROWS.jsonl", help="A file of `train rows`.")]
Seconds = Annotated[float, typer.Option(min=1, help="The seconds to train for, at most.")]


@app.callback(invoke_without_command=True)
def _top(context: typer.Context) -> None:
    need_subcommand(context)


@app.command()
def rows(
    out: Annotated[
        Path, typer.Option("-o", "--out", dir_okay=False, help="The file to write (.jsonl, .gz).")
    ],
    checkouts: Annotated[
        Path | None,
        typer.Option(
            help="The folder of checkouts of public repositories, as OWNER/NAME. [default: none]"
        ),
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(help="A public source to read. [default: all]")
    ] = None,
    own: Annotated[
        list[Path] | None,
        typer.Option(help="JSON lines of your own: passages and, if labelled, claim and label."),
    ] = None,
    apart: Annotated[
        list[Path] | None,
        typer.Option(help="Evaluation rows that must not be trained on, as `judges` reads them."),
    ] = None,
    worlds: Annotated[
        int, typer.Option(min=0, help="The number of invented worlds to make rows of.")
    ] = 800,
    seed: Seed = 0,
) -> None:
    """Make training rows from public repositories, from your own rows, and by rules."""
    attempt(lambda: refuse_if_there(out), "--out")
    unknown = [name for name in source or () if name not in SOURCES]
    if unknown:
        told = f"expected one of {', '.join(SOURCES)}, got {unknown[0]!r}"
        raise typer.BadParameter(told, param_hint="--source")
    if source and checkouts is None:
        raise typer.BadParameter("name the folder of checkouts", param_hint="--checkouts")
    evaluated = attempt(lambda: read_evaluated(apart or ()), "--apart")
    mine = attempt(lambda: [read_own(path) for path in own or ()], "--own")
    wanted = [SOURCES[name] for name in source or SOURCES]
    folder = checkouts
    found = [] if folder is None else attempt(lambda: read_sources(folder, wanted), "--checkouts")
    kept = mixed(found, mine, worlds, evaluated, seed)
    if not kept.rows:
        raise typer.BadParameter("there is nothing to make rows from", param_hint="--checkouts")
    attempt(lambda: write_rows(out, kept.rows), "--out")
    licences = {name: known.licence for name, known in SOURCES.items()}
    counts = Counter(row.source for row in kept.rows)
    kinds = [[name, licences.get(name, "-"), f"{count:,}"] for name, count in counts.items()]
    dropped = [[f"dropped: {why}", "-", f"{count:,}"] for why, count in kept.dropped.items()]
    print_table(output(), ["rows", "licence"], ["number"], [*kinds, *dropped])


@app.command()
def adapter(
    rows: Rows,
    out: Annotated[
        Path, typer.Option("-o", "--out", dir_okay=False, help="The adapter to write (.gguf).")
    ],
    base: Annotated[
        Path | None,
        typer.Option(help="The GGUF of the base model. [default: that of `demur models pull`]"),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(help="The adapter to go on from, such as demur's. [default: a new one]"),
    ] = None,
    seconds: Seconds = 200,
    seed: Seed = 0,
) -> None:
    """Train a LoRA adapter for a language model, and check it with llama.cpp.

    Without a GPU, 200 seconds are a few steps.
    """
    with _extra():
        from demur_research.recipe import adapter as of
        from demur_research.recipe import exporting
        from demur_research.recipe.training import train_judge
    attempt(lambda: refuse_if_there(out), "--out")
    training, held = split(attempt(lambda: read_rows(rows), "ROWS.jsonl"))
    weights = base or model_dir() / QWEN.file
    judge = attempt(lambda: of.load(weights, start, seed=seed), "--base, --start")
    schedule = replace(of.SCHEDULE if start is None else of.AGAIN, seconds=seconds)
    with _progress() as report:
        done = attempt(lambda: train_judge(judge, training, schedule, seed, report), "ROWS.jsonl")
    attempt(lambda: of.save(judge, out), "--out")
    compared = _compared(judge, held, training)
    apart = attempt(lambda: exporting.check_adapter(weights, out, judge, compared), "--out")
    _tell(done, apart, f"llama.cpp with {out}")


@app.command()
def encoder(
    rows: Rows,
    base: Annotated[
        Path,
        typer.Option(
            file_okay=False,
            help="The folder of the base encoder, such as multilingual-e5-small, or of an earlier "
            "training.",
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", file_okay=False, help="The folder to write.")],
    seconds: Seconds = 1800,
    pieces: Annotated[
        int, typer.Option(min=1, help="The number of pieces of the vocabulary to keep.")
    ] = 80_000,
    seed: Seed = 0,
) -> None:
    """Train a small cross-encoder, write it as ONNX with 8 bits, and check it.

    The folder gets judge-small-int8.onnx and judge-small-tokenizer.json, as demur reads them, and
    the weights for PyTorch.
    """
    with _extra():
        from demur_research.recipe import encoder as of
        from demur_research.recipe import exporting
        from demur_research.recipe.training import train_judge
    attempt(lambda: refuse_if_there(out), "--out")
    training, held = split(attempt(lambda: read_rows(rows), "ROWS.jsonl"))
    loaded = attempt(lambda: of.load(base, seed), "--base")
    judge = attempt(lambda: of.cut_vocabulary(loaded, training, pieces), "--base")
    schedule = replace(of.SCHEDULE, seconds=seconds)
    with _progress() as report:
        done = attempt(lambda: train_judge(judge, training, schedule, seed, report), "ROWS.jsonl")
    attempt(lambda: of.save(judge, out), "--out")
    compared = _compared(judge, held, training)
    apart = attempt(lambda: exporting.export_encoder(judge, compared, out), "--out")
    _tell(done, apart, f"the ONNX file in {out}")


def _compared(
    judge: Judge | PairJudge, held: Sequence[TrainingRow], training: Sequence[TrainingRow]
) -> list[TrainingRow]:
    """Return rows that are not too long for the judge, those that it was not trained on first."""
    short = (row for row in chain(held, training) if judge.encoded(row) is not None)
    return list(islice(short, _CHECKED))


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise DemurError(
            f"training needs {error.name}. In a checkout, run: pip install './research[train]'"
        ) from error


@contextmanager
def _progress() -> Iterator[Callable[[int, float, float], None]]:
    with progress.counts() as report:
        yield lambda steps, done, loss: report(
            "training", f"{steps:,} steps, loss {loss:.2f}", round(1000 * done), 1000
        )


def _tell(done: Trained, apart: float, file: str) -> None:
    tenth = max(1, len(done.losses) // 10)
    first, last = (sum(part) / tenth for part in (done.losses[:tenth], done.losses[-tenth:]))
    for line in (
        f"{len(done.losses):,} steps in {done.seconds:,.0f} seconds, {done.rows:,} rows shown, "
        f"{done.left_out:,} too long",
        f"loss: {first:.3f} in the first tenth of the steps, {last:.3f} in the last",
        f"{file} differs from PyTorch by {apart:.4f} in a probability, on the mean",
    ):
        say(line)
