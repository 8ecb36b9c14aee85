"""Compare scoring rows in one process with scoring them by workers of a local Ray cluster.

    python -m bench.ray_scoring [--rows 100000] [--workers 1 2] [--at-once 16]

RefChecker judges each answer by one call of a model in its own process that replies at once, so
only the work around the calls is measured. Each line is measured in its own process, once for a
tenth of the rows and once for all of them. It shows the rows scored in a second, their ratio to
those of one process, and the peak memory of the process that reads and writes. The start of a
cluster is not counted. With a slow model the ratios would mean nothing, because both sides would
wait for it.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measuring import alone, arguments, line, peak_mb, seconds
from langchain_core.language_models import FakeListChatModel

from demur import RefChecker
from demur.scoring import Data, Scorer, open_run, read_input


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, os.cpu_count() or 2])
    parser.add_argument("--at-once", type=int, default=16)
    options = parser.parse_args()
    print("| who scores | rows | rows/s | to one process | MB of who writes |\n" + "|---" * 5 + "|")
    for rows in (options.rows // 10, options.rows):
        first = 0.0
        for workers in (0, *options.workers):
            rate, mb = alone(scored, rows, workers, options.at_once)
            first = first or rate
            who = f"{workers} workers" if workers else "one process"
            cells = who, f"{rows:,}", f"{rate:.0f}", f"{rate / first:.2f}", f"{mb:.0f}"
            print(line(cells), flush=True)


def scored(rows: int, workers: int, at_once: int) -> tuple[float, float]:
    """Return the rows that are scored in a second, and the peak memory in MB."""
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        file, out = Path(folder) / "rows.jsonl", Path(folder) / "scores.jsonl"
        with file.open("w") as lines:
            lines.writelines(json.dumps(_row(at)) + "\n" for at in range(rows))
        with (
            _scorers(workers, at_once) as scorers,
            read_input(Data(file, "rows")) as read,
            open_run(read, scorers, out, settings={}, rows_at_once=at_once) as run,
        ):
            took = seconds(run.score)
            assert run.done == rows
    return rows / took, peak_mb()


@contextmanager
def _scorers(workers: int, at_once: int) -> Iterator[Mapping[str, Scorer]]:
    model = FakeListChatModel(responses=["1. Entailment\n2. Entailment"])
    evaluators = {"refchecker": RefChecker(model, claims="sentences", checker="joint")}
    if not workers:
        yield evaluators
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    from demur_ray._pool import Pool

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
    with Pool(evaluators, at_once, workers) as pool:
        # A pool begins with its first worker; a fair measurement has to wait for the others.
        while not all(place.up for place in pool._places):
            time.sleep(0.1)
        yield pool.scorers
    ray.shutdown()


def _row(at: int) -> dict[str, Any]:
    return {
        "question": f"Where is mill {at}?",
        "answer": f"Mill {at} is by the river. It has {at % 7 + 2} floors.",
        "contexts": [f"By the river stands mill {at}, of {at % 7 + 2} floors.", "It is old. " * 30],
    }


if __name__ == "__main__":
    main()
