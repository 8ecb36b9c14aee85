"""How the runs of a log look on a terminal, and in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from rich.console import Console
from rich.table import Table
from rich.text import Text

from demur.cli.console import line, table
from demur.guard import Attempt
from demur.observe import Record
from demur.observe.log import By, Group, Judgement, Listed, Log, Totals, short
from demur.schema import ClaimLabel, Evaluation
from demur.views import terminal as display

_STYLES = {"passed": "green", "failed": "red", "undetermined": "magenta"}
_LONGEST = 400
"""Of a text that is cut to fit on a line of a terminal anyway."""
_WIDE = 120
"""From this width on, a list has all columns, and a summary by evaluator is one table."""
_WIDER = 20
"""What a summary needs for each further name."""


# --- A list ---------------------------------------------------------------------------------------


def show_list(console: Console, log: Log, runs: Iterable[Listed], *, heads: bool = True) -> int:
    """Print runs, each on a line; how many there were."""
    count = 0
    if not console.is_terminal:
        for count, run in enumerate(runs, start=1):
            if count == 1 and heads:
                line(console, ["id", "time", "verdict", "outcome", "attempts", *_TOLD])
            time = run.time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            cells = [run.id, time, run.verdict, run.outcome or "-", str(run.attempts)]
            line(console, [*cells, *_told(run)])
        return count
    wide = console.width >= _WIDE
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(min_width=13 if wide else 8, no_wrap=True)
    grid.add_column(width=19 if wide else 14, no_wrap=True)
    grid.add_column(width=12, no_wrap=True)
    grid.add_column(min_width=15, max_width=24 if wide else 18, no_wrap=True)
    if wide:
        grid.add_column(max_width=16, no_wrap=True)
        grid.add_column(ratio=2, no_wrap=True)
    grid.add_column(ratio=3, no_wrap=True)
    if heads:
        names = ["id", "time (UTC)", "verdict", "scores", *(["model", "question"] if wide else [])]
        grid.add_row(*(Text(name, style="dim") for name in [*names, "answer"]))
    for run in runs:
        count += 1
        time = run.time.strftime("%Y-%m-%d %H:%M:%S" if wide else "%m-%d %H:%M:%S")
        ended = Text((run.outcome or run.verdict).replace("_", " "), _STYLES.get(run.verdict, ""))
        scores, _, model, question, answer = (Text(cell[:_LONGEST]) for cell in _told(run))
        middle = (model, question) if wide else ()
        grid.add_row(
            Text(display.one_line(short(log, run.id))), time, ended, scores, *middle, answer
        )
    if count:
        console.print(grid)
    return count


_TOLD = ("scores", "name", "model", "question", "answer")


def _told(run: Listed) -> Iterator[str]:
    yield "; ".join(map(_score, run.judgements)) or "-"
    for text in (run.name, run.model, run.question, run.answer):
        yield "-" if text is None else display.one_line(text)


def _score(found: Judgement) -> str:
    said = found.finding if found.score is None else f"{found.score:.2f}"
    return f"{display.one_line(found.evaluator)} {said}"


# --- Whole runs -----------------------------------------------------------------------------------


def show_run(console: Console, record: Record) -> None:
    """Print all that is known of a run."""
    _say(console, f"run {record.id}", _about(record), style="bold")
    if record.root != record.id:
        _say(console, "part of", record.root)
    if record.tags:
        _say(console, "tags", ", ".join(record.tags))
    for key, value in record.metadata.items():
        _say(console, key, str(value))
    if record.trace_id:
        _say(console, "trace", f"{record.trace_id} span {record.span_id}")
    if record.redacted:
        _say(console, "redacted", "texts were changed before they were kept")
    for number, attempt in enumerate(record.attempts, start=1):
        console.print()
        came = (
            attempt.origin if attempt.recovery is None else f"{attempt.recovery}, {attempt.origin}"
        )
        _say(console, f"answer {number} of {len(record.attempts)}", came, style="bold")
        if attempt.feedback is not None:
            _block(console, "told", attempt.feedback.text)
        _answer(console, attempt)
        for found in attempt.evaluations:
            _say(console, found.name, style="underline")
            display.show(console, found, _names(attempt.contexts))
        if not attempt.evaluations:
            _say(console, attempt.verdict, "no evaluator judged it")
    console.print()
    if record.outcome is not None or record.reason is not None:
        ended = (record.outcome or "was cut short").replace("_", " ")
        limit = "" if record.limit is None else f" (limit: {record.limit})"
        _say(console, f"the guard {ended}", f"{record.reason or ''}{limit}", style="bold")
        if record.error is not None:
            _say(console, "the repair", record.error)
    _say(console, f"in all {display.usage_line(record.usage)};", f"took {record.seconds:,.1f} s")


def show_worst(console: Console, record: Record, evaluator: str | None) -> None:
    """Print a run's first answer, with the claims against it."""
    attempt = record.attempts[0]
    _say(console, f"run {record.id}", _about(record), style="bold")
    _answer(console, attempt)
    for found in attempt.evaluations:
        if evaluator in (None, found.name):
            _say(console, found.name, style="underline")
            display.show(console, _against(found), _names(attempt.contexts))
    console.print()


