"""Measure one of demur's own judges with windows of other sizes, and with fewer or more of them."""

from __future__ import annotations

from itertools import product

from demur_research.bench import Bench, Result, Table
from demur_research.tables.judges import (
    COLUMNS,
    JUDGE_OPTION,
    OF_INTERVALS,
    Judge,
    by_set,
    choose,
    judge_of,
    judge_row,
)

_DATA = "aggrefact"
_DEFAULT = "default"


def _make(bench: Bench) -> Result:
    name, every = judge_of(bench), by_set(bench.read(_DATA))
    names = bench.names("sets", every)
    chosen = {of: choose(every[of], bench.limit, bench.seed) for of in names}
    rows = []
    for tokens, most in product(_numbers(bench, "tokens"), _numbers(bench, "windows")):
        judge = Judge(bench, name, window_tokens=tokens, max_windows=most)
        title = f"window_tokens={tokens or _DEFAULT}, max_windows={most or _DEFAULT}"
        found = {of: bench.each(f"{of}, {title}", chosen[of], judge) for of in names}
        rows.append(judge_row(title, found, bench.seed, floor=False))
    return Result(
        COLUMNS,
        tuple(rows),
        (
            f'The judge is "{name}". The figures are means over the sets {", ".join(names)}.',
            OF_INTERVALS,
            "References that fill at most two windows are read whole.",
        ),
    )


def _numbers(bench: Bench, option: str) -> list[int | None]:
    """Return the numbers that an option gives, with commas between them; None: the default."""
    found: list[int | None] = []
    for text in bench.options.get(option, _DEFAULT).split(","):
        if text != _DEFAULT and not (text.isdecimal() and int(text)):
            raise ValueError(f"{option}: expected whole numbers of at least 1, got {text!r}")
        found.append(None if text == _DEFAULT else int(text))
    return found


TABLES = (
    Table(
        "judges-windows",
        "demur",
        "How the size and the number of windows change what a judge of demur's own says.",
        (_DATA,),
        _make,
        options={
            "judge": JUDGE_OPTION,
            "sets": "some of the sets in the data, with commas between [default: all]",
            "tokens": f"the sizes of a window, with commas between; {_DEFAULT}: RefChecker's "
            f"[default: {_DEFAULT}]",
            "windows": "the most windows that a claim is held against, with commas between; "
            f"{_DEFAULT}: RefChecker's [default: {_DEFAULT}]",
        },
    ),
)
