"""How many answers RefChecker lets through although something that they state was never checked.

    python -m demur_research.unchecked --out RUN.jsonl [--claims triplets] [--limit N]
    python -m demur_research.unchecked --table RUN.jsonl ...

Every answer of texts/answers.py is put to RefChecker. A silent pass is an answer that is
let through (passed, or said to state nothing) although no claim with a label covers one of its
statements. One line per answer is appended to RUN.jsonl, and a run that is started again goes on
where it stopped. The table has a column per run; give --limit to compare equal answers only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# The same delimiters in every run: a small model answers a little otherwise when they change.
os.environ.setdefault("DEMUR_SECRET", "bench.unchecked")

from demur import RefChecker, Sample
from demur._share import Share
from demur_research.texts.answers import ANSWERS, EMPTY, STATING, Answer, let_through, unchecked

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


def measure(checker: RefChecker, one: Answer) -> dict[str, Any]:
    """What became of one answer, and what it cost."""
    began = time.perf_counter()
    found = checker.invoke(Sample(**one.sample))
    return {
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


def run(out: Path, claims: str | None, model: str, answers: Sequence[Answer]) -> None:
    """Append what is missing from the run."""
    done = {row["id"] for row in read(out)} if out.exists() else set()
    options: dict[str, Any] = {} if claims is None else {"claims": claims}
    checker = RefChecker(model, **options)
    with out.open("a", encoding="utf-8") as file:
        for at, one in enumerate(answers):
            if one.id not in done:
                row = {"id": one.id, **measure(checker, one)}
                print(json.dumps(row, ensure_ascii=False), file=file, flush=True)
                what = row["error"] or row["label"]
                print(f"{at + 1}/{len(answers)} {one.id}: {what}", file=sys.stderr)


def read(path: Path) -> list[Row]:
    """The lines of a run, each with what is known of its answer."""
    known = {one.id: one for one in ANSWERS}
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [{**row, "answer": known[row["id"]]} for row in rows if row["id"] in known]


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


def main() -> None:
    """Measure, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="the run, as JSON lines")
    parser.add_argument("--claims", help="as RefChecker takes it; otherwise its default")
    parser.add_argument("--model", default="local")
    parser.add_argument("--limit", type=int, default=len(ANSWERS), help="that many answers")
    parser.add_argument("--table", type=Path, nargs="+", help="print the tables of these runs")
    options = parser.parse_args()
    if (options.out is None) is (options.table is None):
        parser.error("give either --out RUN.jsonl to measure or --table RUN.jsonl ... to print")
    answers = choose(options.limit)
    if options.out is not None:
        print(f"{len(answers)} of {len(STATING)} + {len(EMPTY)} answers", file=sys.stderr)
        run(options.out, options.claims, options.model, answers)
    chosen = {one.id for one in answers}
    runs = {
        path.stem: [row for row in read(path) if row["id"] in chosen]
        for path in options.table or [options.out]
    }
    print("\n".join(tables(runs)))


if __name__ == "__main__":
    main()
