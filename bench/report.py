"""Measure the report of 10,000 runs: its size, and the time to write, open, filter and sort it.

    python -m bench.report [--runs 10000] [--keep FILE]

The page is opened in headless Chromium, if it is installed. Figures over their goals are listed at
the end. They are not a failure, because other work on the machine changes the figures.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from demur import Claim, ClaimLabel, Evaluation, Evidence, Span, Usage
from demur.guard import Attempt
from demur.observe import Record, SQLSink
from demur.observe.log import open_log
from demur.views.report import write_report

_OPEN_GOAL, _STEP_GOAL = 3.0, 0.2
_ROUNDS = 5
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_BEGIN = datetime(2026, 11, 1, tzinfo=timezone.utc)
_RIVERS = ("Alder", "Birch", "Cedar", "Dorn", "Esk", "Fal", "Gade", "Ham")
_PASSAGE = (
    "The {river} rises in the hills west of the town, is {length} km long and flows into the lake. "
    "Until 1954 it drove eleven mills, of which two still stand; one of them is a museum now, and "
    "the other one belongs to the university. In spring it often floods the meadows. "
)


def record(at: int, draw: random.Random) -> Record:
    """Return the record of a run about a river, with claims and their evidence."""
    river, length = draw.choice(_RIVERS), draw.randrange(40, 900)
    passage = _PASSAGE.format(river=river, length=length) * 3
    wrong = draw.random() < 0.3
    facts = (f"The {river} is {length + 7 * wrong} km long.", "It once drove eleven mills.")
    answer, quote = " ".join(facts), passage[: passage.index("lake") + 5]
    label = ClaimLabel.CONTRADICTION if wrong else ClaimLabel.ENTAILMENT
    found = Evidence(context=0, span=Span(start=0, end=len(quote)), text=quote, label=label)
    claims = (
        Claim(text=facts[0], span=Span(start=0, end=len(facts[0])), label=label, evidence=(found,)),
        Claim(text=facts[1], span=Span(start=len(facts[0]) + 1, end=len(answer)), label=label),
    )
    score = draw.betavariate(2, 4) if wrong else draw.betavariate(6, 2)
    usage = Usage(calls=2, input_tokens=900, output_tokens=60, seconds=1.5)
    evaluation = Evaluation(
        name="RefChecker", score=score, passed=score >= 0.5, claims=claims, usage=usage
    )
    attempt = Attempt(
        origin="chain",
        question=f"How long is the {river}, and what did it once drive? ({at})",
        answer=answer,
        contexts=tuple(Document(passage) for _ in range(3)),
        evaluations=(evaluation,),
        verdict="passed" if evaluation.passed else "failed",
        usage=usage,
    )
    return Record(
        id=f"{at:032x}",
        root=f"{at:032x}",
        time=_BEGIN + timedelta(seconds=at * 40),
        model=draw.choice(("small", "large")),
        metadata={"hallucinated": wrong} if draw.random() < 0.5 else {},
        attempts=(attempt,),
        usage=attempt.cost,
        seconds=2.0,
    )


def _write(folder: Path, runs: int) -> Path:
    draw = random.Random(9)
    sink = SQLSink(folder / "log.sqlite")
    for at in range(runs):
        sink.write(record(at, draw))
    sink.close()
    page = folder / "report.html"
    before = time.perf_counter()
    with open_log(folder / "log.sqlite") as log:
        written = write_report(log, page, last=runs)
    took = time.perf_counter() - before
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{written.rows:,} runs: {written.bytes / 1e6:.1f} MB, written in {took:.1f} s")
    print(f"at most {held:,.0f} MB held")
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="the file to keep the page in")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = _write(Path(folder), given.runs)
        if given.keep:
            shutil.copy(path, given.keep)
        chromium = next(filter(None, map(shutil.which, _NAMES)), None)
        if chromium is None:
            print("no Chromium: the page was not opened")
            return
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            root = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--disable-gpu", *root]
            )
            over = []
            for what, seconds, goal in _open(browser.new_page(), path):
                print(f"{what:20} {seconds:6.3f} s")
                if seconds > goal:
                    over.append(f"{what}: {seconds:.2f} s, the goal is {goal} s")
            browser.close()
    print("\n".join(over) or "all within their goals")


if __name__ == "__main__":
    main()
