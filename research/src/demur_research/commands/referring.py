"""`demur-bench chale`, `orders`, `exemplars`: FEWL, which scores without gold answers."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from demur.evaluators import CONFIGURATIONS
from demur.evaluators.fewl.terms import Premise
from demur.similarity import resolve_similarity
from demur_research import chale as on_chale
from demur_research import exemplars as on_exemplars
from demur_research.agreement import Agreement
from demur_research.commands.options import (
    AtOnce,
    ModelName,
    Retry,
    attempt,
    model_of,
    names,
    session,
    show,
)
from demur_research.orders import table as orders_table
from demur_research.pairs import PROMPTS
from demur_research.recorder import read
from demur_research.references import Asked, Question, items, questions

_Data = Annotated[Path, typer.Option(help="The folder with chale/chale.jsonl.")]
_Recording = Annotated[
    Path, typer.Option(dir_okay=False, help="JSON lines; compressed (.gz) for the tables.")
]


class Order(str, Enum):
    """What is the premise, where a similarity tells the two apart."""

    answer = "answer"
    reference = "reference"


_PREMISES: dict[Order, Premise] = {Order.answer: "answer", Order.reference: "reference"}


def chale(
    data: _Data,
    recording: _Recording,
    record: Annotated[
        int | None, typer.Option(min=1, help="Record so many questions, and print no table.")
    ] = None,
    model: ModelName = "local",
    pairs: Annotated[
        str, typer.Option(help=f"What is asked for: {' or '.join(PROMPTS)}.")
    ] = "denied",
    agreement: Annotated[
        bool,
        typer.Option(help="Ask with what the references agree, and score by that too."),
    ] = False,
    n_answers: Annotated[int, typer.Option(min=1)] = 5,
    n_wrong: Annotated[int, typer.Option(min=1)] = 5,
    k_neighbors: Annotated[int, typer.Option(min=1)] = 25,
    similarity: Annotated[
        str,
        typer.Option(help="As FEWL takes it; agreement: --model says whether two answers agree."),
    ] = "cosine",
    drop_alike: Annotated[float, typer.Option(help="Drop pairs so alike.")] = 1.0,
    temperature: Annotated[float, typer.Option()] = 1.0,
    premise: Annotated[Order, typer.Option()] = Order.answer,
    config: Annotated[
        list[str] | None, typer.Option(help="May be repeated. [default: all]")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Score so many questions.")] = None,
    at_once: AtOnce = 1,
    retry: Retry = False,
) -> None:
    """Whether FEWL scores CHALE's right answers above the others, from recorded replies.

    With --record a model is asked first for reference answers and for wrong and corrected pairs;
    the same command goes on where an earlier one was stopped. Without, every configuration of the
    papers' tables is scored from the recording, beside the trivial floor.
    """
    (kind,) = names([pairs], PROMPTS, "--pairs")
    asked = Asked(n_answers, n_wrong, kind)
    known = attempt(lambda: questions(data), "--data")
    if record is not None:
        _record(asked, known[:record], recording, model, agreement, at_once, retry)
        return
    chosen = names(config, CONFIGURATIONS, "--config")
    if not agreement:
        wanting = [name for name in chosen if name in on_chale.BY_AGREEMENT]
        if config is not None and wanting:
            raise typer.BadParameter(f"{wanting[0]} needs --agreement", param_hint="--config")
        chosen = [name for name in chosen if name not in wanting]
    lines = attempt(lambda: read(recording, items(known)), "--recording")
    scored_by = Agreement(model_of(model)) if similarity == "agreement" else similarity
    scoring = on_chale.Scoring(
        asked,
        attempt(lambda: resolve_similarity(scored_by), "--similarity"),
        k_neighbors,
        temperature,
        _PREMISES[premise],
        drop_alike,
    )
    recorded = asked.recorded(known, lines, agreement)[:limit]
    show(on_chale.tables(scoring, recorded, lines, chosen))


def _record(
    asked: Asked,
    wanted: list[Question],
    path: Path,
    model: str,
    agreement: bool,
    at_once: int,
    retry: bool,
) -> None:
    chat, to_ask = model_of(model), items(wanted)
    with session(path, to_ask, chat, at_once, retry, "--recording") as open_session:
        open_session.judge(to_ask, asked.judges(chat), "asking")
        if agreement:
            open_session.judge(to_ask, asked.agreement(chat, open_session.lines), "agreement")


def orders(data: _Data) -> None:
    """What each order of premise and hypothesis misses, on CHALE, without a model."""
    known = attempt(lambda: questions(data), "--data")
    show([orders_table([(one.answers["non_hallu"], one.answers["hallu"]) for one in known])])


def exemplars(
    data: _Data,
    references: Annotated[Path, typer.Option(help="What demur-bench chale recorded.")],
    recording: _Recording,
    record: Annotated[
        int | None, typer.Option(min=1, help="Record so many test questions, and print no table.")
    ] = None,
    model: ModelName = "local",
    config: Annotated[str, typer.Option(help="A configuration of FEWL.")] = "fewl-mean-one",
    at_once: AtOnce = 1,
    retry: Retry = False,
) -> None:
    """Whether examples that FEWL chose bring better answers than a baseline's, or than none.

    With --record a model answers, and judges the answers; without, the tables are printed. One
    recording holds several configurations: what is the same in them is asked for once.
    """
    (configuration,) = names([config], CONFIGURATIONS, "--config")
    known = attempt(lambda: questions(data), "--data")
    replies = attempt(lambda: read(references, items(known)), "--references")
    scored = on_exemplars.scored(known, replies, configuration)
    tests = on_exemplars.tested(scored, len(scored) if record is None else record)
    if record is None:
        lines = attempt(lambda: read(recording, tests), "--recording")
        show(on_exemplars.tables(lines, scored, configuration))
        return
    chat, pool = model_of(model), on_exemplars.disputed(scored)
    with session(recording, tests, chat, at_once, retry, "--recording") as open_session:
        open_session.judge(tests, on_exemplars.answering(pool, configuration, chat), "answering")
        judges = on_exemplars.judging(configuration, chat, open_session.lines)
        open_session.judge(tests, judges, "comparing")
