"""How many answers RefChecker lets through although something that they state was never checked.

Every answer of `texts.answers` is put to RefChecker. A silent pass is an answer that is let through
(passed, or said to state nothing) although no claim with a label covers one of its statements.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from demur import RefChecker, Sample
from demur._share import Share
from demur_research.recorder import Item, Lines
from demur_research.runner import Finding
from demur_research.texts.answers import ANSWERS, STATING, Answer, let_through, unchecked

Row = Mapping[str, Any]
Test = Callable[[Row], bool]
_SEED = 23


def choose(limit: int) -> list[Answer]:
    """So many answers, of each stratum its share. A smaller choice is part of a larger one."""
    chance = random.Random(_SEED)
    strata: dict[tuple[object, ...], list[Answer]] = defaultdict(list)
    for one in chance.sample(ANSWERS, len(ANSWERS)):
        # Of what states nothing there is too little in each language to tell its kinds apart.
        strata[one.language, one.supported, one.kind if one.states else ""].append(one)
    places = {
        one.id: ((at + chance.random()) / len(stratum), one.id)
        for stratum in strata.values()
        for at, one in enumerate(stratum)
    }
    chosen = set(sorted(places, key=places.__getitem__)[:limit])
    return [one for one in ANSWERS if one.id in chosen]


def items(answers: Sequence[Answer]) -> list[Item[Answer]]:
    """Answers as a recording knows them."""
    return [Item(answer.id, repr(answer), answer) for answer in answers]


def judge(checker: RefChecker) -> Callable[[Answer], Finding]:
    """What becomes of an answer, and what it costs."""
    return lambda one: _measured(checker, one)


def _measured(checker: RefChecker, one: Answer) -> Finding:
    began = time.perf_counter()
    found = checker.invoke(Sample(**one.sample))
    result = {
        "seconds": round(time.perf_counter() - began, 3),
        "calls": found.usage.calls,
        "tokens": found.usage.input_tokens + found.usage.output_tokens,
        "label": found.label,
        "passed": found.passed,
        "error": found.error,
        "let_through": let_through(found),
        "unchecked": unchecked(one, found),
        "found": [
            [claim.text, claim.label and str(claim.label), claim.span and claim.span.model_dump()]
            for claim in found.claims
        ],
    }
    return Finding(result, found.error)


def rows(lines: Lines) -> dict[str, list[Row]]:
    """By configuration, what was found, each with what is known of its answer."""
    known = {one.id: one for one in ANSWERS}
    by_name: dict[str, list[Row]] = defaultdict(list)
    for line in lines.values():
        by_name[line.configuration].append({**line.result, "answer": known[line.item]})
    return by_name


# --- The tables ----------------------------------------------------------------------------------


def _states(row: Row) -> bool:
    return bool(row["answer"].states)


def _unsupported(row: Row) -> bool:
    return row["answer"].supported is False


def _supported(row: Row) -> bool:
    return row["answer"].supported is True


def _silent(row: Row) -> bool:
    return _states(row) and row["let_through"] and bool(row["unchecked"])


def _failed(row: Row) -> bool:
    return row["passed"] is False


_SHARES: tuple[tuple[str, Test, Test], ...] = (
    ("silent passes, of what states something", _states, _silent),
    ("... of what is unsupported", _unsupported, _silent),
    ("wrongly let through, of what is unsupported", _unsupported, lambda row: row["let_through"]),
    ("false flags, of what is supported", _supported, _failed),
    ("undetermined, of what states something", _states, lambda row: row["error"] is not None),
    (
        "treated as claims, of what states nothing",
        lambda row: not _states(row),
        lambda row: row["label"] != "Abstain",
    ),
)
"""What is told, among which answers, and of which it holds."""


def _share(rows: Sequence[Row], among: Test, holds: Test) -> str:
    asked = [row for row in rows if among(row)]
    share = Share(sum(map(holds, asked)), len(asked))
    if share.value is None or share.interval is None:
        return "-"
    low, high = share.interval
    return f"{share.count} of {share.total}: {share.value:.1%} ({low:.1%} to {high:.1%})"


def _mean(rows: Sequence[Row], what: str) -> str:
    return f"{sum(row[what] for row in rows) / len(rows):,.1f}" if rows else "-"


def _by_kind(rows: Sequence[Row]) -> str:
    asked = [row for row in rows if _states(row)]
    counts = [
        sum(_silent(row) for row in asked),
        sum(_unsupported(row) and row["let_through"] for row in asked),
        sum(_supported(row) and _failed(row) for row in asked),
        sum(row["error"] is not None for row in asked),
    ]
    return f"{' / '.join(map(str, counts))} of {len(asked)}" if asked else "-"


def tables(runs: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """The lines of both tables: over all answers, and by kind and language."""
    head = " | ".join(runs)
    line = "|---" * (len(runs) + 1) + "|"
    yield from (f"| | {head} |", line)
    for name, among, holds in _SHARES:
        cells = [_share(rows, among, holds) for rows in runs.values()]
        yield f"| {name} | {' | '.join(cells)} |"
    for what in ("calls", "tokens", "seconds"):
        cells = [_mean(rows, what) for rows in runs.values()]
        yield f"| {what} per answer | {' | '.join(cells)} |"
    yield ""
    yield "Silent passes / wrongly let through / false flags / undetermined, by kind and language:"
    yield ""
    yield from (f"| | {head} |", line)
    for field in ("kind", "language"):
        for value in dict.fromkeys(getattr(one, field) for one in STATING):
            cells = [
                _by_kind([row for row in rows if getattr(row["answer"], field) == value])
                for rows in runs.values()
            ]
            yield f"| {value} | {' | '.join(cells)} |"
