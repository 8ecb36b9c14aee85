"""Run the adapters against the server, and grade what they return."""

from __future__ import annotations

import json
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from bench.serving import served

from peers import adapters, environments
from peers.adapters import Adapter, AdapterError
from peers.speed.rows import Row, answers_at
from peers.speed.texts import Text, Unit, texts

Grade = Literal["right", "none", "wrong", "lost"]
""""right": the right score. "none": the peer says that it has no score, by an error, None or NaN.
"wrong": another score. "lost": a call for many answers failed or did not end, so none of them has a
score."""

_HERE = Path(__file__).parent
SPOILED_AT_ONCE = 16
_TOLERANCE = 1e-6
_GRACE = 30.0
"""The seconds in which an adapter whose time is up must reply."""


@dataclass(frozen=True)
class Run:
    """Hold the figures of one run over all answers of a level."""

    at_once: int
    answers: int
    wall: float
    """The wall time in seconds."""
    cpu: float
    """The CPU seconds of the adapter."""
    peak_mib: float
    grades: Mapping[str, int]
    """How many answers got each `Grade`."""
    counts: Mapping[str, Any]
    """The counts of the server (`peers.speed.server.Counts`)."""
    said: Sequence[str] = ()
    """The first few reasons for missing scores."""


@dataclass(frozen=True)
class Measured:
    """Hold a row with all its runs."""

    row: Row
    version: str
    import_seconds: float
    clean: Sequence[Run]
    spoiled: Run | None

    def per_answer(self, what: str) -> float:
        """Return a count of the server for each answer, over all clean runs."""
        total = sum(run.counts[what] for run in self.clean)
        return float(total / sum(run.answers for run in self.clean))

    @property
    def cpu_ms(self) -> float:
        """Return the milliseconds of CPU for each answer, over all clean runs."""
        total = sum(run.cpu for run in self.clean)
        return 1000 * total / sum(run.answers for run in self.clean)


@dataclass(frozen=True)
class Failed:
    """Hold a row that cannot be measured, and the reason."""

    row: Row
    why: str


@dataclass(frozen=True)
class Server:
    """Represent the running server for its clients."""

    url: str
    counted_with: str

    def reset(self, share: float = 0.0, seed: int = 0) -> None:
        """Set the counts to zero, and spoil this share of the requests from now on."""
        _ask(self._at("/reset"), json.dumps({"share": share, "seed": seed}).encode())

    def counts(self) -> dict[str, Any]:
        """Return the counts since the last reset."""
        return dict(_ask(self._at("/counts")))

    def _at(self, path: str) -> str:
        return self.url.removesuffix("/v1") + path


def _ask(url: str, body: bytes | None = None) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=30) as response:
        return json.loads(response.read())


@contextmanager
def serving(latency: float) -> Iterator[Server]:
    """Run the server for the length of a `with` block; every request takes `latency` seconds."""
    with served("peers.speed.server", "--latency", latency) as ready:
        yield Server(ready["url"], ready["tokens"])


@contextmanager
def adapter(row: Row, url: str) -> Iterator[Adapter]:
    """Run a row's adapter for the length of a `with` block, in its own folder.

    What it prints is dropped.

    Raises:
        AdapterError: The adapter has ended or does not answer.
        environments.NoEnvironmentError: The peer cannot be installed.
    """
    program = _HERE / "adapters" / f"{row.adapter}.py"
    environment = None if row.peer == "demur" else row.peer
    served_at = {"OPENAI_BASE_URL": url, "OPENAI_API_BASE": url}
    with (
        tempfile.TemporaryDirectory() as folder,
        open(Path(folder) / "printed", "w+") as printed,
        adapters.running(
            environment, program, row.arguments, folder, printed, **served_at
        ) as running,
    ):
        try:
            yield running
        except AdapterError as error:
            printed.seek(0)
            last = "\n".join(printed.read().strip().splitlines()[-3:])
            raise AdapterError(f"{row.name}: {error}: {last}") from None


def ask(running: Adapter, asked: Sequence[Text], at_once: int, patience: float) -> dict[str, Any]:
    """Score all answers, `at_once` at a time; those not done in `patience` seconds are lost."""
    samples = [text.as_json() for text in asked]
    task = {"samples": samples, "at_once": at_once, "patience": patience}
    return running.ask(task, patience + _GRACE)


def measure(
    row: Row,
    server: Server,
    levels: Sequence[int],
    answers: int,
    *,
    share: float = 0.2,
    seed: int = 0,
    patience: float = 120.0,
) -> Measured:
    """Run a row at every level, and once more with a share of the requests spoiled.

    Before the clock starts, all answers are scored once. This opens the connections, fills the
    peer's caches, and shows the server every request.

    Args:
        row: The row to run.
        server: The server of its requests.
        levels: The numbers of answers to score at a time.
        answers: The number of answers, for rows whose answers do not take long (`answers_at`).
        share: The share of the requests to spoil in the last run, in [0, 1]; 0: there is no such
            run.
        seed: The seed that selects the requests to spoil.
        patience: The seconds that a run may take; answers that are not done then are lost.

    Raises:
        environments.NoEnvironmentError: The peer cannot be installed.
        AdapterError: The adapter does not run, or does not even stop when its time is up.
    """
    numbers = {level: answers_at(level, answers, row.serial or row.depth) for level in levels}
    asked = texts(max(numbers.values()))
    with adapter(row, server.url) as running:
        ready = running.told(patience)
        server.reset()
        ask(running, asked, max(levels), patience)
        clean = []
        for level in levels:
            server.reset()
            came = ask(running, asked[: numbers[level]], level, patience)
            clean.append(_run(came, asked[: numbers[level]], level, row.unit, server.counts()))
        spoiled = None
        if share:
            server.reset(share, seed)
            came = ask(running, asked, SPOILED_AT_ONCE, patience)
            spoiled = _run(came, asked, SPOILED_AT_ONCE, row.unit, server.counts())
    told = (
        version("demur")
        if row.peer == "demur"
        else environments.versions(row.peer, row.package)[row.package]
    )
    return Measured(row, told, ready["import_seconds"], clean, spoiled)


def _run(
    came: Mapping[str, Any],
    asked: Sequence[Text],
    at_once: int,
    unit: Unit,
    counts: Mapping[str, Any],
) -> Run:
    graded = [
        grade(result, text.score(unit)) for result, text in zip(came["results"], asked, strict=True)
    ]
    said = [
        result.get("lost") or result.get("error")
        for result in came["results"]
        if "score" not in result
    ]
    return Run(
        at_once=at_once,
        answers=len(asked),
        wall=came["wall"],
        cpu=came["cpu"],
        peak_mib=came["peak_mib"],
        grades=dict(Counter(graded)),  # a Counter does not survive `asdict`
        counts=counts,
        said=list(dict.fromkeys(said))[:5],
    )


def grade(result: Mapping[str, Any], right: float) -> Grade:
    """Return the grade of an answer whose right score is known."""
    if "lost" in result:
        return "lost"
    if "error" in result:
        return "none"
    return "right" if abs(result["score"] - right) <= _TOLERANCE else "wrong"
