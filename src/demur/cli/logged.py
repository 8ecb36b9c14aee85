"""Print a list of runs, or the summary of a log, on a terminal or in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from demur.cli.console import line, table
from demur.observe import Record
from demur.observe.log import By, Group, JudgedAnswer, Totals, judged
from demur.views import (
    USAGE_HEADS,
    counted,
    outcome_look,
    plural,
    terminal,
    usage_cells,
    verdict_look,
)

_ID = 13
"""The number of characters of an id that are shown. They include its milliseconds, if the id
contains its time."""
_LONGEST = 400
"""The length to which a text is cut, because a line of a terminal shows no more of it."""
_WIDE = 120
"""From this width on, a list has all columns, and a summary by evaluator is one table."""
_WIDER = 20
"""The width that a summary needs for each further name."""


# --- A list ---------------------------------------------------------------------------------------


def show_list(console: Console, runs: Sequence[Record]) -> None:
    """Print runs, each on a line."""
    if not runs:
        return
    if not console.is_terminal:
        line(console, _fields(runs[0]))
        for run in runs:
            line(console, _fields(run).values())
        return
    wide = console.width >= _WIDE
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(width=_ID, no_wrap=True)
    grid.add_column(width=19 if wide else 14, no_wrap=True)
    grid.add_column(width=12, no_wrap=True)
    grid.add_column(min_width=15, max_width=24 if wide else 18, no_wrap=True)
    names = ["scores", "model", "question", "answer"] if wide else ["scores", "answer"]
    if wide:
        grid.add_column(max_width=16, no_wrap=True)
        grid.add_column(ratio=2, no_wrap=True)
    grid.add_column(ratio=3, no_wrap=True)
    grid.add_row(*(Text(name, style="dim") for name in ["id", "time (UTC)", "verdict", *names]))
    for run in runs:
        time = run.time.strftime("%Y-%m-%d %H:%M:%S" if wide else "%m-%d %H:%M:%S")
        shown = verdict_look(run.verdict) if run.outcome is None else outcome_look(run.outcome)
        ended = Text(shown.word, terminal.colour(shown))
        fields = _fields(run)
        id = Text(terminal.one_line(run.id)[:_ID])
        grid.add_row(id, time, ended, *(Text(fields[name][:_LONGEST]) for name in names))
    console.print(grid)


def _fields(run: Record) -> dict[str, str]:
    """Return the columns of a list by their heads, as a pipe has them."""
    texts = {"name": run.name, "model": run.model, "question": run.question, "answer": run.answer}
    return {
        "id": run.id,
        "time": run.time.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "verdict": run.verdict,
        "outcome": run.outcome or "-",
        "attempts": str(len(run.attempts)),
        "scores": "; ".join(map(_score, judged(run.attempts[-1]))) or "-",
        **{name: "-" if text is None else terminal.one_line(text) for name, text in texts.items()},
    }


def _score(answer: JudgedAnswer) -> str:
    outcome = answer.finding if answer.score is None else f"{answer.score:.2f}"
    return f"{terminal.one_line(answer.name)} {outcome}"


# --- A summary ------------------------------------------------------------------------------------


def show_totals(console: Console, totals: Totals, by: Collection[By]) -> None:
    """Print a summary."""
    runs = plural(totals.runs, "run")
    if totals.first is not None and totals.last is not None:
        first, last = (f"{moment:%Y-%m-%d %H:%M:%S}" for moment in (totals.first, totals.last))
        runs += f" from {first} to {last} UTC"
    terminal.say(console, runs)
    if totals.verdicts:
        terminal.say(console, "first answers", counted(totals.verdicts))
    if totals.outcomes:
        terminal.say(console, "guards", counted(totals.outcomes))
    if totals.groups:
        keys = [key for key in ("day", "evaluator", "model") if key == "evaluator" or key in by]
        tables: list[tuple[Sequence[str], Callable[[Group], list[str]]]]
        tables = [(_FINDING_HEADS, _finding_cells), (USAGE_HEADS, _usage_cells)]
        if not console.is_terminal or console.width >= _WIDE + _WIDER * (len(keys) - 1):
            tables = [
                (
                    (*_FINDING_HEADS, *USAGE_HEADS),
                    lambda group: [*_finding_cells(group), *_usage_cells(group)],
                )
            ]
        for heads, cells in tables:
            rows = [
                [getattr(group, key) or "-" for key in keys] + cells(group)
                for group in totals.groups
            ]
            padding = 1 if console.width >= _WIDE else 0
            table(console, keys, heads, rows, whole={"day", *heads}, padding=padding)
    terminal.say(console, "answering", terminal.usage_line(totals.answering))
    terminal.say(console, "judging", terminal.usage_line(totals.judging))


_FINDING_HEADS = ("judged", "failed", "rate", "95 %", "undet.", "nothing", "mean")


def _finding_cells(group: Group) -> list[str]:
    failure, findings = group.failure, group.findings
    interval = failure.interval
    return [
        *(f"{group.judged:,}", f"{failure.count:,}"),
        "-" if failure.value is None else f"{failure.value:.1%}",
        "-" if interval is None else f"{interval[0]:.1%}–{interval[1]:.1%}",
        *(f"{findings['undetermined']:,}", f"{findings['nothing_to_check']:,}"),
        "-" if group.mean is None else f"{group.mean:.4f}",
    ]


def _usage_cells(group: Group) -> list[str]:
    return usage_cells(group.usage)


def show_delivered(console: Console, got: Mapping[str, Mapping[str, int]]) -> None:
    """Print what users got with a guard, and what they would have got without it."""
    heads = [fate.replace("_", " ") for fate in next(iter(got.values()))]
    rows = [
        [name, *(f"{count:,} ({count / max(1, sum(of.values())):.1%})" for count in of.values())]
        for name, of in got.items()
    ]
    table(console, ["users got"], heads, rows)


def as_json(totals: Totals, by: Collection[By]) -> dict[str, Any]:
    """Return the summary as JSON values."""
    groups = []
    for group in totals.groups:
        named = {"day": group.day, "evaluator": group.evaluator, "model": group.model}
        cells: dict[str, Any] = {
            key: value for key, value in named.items() if key == "evaluator" or key in by
        }
        cells["judged"] = group.judged
        for finding, number in group.findings.items():
            cells[finding] = number
        cells |= {"failure_rate": group.failure.value, "interval": group.failure.interval}
        cells["mean"] = group.mean
        groups.append({**cells, "usage": group.usage.model_dump()})
    times = {"first": totals.first, "last": totals.last}
    return {
        "runs": totals.runs,
        **{name: None if time is None else time.isoformat() for name, time in times.items()},
        "verdicts": dict(totals.verdicts),
        "outcomes": dict(totals.outcomes),
        "groups": groups,
        "answering": totals.answering.model_dump(),
        "judging": totals.judging.model_dump(),
    }