def _against(found: Evaluation) -> Evaluation:
    """The evaluation with the claims that do not hold, the refuted ones first."""
    order = (ClaimLabel.CONTRADICTION, ClaimLabel.NEUTRAL)
    claims = [claim for label in order for claim in found.claims if claim.label is label]
    return found.model_copy(update={"claims": tuple(claims)})


def _about(record: Record) -> str:
    time = record.time.strftime("%Y-%m-%d %H:%M:%S %Z")
    return ", ".join(one for one in (time, record.name, record.model) if one)


def _answer(console: Console, attempt: Attempt) -> None:
    if attempt.question is not None:
        _block(console, "question", attempt.question)
    _block(console, "answer", attempt.answer)


def _block(console: Console, head: str, text: str) -> None:
    """A text of several lines."""
    first, *rest = display.harmless(text).split("\n")
    display.say(console, head, first, style="dim")
    for more in rest:
        display.say(console, f"   {more}")


def _say(console: Console, head: str, tail: str = "", style: str = "") -> None:
    display.say(console, display.one_line(head), display.one_line(tail), style=style)


def _names(contexts: Sequence[Document]) -> list[str]:
    """What to call the references: by their number, and their source where it is known."""
    sources = [one.metadata.get("source") for one in contexts]
    return [
        f"reference {at} ({source})" if isinstance(source, str) and source else f"reference {at}"
        for at, source in enumerate(sources, start=1)
    ]


# --- A summary ------------------------------------------------------------------------------------


def show_totals(console: Console, totals: Totals, by: Collection[By]) -> None:
    """Print a summary."""
    runs = "1 run" if totals.runs == 1 else f"{totals.runs:,} runs"
    if totals.first is not None and totals.last is not None:
        first, last = (f"{one:%Y-%m-%d %H:%M:%S}" for one in (totals.first, totals.last))
        runs += f" from {first} to {last} UTC"
    _say(console, runs)
    if totals.verdicts:
        _say(console, "first answers", _counted(totals.verdicts))
    if totals.outcomes:
        _say(console, "guards", _counted(totals.outcomes))
    if totals.groups:
        keys = [key for key in ("day", "evaluator", "model") if key == "evaluator" or key in by]
        tables: list[tuple[Sequence[str], Callable[[Group], list[str]]]]
        tables = [(_FOUND, _found), (_COST, _cost)]
        if not console.is_terminal or console.width >= _WIDE + _WIDER * (len(keys) - 1):
            tables = [((*_FOUND, *_COST), lambda one: [*_found(one), *_cost(one)])]
        for heads, cells in tables:
            rows = [
                [getattr(one, key) or "-" for key in keys] + cells(one) for one in totals.groups
            ]
            padding = 1 if console.width >= _WIDE else 0
            table(console, keys, heads, rows, whole={"day", *heads}, padding=padding)
    _say(console, "answering", display.usage_line(totals.answering))
    _say(console, "judging", display.usage_line(totals.judging))


_FOUND = ("judged", "failed", "rate", "95 %", "undet.", "nothing", "mean")
_COST = ("calls", "tokens in", "tokens out", "seconds")


def _found(group: Group) -> list[str]:
    failure, findings = group.failure, group.findings
    interval = failure.interval
    return [
        *(f"{group.judged:,}", f"{failure.count:,}"),
        "-" if failure.value is None else f"{failure.value:.1%}",
        "-" if interval is None else f"{interval[0]:.1%}–{interval[1]:.1%}",
        *(f"{findings['undetermined']:,}", f"{findings['nothing_to_check']:,}"),
        "-" if group.mean is None else f"{group.mean:.4f}",
    ]


def _cost(group: Group) -> list[str]:
    usage = group.usage
    tokens = (f"{usage.input_tokens:,}", f"{usage.output_tokens:,}")
    return [f"{usage.calls:,}", *tokens, f"{usage.seconds:,.1f}"]


def _counted(counts: Any) -> str:
    return ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items())


def as_json(totals: Totals, by: Collection[By]) -> dict[str, Any]:
    """The summary as JSON values."""
    groups = []
    for one in totals.groups:
        named = {"day": one.day, "evaluator": one.evaluator, "model": one.model}
        found: dict[str, Any] = {
            key: value for key, value in named.items() if key == "evaluator" or key in by
        }
        found["judged"] = one.judged
        for finding, number in one.findings.items():
            found[finding] = number
        found |= {"failure_rate": one.failure.value, "interval": one.failure.interval}
        found["mean"] = one.mean
        groups.append({**found, "usage": one.usage.model_dump()})
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
