"""Score the answers that have no result yet, several rows at a time.

Daemon threads score the rows, and the caller's thread writes the results. An interrupt reaches the
caller's thread, so it never waits for a reply. An event loop of asyncio would wait at its end for
the threads of models that have no async calls. The answers of one row are scored one after the
other, because they share the requests about their question. If a scorer uses another process, its
thread waits for that process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any, Protocol, TypeAlias

from demur._secrets import learn
from demur.calibration import answer_key
from demur.errors import DemurError
from demur.evaluators import Fitted
from demur.observe import redacted_evaluation
from demur.runtime import in_background, take
from demur.schema import Evaluation, Usage
from demur.scoring.ledger import Ledger
from demur.scoring.results import Result, Results, ScoringError
from demur.scoring.rows import Data, Digest, Row
from demur.scoring.scorers import Scorer, scored

_MOST_FAULTS_TOLD = 5


@dataclass(frozen=True)
class Progress:
    """Hold how far a run is."""

    done: int
    """The number of results in the file, including those of earlier runs."""
    total: int
    """The number of results that there will be in the end."""
    undetermined: int
    """The number of undetermined results of this run."""
    usage: Usage
    """What this run has cost so far, except for what `prepare` spent."""


@dataclass(frozen=True)
class _Scored:
    """Hold the evaluation of one answer by one evaluator."""

    row: Row
    name: str | None
    evaluator: str
    evaluation: Evaluation


_Event: TypeAlias = _Scored | BaseException | None
"""What the thread of a row reports: a result, an error that ends the run, or None at the row's
end."""


Wants: TypeAlias = Callable[[str, str], bool]
"""A function that takes an answer's key and an evaluator's name, and returns whether the evaluator
scores the answer."""


class Prepare(Protocol):
    """Ask the references about questions before the first answer is scored, as `FEWL.fit` does."""

    def __call__(self, questions: Iterable[str], *, progress: Callable[[Fitted], None]) -> Fitted:
        """Ask about the questions, and call `progress` after each question."""
        ...


@dataclass(frozen=True)
class Input:
    """Represent rows that were read and found to be without faults. `read_input` makes it."""

    data: Data
    ledger: Ledger
    sha256: str

    @property
    def count(self) -> int:
        """Return the number of rows that have answers to be scored."""
        return self.ledger.count("select count(distinct line) from answers")


@dataclass(frozen=True)
class Run:
    """Represent an input, its results so far, and the evaluators. `open_run` makes it."""

    input: Input
    evaluators: Mapping[str, Scorer]
    results: Results
    rows_at_once: int
    wants: Wants = lambda key, evaluator: True
    _finished: SimpleQueue[_Event] = field(init=False, default_factory=SimpleQueue)
    _stopped: Event = field(init=False, default_factory=Event)

    @property
    def ledger(self) -> Ledger:
        """Return the ledger of what is to be scored and what was found."""
        return self.input.ledger

    @property
    def total(self) -> int:
        """Return the number of results that there will be in the end."""
        keys = self.ledger.select("select key from answers")
        return sum(self.wants(key, evaluator) for (key,) in keys for evaluator in self.evaluators)

    @property
    def done(self) -> int:
        """Return the number of results that there are."""
        return self.ledger.count("select count(*) from found")

    def questions(self) -> Iterator[str]:
        """Yield the questions of the rows, in order. Rows without a question are left out."""
        for row in self.input.data.rows():
            question = next(iter(row.samples.values())).question
            if question is not None:
                yield question

    def spend(self, usage: Usage) -> None:
        """Record a cost that belongs to no single answer, such as the cost of references."""
        self.results.append({"spent": usage.model_dump(), "time": _now()})
        self.ledger.spend(usage)

    def prepare(self, ask: Prepare, progress: Callable[[Fitted], None] = lambda now: None) -> None:
        """Have the references asked about all questions, and record what each question cost.

        Args:
            ask: The object that asks.
            progress: A function that is called after each question.

        Raises:
            DemurError: All questions failed.
        """
        before = Usage()

        def told(now: Fitted) -> None:
            nonlocal before
            if now.usage.calls > before.calls:
                self.spend(_difference(now.usage, before))
                before = now.usage
            progress(now)

        fitted = ask(self.questions(), progress=told)
        if fitted.failed and not fitted.done:  # e.g. a wrong key, with which each answer would fail
            _, why = fitted.failed[0]
            raise DemurError(f"none of the {fitted.questions:,} questions could be asked: {why}")

    def missing(self) -> Iterator[tuple[Row, list[tuple[str | None, str]]]]:
        """Yield the rows in order, each with its pairs of answer and evaluator without a result."""
        for row in self.input.data.rows():
            pairs = [
                (name, evaluator)
                for name in row.samples
                for evaluator in self.evaluators
                if self._is_missing(row.key(name), evaluator)
            ]
            if pairs:
                yield row, pairs

    def _is_missing(self, key: str, evaluator: str) -> bool:
        return self.wants(key, evaluator) and self.ledger.lacks(key, evaluator)

    def score(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Score what is missing, and write each result as soon as it is there.

        Results that were written are kept after every error, and after an interrupt.

        Args:
            progress: A function that is called before the first result, and after each result.

        Raises:
            DemurError: A model cannot be used, the file cannot be written, or the rows have changed
                since they were first read.
        """
        report = progress or (lambda now: None)
        now = Progress(self.done, self.total, 0, Usage())
        report(now)
        waiting, at_work = self.missing(), 0
        try:
            while True:
                while at_work < self.rows_at_once and (begun := next(waiting, None)) is not None:
                    in_background(partial(self._score, *begun))
                    at_work += 1
                if not at_work:
                    break
                event = take(self._finished)
                if isinstance(event, BaseException):
                    raise event
                if event is None:
                    at_work -= 1
                    continue
                self._write(event)
                now = _after(now, event.evaluation)
                report(now)
        finally:
            self._stopped.set()
            self._write_finished()
        if now.done < now.total:
            raise DemurError(
                f"{now.total - now.done:,} answers of {self.input.data.name} were missing when "
                "it was read again: do not change it while it is scored"
            )

    def _score(self, row: Row, pairs: list[tuple[str | None, str]]) -> None:
        """Score a row, in its own thread."""
        try:
            for name, evaluator in pairs:
                if self._stopped.is_set():
                    break
                evaluation = scored(self.evaluators[evaluator], evaluator, row.samples[name])
                self._finished.put(_Scored(row, name, evaluator, evaluation))
            self._finished.put(None)
        except BaseException as error:
            self._finished.put(error)

    def _write_finished(self) -> None:
        """Write the results that other rows had found when the run ended."""
        while True:
            try:
                event = self._finished.get_nowait()
            except Empty:
                return
            if isinstance(event, _Scored):
                self._write(event)

    def _write(self, finding: _Scored) -> None:
        key, sample = finding.row.key(finding.name), finding.row.samples[finding.name]
        self.results.append(
            {
                "key": key,
                "row": finding.row.id,
                "answer": finding.name,
                "evaluator": finding.evaluator,
                "time": _now(),
                "same": answer_key(sample.question, sample.answer),
                "evaluation": redacted_evaluation(finding.evaluation),
            }
        )
        self.ledger.note(key, finding.evaluator, finding.evaluation)


