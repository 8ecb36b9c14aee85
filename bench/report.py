"""Measure the report of 10,000 runs: its size, and the time to write, open, filter and sort it.

    python -m bench.report [--runs 10000] [--keep FILE]

The page is opened in headless Chromium, if it is installed. Figures over their goals are listed at
the end. They are not a failure, because other work on the machine changes the figures.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.measuring import Clock, arguments, peak_mb, tell_goals
from bench.records import record
from tools.browsers import executable, launched

from demur.observe import SQLSink
from demur.observe.log import open_log
from demur.views.report import write_report

_OPEN_GOAL, _STEP_GOAL = 3.0, 0.2
_ROUNDS = 5


def _write(folder: Path, runs: int) -> Path:
    draw = random.Random(9)
    sink = SQLSink(folder / "log.sqlite")
    for at in range(runs):
        sink.write(record(at, draw))
    sink.close()
    page = folder / "report.html"
    clock = Clock()
    with clock, open_log(folder / "log.sqlite") as log:
        written = write_report(log, page, last=runs)
    took = clock.total.wall
    print(f"{written.rows:,} runs: {written.bytes / 1e6:.1f} MB, written in {took:.1f} s")
    print(f"at most {peak_mb():,.0f} MB held")
    return page


# A user's step, and the seconds until the page has answered: until it has drawn the next frame.
_STEP = """async (step) => {
    const find = (id) => document.getElementById(id);
    const heads = (key) => document.querySelector(`#rows [data-key=${key}]`);
    const begin = performance.now();
    if (step === "search") {
        find("query").value = "the esk, and what";
        find("query").dispatchEvent(new Event("input", { bubbles: true }));
    } else if (step === "clear") {
        find("query").value = "";
        find("query").dispatchEvent(new Event("input", { bubbles: true }));
    } else if (step === "filter") {
        find("verdict").value = find("verdict").value ? "" : "failed";
        find("verdict").dispatchEvent(new Event("input", { bubbles: true }));
    } else if (step === "slide") {
        find("range-0").stepUp(500);
        find("range-0").dispatchEvent(new Event("input", { bubbles: true }));
    } else heads(step).click();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return (performance.now() - begin) / 1000;
}"""
_STEPS = ("search", "clear", "filter", "question", "score", "time", "slide")


def _open(page: Any, path: Path) -> Iterator[tuple[str, float, float]]:
    before = time.perf_counter()
    page.goto(path.as_uri(), wait_until="commit")
    page.wait_for_selector("#rows tbody tr")
    yield "the table is there", time.perf_counter() - before, _OPEN_GOAL
    page.wait_for_selector(".chart svg")
    page.wait_for_function("document.readyState === 'complete'")
    yield "all is there", time.perf_counter() - before, _OPEN_GOAL
    page.wait_for_timeout(500)
    for step in _STEPS:
        times = [page.evaluate(_STEP, step) for _ in range(_ROUNDS)]
        yield step, statistics.median(times), _STEP_GOAL
    before = time.perf_counter()
    page.click("#rows tbody a")
    page.wait_for_selector("#panel[open] .demur-answer")
    yield "a run's details", time.perf_counter() - before, _STEP_GOAL


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="the file to keep the page in")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = _write(Path(folder), given.runs)
        if given.keep:
            shutil.copy(path, given.keep)
        if executable() is None:
            print("no Chromium: the page was not opened")
            return
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = launched(playwright)
            over = []
            for what, seconds, goal in _open(browser.new_page(), path):
                print(f"{what:20} {seconds:6.3f} s")
                if seconds > goal:
                    over.append(f"{what}: {seconds:.2f} s, the goal is {goal} s")
            browser.close()
    tell_goals(over)


if __name__ == "__main__":
    main()
