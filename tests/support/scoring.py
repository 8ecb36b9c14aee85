"""Make data sets of a few rows, and run evaluators on them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from demur import Sample
from demur.evaluators import Evaluator
from demur.scoring import Data, Run, open_run, read_input
from support.evaluators import Scripted

SETTINGS = {"method": "scripted", "n": {"wrong": 25}}


def length(sample: Sample) -> float:
    """Return a score that identifies the answer by its length."""
    return len(sample.answer) / 100


def rows(path: Path, count: int, answers: int = 1) -> Data:
    def answer(row: int, name: int) -> str:
        return f"answer {row} {'x' * (row + 10 * name)}"

    with path.open("w") as file:
        for row in range(count):
            texts = {f"n{name}": answer(row, name) for name in range(answers)}
            held = {"answers": texts} if answers > 1 else {"answer": texts["n0"]}
            file.write(json.dumps({"id": f"q{row}", "question": f"Q{row}?", **held}) + "\n")
    return Data(path, path.name)


def run_on(
    data: Data,
    out: Path,
    evaluators: Mapping[str, Evaluator] | None = None,
    do: Callable[[Run], Any] = Run.score,
    **options: Any,
) -> Any:
    options = {"settings": SETTINGS, "rows_at_once": 4, **options}
    evaluators = evaluators or {"len": Scripted(script=length)}
    with read_input(data) as read, open_run(read, evaluators, out, **options) as run:
        return do(run)


def findings(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()[1:]]


def keys(out: Path) -> Counter[tuple[str, str]]:
    return Counter((line["key"], line["evaluator"]) for line in findings(out))