@contextmanager
def read_input(data: Data) -> Iterator[Input]:
    """Read all rows, so that every fault shows before anything is spent.

    Raises:
        ScoringError: The file cannot be read, or has lines that are no valid rows. The message
            names the lines, and says what is wrong with each.
    """
    with closing(Ledger(data.word)) as ledger:
        yield Input(data, ledger, _index(data, ledger))


def _index(data: Data, ledger: Ledger) -> str:
    """Add the answers that are to be scored to the ledger, and return the hash of the input."""
    digest, faults, count, rows = Digest(data.ordered), [], 0, 0
    try:
        for number, raw in data.lines():
            digest.update(raw)
            try:
                row = data.row(number, raw)
                chosen = data.select(row)
                if chosen is not None and (data.limit is None or rows < data.limit):
                    ledger.add(chosen)
                rows += 1
            except ValueError as error:
                count += 1
                if count <= _MOST_FAULTS_TOLD:
                    faults.append(f"{data.name}, {data.word} {number}: {error}")
    except OSError as error:
        raise ScoringError(f"cannot read {data.name}: {error.strerror}") from error
    if count:
        rest = count - len(faults)
        more = [f"and {rest} more such {data.word}{'s' if rest > 1 else ''}"] if rest else []
        raise ScoringError("\n".join([*faults, *more]))
    if not rows:
        raise ScoringError(f"{data.name} has no rows: there is nothing to score")
    return digest.hexdigest()


@contextmanager
def open_run(
    input: Input,
    evaluators: Mapping[str, Scorer],
    out: Path,
    *,
    settings: Mapping[str, Any],
    rows_at_once: int = 16,
    restart: bool = False,
    retry: bool = False,
    wants: Wants = lambda key, evaluator: True,
) -> Iterator[Run]:
    """Open the results file and read the results that it has. Nothing is scored yet.

    Args:
        input: The rows to score. An input can be used for one run only.
        evaluators: The scorers, by the names that they have in the results. Each is an evaluator,
            or an object that has another process score.
        out: The results file.
        settings: A description of how the evaluators score, as JSON. A file with results of other
            settings is refused.
        rows_at_once: The number of rows that are scored at the same time, at least 1.
        restart: Whether to put earlier results aside and start a new file.
        retry: Whether to score undetermined answers again.
        wants: A function that says which answers an evaluator scores.

    Raises:
        ScoringError: The file holds results of another run, or cannot be used.
    """
    learn(evaluators)  # the keys of their models, which must not get into a result
    data, ledger = input.data, input.ledger
    if data.path is not None and out.exists() and out.samefile(data.path):
        raise ScoringError(f"{out} is the input itself: name another file with -o")
    read = {target: source for target, source in data.fields.items() if target not in data.extra}
    described = {"name": data.name, "sha256": input.sha256, "fields": read}

    def wanted(found: Result) -> bool:
        there = ledger.count("select count(*) from answers where key = ?", found.key)
        return bool(there) and found.evaluator in evaluators and wants(found.key, found.evaluator)

    with Results(out, described, settings, restart) as results:
        if retry:
            results.forget_undetermined(wanted)
        for line in results.lines():
            if isinstance(line, Usage):
                ledger.spend(line)
            elif isinstance(line, Result) and wanted(line):
                ledger.note(line.key, line.evaluator, line.evaluation)
        yield Run(input, evaluators, results, rows_at_once, wants)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _difference(now: Usage, before: Usage) -> Usage:
    values = {name: value - getattr(before, name) for name, value in now}
    return Usage(**values)


def _after(now: Progress, evaluation: Evaluation) -> Progress:
    return Progress(
        now.done + 1,
        now.total,
        now.undetermined + evaluation.undetermined,
        now.usage + evaluation.usage,
    )
