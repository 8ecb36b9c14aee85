"""Write reports of varied runs, and open them in Chromium."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demur import Claim, ClaimLabel, Evaluation, Evidence, Span
from demur.observe import Record
from demur.observe.log import open_log
from demur.views.report import write_report
from support.records import PASSAGE, attempt, found, guarded, jsonl, run, undetermined

LAPTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 1}
RIGHT, WRONG = "It is 2,850 km long.", "It flows into the Adriatic Sea."


def _judged(score: float, wrong: bool) -> Evaluation:
    """Return an evaluation with two claims, which have spans and evidence."""
    quotes = ("2,850 km long", "flows into the Black Sea")
    claims = []
    for text, quote, bad in ((RIGHT, quotes[0], False), (WRONG, quotes[1], wrong)):
        label = ClaimLabel.CONTRADICTION if bad else ClaimLabel.ENTAILMENT
        at, place = f"{RIGHT} {WRONG}".index(text), PASSAGE.index(quote)
        evidence = Evidence(
            context=0, span=Span(start=place, end=place + len(quote)), text=quote, label=label
        )
        span = Span(start=at, end=at + len(text))
        claims.append(Claim(text=text, span=span, label=label, evidence=(evidence,)))
    return found("RefChecker", score, score >= 0.5, claims=tuple(claims))


def _runs(count: int) -> Iterator[Record]:
    """Yield runs: half are hallucinated and score lower; a third have no label."""
    draw = random.Random(7)
    for at in range(count):
        wrong = at % 2 == 0
        score = round(draw.betavariate(2, 5) if wrong else draw.betavariate(5, 2), 4)
        judged = [_judged(score, wrong), found("FEWL", round(draw.gauss(0, 1), 4), None)]
        answer = f"{RIGHT} {WRONG}"
        yield run(
            attempt(*judged[: 1 + at % 3], answer=answer, question=f"What of river {at}?"),
            at=at * 60,
            model="llama" if at % 5 == 0 else "gpt",
            metadata={} if at % 3 == 0 else {"hallucinated": wrong},
            id=f"id-{at}",
        )


def unscored(record: Record) -> Record:
    """Return the record without scores: the page then draws no figure."""
    attempts = []
    for one in record.attempts:
        bare = tuple(each.model_copy(update={"score": None}) for each in one.evaluations)
        attempts.append(one.model_copy(update={"evaluations": bare}))
    return record.model_copy(update={"attempts": tuple(attempts)})


RUNS = [*_runs(160), guarded(at=1e5, id="id guarded/ä"), run(attempt(undetermined()), at=2e5)]


def write(folder: Path, runs: Any, **given: Any) -> Path:
    """Write the report of these runs, and return its path."""
    with open_log(jsonl(folder / "log.jsonl", runs)) as log:
        write_report(log, folder / "report.html", **given)
    return folder / "report.html"


@contextmanager
def clean(page: Any, seen: Any, path: Path, hash: str) -> Iterator[None]:
    """Open the page; at the end, check that it has no errors and made no requests."""
    page.goto(path.as_uri() + hash)
    yield
    assert seen.errors == []
    assert [one.partition("#")[0] for one in seen.requests] == [path.as_uri()]


def on(report: Path, chromium: Any, do: Callable[[Any], None], **given: Any) -> None:
    """Do something with the report's page in Chromium, and check it with `clean`."""
    hash = given.pop("hash", "")

    def steps(page: Any, seen: Any) -> None:
        with clean(page, seen, report, hash):
            do(page)

    chromium(steps, **{**LAPTOP, **given})


def texts(page: Any, column: str) -> list[str]:
    """Return the texts of a column of the table, row by row."""
    shown: list[str] = page.locator(f"#rows tbody td.{column}").all_inner_texts()
    return shown
