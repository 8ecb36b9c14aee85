"""Describe the log as a whole: how many runs, how good the answers are, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, TypeVar, get_args

from demur import __version__
from demur._text import one_line
from demur.guard import TraceOutcome, Verdict
from demur.observe.log import Damaged, Group, Totals
from demur.schema import Category, Failure, Finding, Prices, Threshold, Usage
from demur.views import category_words, failure_words, plural, usage_cells
from demur.views.report.rows import Rows
from demur.views.report.words import interval, percent, score

K = TypeVar("K")
_MOST_TOLD = 5


def overview(
    name: str,
    totals: Totals,
    rows: Rows,
    *,
    title: str | None,
    runs: int,
    shown: int,
    damaged: Sequence[Damaged],
    unknown: int,
    prices: Prices | None,
    threshold: Threshold | None,
) -> dict[str, Any]:
    """Return what the page says beside single evaluators, by the names that its template uses.

    Args:
        name: The log's name.
        totals: The totals of all runs in the log, or of the newest ones.
        rows: The runs that are shown, without damaged ones.
        title: The title of the page; None for one with the log's name.
        runs: The number of runs in the log.
        shown: How many of the runs in `totals` are shown; they are the newest.
        damaged: The runs that are left out.
        unknown: The number of labels for runs that are not shown.
        prices: The prices of a million input tokens, and of a million output tokens.
        threshold: A threshold to mark.
    """
    file = one_line(name)
    notices = []
    if totals.runs < runs:
        notices.append(f"These are the newest {totals.runs:,} of {runs:,} runs.")
    elif shown < totals.runs:
        notices.append(
            f"Quality and cost are of all {totals.runs:,} runs. The thresholds, the charts and the "
            f"list of answers are of the newest {shown:,}."
        )
    if damaged:
        notices.append(_left_out(damaged))
    if unknown:
        notices.append(
            f"{plural(unknown, 'label belongs', 'labels belong')} to runs that are not here."
        )
    if threshold is not None and threshold.evaluator not in rows.evaluators:
        notices.append(_of_nobody(threshold, rows))
    return {
        "title": one_line(title) if title else f"Answers in {file}",
        "file": file,
        "written": f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M}",
        "version": __version__,
        "lede": _lede(totals),
        "notices": notices,
        "runs": totals.runs,
        "part": f"Of the newest {shown:,} runs." if shown < totals.runs else "",
        "labelled": _labelled(rows),
        "verdicts": _counts(totals.verdicts),
        "outcomes": _counts(totals.outcomes),
        "categories": _categories(totals),
        "failures": _failures(totals),
        "quality": [_quality(group) for group in totals.groups],
        "choices": _choices(rows),
        **_cost(totals, prices),
    }


def _left_out(damaged: Sequence[Damaged]) -> str:
    reasons = "; ".join(f"{run.place}: {run.why}" for run in damaged[:_MOST_TOLD])
    more = f"; and {len(damaged) - _MOST_TOLD:,} more" if len(damaged) > _MOST_TOLD else ""
    runs = plural(len(damaged), "run cannot be read and is", "runs cannot be read and are")
    return f"{runs} left out. {reasons}{more}."


def _of_nobody(threshold: Threshold, rows: Rows) -> str:
    if threshold.evaluator is None:
        return "The threshold does not say which evaluator it is for, so it is not shown."
    names = ", ".join(rows.evaluators) or "none"
    return (
        f"The threshold is for {threshold.evaluator}, which has no scores here: the evaluators "
        f"are {names}."
    )


def _lede(totals: Totals) -> str:
    if totals.first is None or totals.last is None:
        return "No runs."
    first, last = (f"{moment:%Y-%m-%d %H:%M}" for moment in (totals.first, totals.last))
    days = f"on {first}" if first == last else f"from {first} to {last}"
    if first[:10] == last[:10] and first != last:
        days = f"on {first[:10]}, from {first[11:]} to {last[11:]}"
    who = len({group.evaluator for group in totals.groups})
    return f"{plural(totals.runs, 'run')} {days}, judged by {plural(who, 'evaluator')}."


def _labelled(rows: Rows) -> str:
    known = [label for label in rows.labels if label is not None]
    if not known:
        return ""
    wrong = sum(known)
    return (
        f"{len(known):,} of {plural(len(rows.labels), 'answer')} "
        f"{'has' if len(known) == 1 else 'have'} a label: {wrong:,} hallucinated, "
        f"{len(known) - wrong:,} not."
    )


def _counts(counts: Mapping[Any, int]) -> list[tuple[str, str, str, int]]:
    """Return each kind with its number and its share as texts, and the number to draw with."""
    total = sum(counts.values())
    return [
        (kind.replace("_", " "), f"{number:,}", percent(number / total), number)
        for kind, number in counts.items()
    ]


def _categories(totals: Totals) -> list[tuple[str, str, str]]:
    """Return the categories of hallucinations with their counts, the most frequent first."""
    return [
        (category_words(category), f"{number:,}", percent(number / totals.runs))
        for category, number in _most_common(totals.categories, Category)
    ]


def _failures(totals: Totals) -> list[tuple[str, str, str, str]]:
    """Return the failures with their categories and counts, the most frequent first."""
    return [
        (
            failure_words(failure),
            "–" if failure.category is None else category_words(failure.category),
            f"{number:,}",
            percent(number / totals.runs),
        )
        for failure, number in _most_common(totals.failures, Failure)
    ]


def _most_common(counts: Mapping[K, int], kinds: Iterable[K]) -> list[tuple[K, int]]:
    """Return the kinds that occur, the most frequent first, and ties in the order of `kinds`."""
    there = [(kind, counts[kind]) for kind in kinds if kind in counts]
    return sorted(there, key=lambda counted: -counted[1])


def _quality(group: Group) -> list[str]:
    findings, failure = group.findings, group.failure
    return [
        group.evaluator,
        *(f"{group.judged:,}", f"{failure.count:,}", percent(failure.value), interval(failure)),
        *(f"{findings['undetermined']:,}", f"{findings['nothing_to_check']:,}"),
        "–" if group.mean is None else score(group.mean),
    ]


def _choices(rows: Rows) -> dict[str, list[tuple[str, str]]]:
    """Return the values that each column can be filtered by: those that occur, in order."""
    findings = {finding for column in rows.evaluators.values() for finding in column.findings}
    labels = {True: ("yes", "hallucinated"), False: ("no", "not hallucinated"), None: ("-", "none")}
    columns: dict[str, tuple[Sequence[str], set[Any]]] = {
        "verdict": (get_args(Verdict), set(rows.verdicts)),
        "finding": (get_args(Finding), findings),
        "outcome": (get_args(TraceOutcome), set(rows.outcomes)),
    }
    chosen = {
        name: [(value, value.replace("_", " ")) for value in known if value in there]
        for name, (known, there) in columns.items()
    }
    return {
        **chosen,
        "label": [name for label, name in labels.items() if label in set(rows.labels)],
    }


# --- Cost -----------------------------------------------------------------------------------------


def _cost(totals: Totals, prices: Prices | None) -> dict[str, Any]:
    each = [(f"judging: {group.evaluator}", group.usage) for group in totals.groups]
    spent = [("answering", totals.answering)]
    spent += each if len(each) == 1 else [("judging", totals.judging), *each]
    spent.append(("in all", totals.answering + totals.judging))
    heads = ["what for", "calls", "out of a cache", "tokens in", "tokens out", "seconds"]
    note = "Seconds are those of all calls together; calls that overlap count each."
    if prices is not None:
        heads.append("price")
        into, out = (f"{price:g}" for price in prices)
        note += f" Prices: {into} for a million tokens in, {out} for a million out, of any model."
    return {
        "cost_heads": heads,
        "cost": [_spent(name, usage, prices) for name, usage in spent],
        "cost_note": note,
    }


def _spent(name: str, usage: Usage, prices: Prices | None) -> list[str]:
    calls, *rest = usage_cells(usage)
    row = [name, calls, f"{usage.cached:,}", *rest]
    if prices is not None:
        price = usage.price(*prices)
        row.append(f"{price:,.2f}" if price >= 1 or not price else f"{price:.4f}")
    return row
