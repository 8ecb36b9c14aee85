"""Define `demur-bench build`, which builds data sets in the way of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli import progress
from demur.cli.console import need_subcommand, output
from demur.cli.console import table as print_table
from demur.local import MiniLM
from demur_research.bench import Bench
from demur_research.building import chale as of_chale
from demur_research.building import phd as of_phd
from demur_research.building.writing import refuse_if_there, write_new
from demur_research.commands.options import (
    RECORDING,
    AtOnce,
    Model,
    RecordingPath,
    Replay,
    Seed,
    attempt,
    opened,
    say,
)
from demur_research.datasets import read
from demur_research.datasets.phd import LISTS

app = typer.Typer(
    help="Build data sets of your own in the way of the papers.", rich_markup_mode=None
)

Out = Annotated[Path, typer.Option("-o", "--out", dir_okay=False, help="The file to write.")]


@app.callback(invoke_without_command=True)
def _top(context: typer.Context) -> None:
    need_subcommand(context)


@app.command()
def chale(
    questions: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTIONS.jsonl",
            help="JSON lines with question, short_answer and long_answer.",
        ),
    ],
    out: Out,
    seed: Seed = 0,
) -> None:
    """Build a right, a half wrong and a wrong answer to each question, as in CHALE.

    The wrong parts come from the answers to similar questions (FEWL, version 1, section C.2).
    CHALE's tables read the file with `--data`.
    """
    attempt(lambda: refuse_if_there(out), "--out")
    sources = attempt(lambda: of_chale.read_sources(questions), "QUESTIONS.jsonl")
    with progress.counts() as report:
        built = attempt(
            lambda: of_chale.build(
                sources, MiniLM(), seed, lambda what, done, of: report(what, "chale", done, of)
            ),
            "QUESTIONS.jsonl",
        )
    attempt(lambda: write_new(out, built.as_published()), "--out")
    left = [[f"left out: {why}", f"{count:,}"] for why, count in built.left_out.items()]
    print_table(
        output(),
        ["questions"],
        ["number"],
        [["in the file", f"{len(sources):,}"], ["built", f"{len(built.triples):,}"], *left],
    )
    say(f"fit neighbours of a question on the mean: {built.fit:.2f}")


@app.command()
def phd(
    entities: Annotated[
        Path,
        typer.Argument(
            metavar="ENTITIES.jsonl", help="JSON lines with entity, count and, if known, url."
        ),
    ],
    out: Out,
    recording: RecordingPath = RECORDING,
    replay: Replay = False,
    model: Model = "local",
    each: Annotated[int, typer.Option(min=1, help="The number of entities of each domain.")] = 100,
    low_below: Annotated[
        float, typer.Option(help="An entity with a lower count is of the domain low.")
    ] = 1e5,
    high_above: Annotated[
        float, typer.Option(help="An entity with a higher count is of the domain high.")
    ] = 1e6,
    at_once: AtOnce = 1,
    seed: Seed = 0,
) -> None:
    """Have a model write passages about rare, known and common entities, as in PHD.

    People label the passages (Reverse Validation, section 3): fill in label_1, label_2, label and
    wrong_part in the file. Then check the labels with `build phd-labels`.
    """
    attempt(lambda: refuse_if_there(out), "--out")
    bounds = attempt(lambda: of_phd.Bounds(low_below, high_above), "--low-below, --high-above")
    known = attempt(lambda: of_phd.read_entities(entities), "ENTITIES.jsonl")
    drawn = of_phd.draw(known, each, bounds, seed)
    with opened(recording, replay) as calls, progress.counts() as report:
        bench = Bench(
            read,
            calls,
            model,
            at_once=at_once,
            report=lambda what, done, of: report(what, str(recording), done, of),
        )
        attempt(lambda: bench.model, "--model")
        written = of_phd.write(bench, drawn)
    attempt(lambda: write_new(out, written.lists), "--out")
    print_table(
        output(),
        ["domain"],
        ["drawn", "written"],
        [
            [domain, str(len(found)), str(len(written.lists[LISTS[domain]]))]
            for domain, found in drawn.items()
        ],
    )
    for why, count in written.left_out.items():
        say(f"left out: {count:,} {why}")
    spent = written.spent
    tokens = "untold" if spent.tokens is None else f"{spent.tokens:,.0f}"
    say(f"{spent.calls:,.0f} calls, {tokens} tokens, {spent.seconds:,.0f} seconds")


@app.command()
def phd_labels(
    labelled: Annotated[
        Path,
        typer.Argument(
            metavar="LABELLED.json", help="A file of `build phd` with labels filled in."
        ),
    ],
) -> None:
    """Check the labels that people filled in, and count how far the two stages agree."""
    found = attempt(lambda: of_phd.read_labels(labelled), "LABELLED.json")
    print_table(
        output(),
        ["domain"],
        [*of_phd.LABELS],
        [
            [domain, *(str(counts[label]) for label in of_phd.LABELS)]
            for domain, counts in found.per_domain.items()
        ],
    )
    kappa = "undefined" if found.kappa is None else f"{found.kappa:.2f}"
    say(f"unverifiable by the first stage: {found.unverifiable}")
    say(f"decided by both stages: {found.both}, alike: {found.alike}, Cohen's kappa: {kappa}")
    say(f"wrong parts that are not in their passage's words: {found.unquoted}")
