"""A run: the answers that have no finding yet are scored, some rows at a time.

Rows are scored in daemon threads and written by the caller's, which is what an interrupt reaches:
so it never waits for a reply. (A loop of asyncio would wait at its end for the threads of models
that know no other way.) The answers of one row follow each other, since they share what is asked
for their question. Where a scorer has another process do it, its thread waits for that.
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

from demur._known_secrets import learn
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
    """How far a run is."""

    done: int
    """Findings in the file, those of earlier runs too."""
    total: int
    """Answers times evaluators."""
    undetermined: int
    """Of those found in this run."""
    usage: Usage
    """Of this run."""


@dataclass(frozen=True)
class _Scored:
    """What one evaluator found of one answer."""

    row: Row
    name: str | None
    evaluator: str
    evaluation: Evaluation


_Event: TypeAlias = _Scored | BaseException | None
"""What a row's thread tells: a finding, an error that ends the run, or None at the row's end."""


Wants: TypeAlias = Callable[[str, str], bool]
"""From an answer's key and the name of an evaluator to whether it scores the answer."""


class Prepare(Protocol):
    """Has something asked about questions before the first answer is scored, as `FEWL.fit`."""

    def __call__(self, questions: Iterable[str], *, progress: Callable[[Fitted], None]) -> Fitted:
        """Ask, and tell `progress` after each question how far it is."""
        ...


@dataclass(frozen=True)
class Input:
    """Rows that were found to be without fault. Made by `read_input`."""

    data: Data
    ledger: Ledger
    sha256: str

    @property
    def count(self) -> int:
        """How many rows have answers to be scored."""
        return self.ledger.count("select count(distinct line) from answers")


@dataclass(frozen=True)
class Run:
    """An input, its results so far, and who scores. Made by `open_run`."""

    input: Input
    evaluators: Mapping[str, Scorer]
    results: Results
    rows_at_once: int
    wants: Wants = lambda key, evaluator: True
    _finished: SimpleQueue[_Event] = field(init=False, default_factory=SimpleQueue)
    _stopped: Event = field(init=False, default_factory=Event)

    @property
    def ledger(self) -> Ledger:
        """What is to be scored and what was found."""
        return self.input.ledger

    @property
    def total(self) -> int:
        """How many findings there will be."""
        keys = self.ledger.select("select key from answers")
        return sum(self.wants(key, evaluator) for (key,) in keys for evaluator in self.evaluators)

    @property
    def done(self) -> int:
        """How many there are."""
        return self.ledger.count("select count(*) from found")

    def questions(self) -> Iterator[str]:
        """The rows' questions, in order; a row without one is left out."""
        for row in self.input.data.rows():
            question = next(iter(row.samples.values())).question
            if question is not None:
                yield question

    def spend(self, usage: Usage) -> None:
        """Write down what was spent on no answer of its own, such as on references."""
        self.results.append({"spent": usage.model_dump(), "time": _now()})
        self.ledger.spend(usage)

    def prepare(self, ask: Prepare, progress: Callable[[Fitted], None] = lambda now: None) -> None:
        """Have references asked about all questions, and write down what each cost.

        Args:
            ask: Who asks.
            progress: Told after each.

        Raises:
            DemurError: Not one question could be asked.
        """
        before = Usage()

        def told(now: Fitted) -> None:
            nonlocal before
            if now.usage.calls > before.calls:
                self.spend(_difference(now.usage, before))
                before = now.usage
            progress(now)

        fitted = ask(self.questions(), progress=told)
        if fitted.failed and not fitted.done:  # a wrong key, say: each answer would tell it again
            _, why = fitted.failed[0]
            raise DemurError(f"not one of {fitted.questions:,} questions could be asked: {why}")

    def missing(self) -> Iterator[tuple[Row, list[tuple[str | None, str]]]]:
        """Rows in order, each with the answers and evaluators that have no finding yet."""
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
        """Score what is missing, and write each finding as soon as it is there.

        Args:
            progress: Told after each.

        Raises:
            DemurError: A model cannot be had, the file not be written, or the rows are not those
                that were read at first. What was found is kept, and so it is after an interrupt.
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
                f"{now.total - now.done:,} answers of {self.input.data.name} were there when it "
                "was read first, and then were not: leave it as it is while it is scored"
            )

    def _score(self, row: Row, pairs: list[tuple[str | None, str]]) -> None:
        """Score a row, in a thread of its own."""
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
        """Write what other rows had found when the run was ended."""
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
    """Read all rows, so that no fault shows after something was spent.

    Raises:
        ScoringError: The file cannot be read, or has lines that are no rows: the message says which
            lines, and what is wrong with each.
    """
    with closing(Ledger(data.word)) as ledger:
        yield Input(data, ledger, _index(data, ledger))


def _index(data: Data, ledger: Ledger) -> str:
    """Take the answers to be scored into the ledger; the input's hash."""
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
    """Read the results that are there; nothing is scored yet.

    Args:
        input: What is to be scored. One input serves one run.
        evaluators: Who scores, by the names that the results give them: evaluators, or what has
            others score.
        out: The file of results.
        settings: What tells how the evaluators score, as JSON. A file with results of other
            settings is refused.
        rows_at_once: How many rows are under way at a time; at least 1.
        restart: Whether to begin anew.
        retry: Whether to score again what is undetermined.
        wants: Which answers an evaluator scores.

    Raises:
        ScoringError: The results are not of this run.
    """
    learn(evaluators)  # their models' keys, which no result is to hold
    data, ledger = input.data, input.ledger
    if data.path is not None and out.exists() and out.samefile(data.path):
        raise ScoringError(f"{out} is the input itself: -o names another file")
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
