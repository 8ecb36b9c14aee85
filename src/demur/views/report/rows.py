"""Collect what the page's table and figures need of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from demur._text import one_line
from demur.observe.log import LoggedAnswer
from demur.schema import Finding


@dataclass
class Column:
    """Hold what one evaluator says about the first answers, run by run."""

    name: str
    findings: list[Finding | None]
    """The findings; None if the evaluator did not judge the answer."""
    scores: list[float | None]
    fingerprints: Counter[tuple[tuple[str, str], ...]] = field(default_factory=Counter)
    """How many of the scores have which fingerprints, see `Evaluation.fingerprints`."""
    in_parts: int = 0
    """How many of the scores are the lowest of several, see `Judged.parts`."""
    namesakes: bool = False
    """Whether several evaluators of this name judged the same answers."""

    @property
    def scored(self) -> list[int]:
        """Return the indices of the runs with a score."""
        return [at for at, score in enumerate(self.scores) if score is not None]

    @property
    def silent(self) -> list[int]:
        """Return the indices of the runs in which the evaluator found nothing to check."""
        return [at for at, finding in enumerate(self.findings) if finding == "nothing_to_check"]


@dataclass
class Rows:
    """Hold the runs in columns, the oldest first."""

    ids: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    """The times in milliseconds since 1970, UTC."""
    names: list[str | None] = field(default_factory=list)
    models: list[str | None] = field(default_factory=list)
    questions: list[str | None] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """The first answers, to which `verdicts` belong, too."""
    verdicts: list[str] = field(default_factory=list)
    outcomes: list[str | None] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    labels: list[bool | None] = field(default_factory=list)
    """Whether the first answer is hallucinated; None without a label."""
    evaluators: dict[str, Column] = field(default_factory=dict)

    def add(self, answer: LoggedAnswer) -> None:
        """Add the next run."""
        record, first = answer.record, answer.record.attempts[0]
        before = len(self.ids)
        self.ids.append(record.id)
        self.times.append(round(record.time.timestamp() * 1000))
        self.names.append(_shown(record.name))
        self.models.append(_shown(record.model))
        self.questions.append(_shown(first.question))
        self.answers.append(one_line(first.answer))
        self.verdicts.append(first.verdict)
        self.outcomes.append(record.outcome)
        self.attempts.append(len(record.attempts))
        self.labels.append(answer.hallucinated)
        for column in self.evaluators.values():
            column.findings.append(None)
            column.scores.append(None)
        for judged in answer.judged:
            column = self.evaluators.get(judged.name) or self._column(judged.name, before + 1)
            column.findings[-1], column.scores[-1] = judged.finding, judged.score
            if judged.score is not None:
                column.fingerprints[tuple(sorted(judged.fingerprints.items()))] += 1
                column.in_parts += len(judged.parts) > 1
            column.namesakes |= judged.namesakes

    def _column(self, name: str, length: int) -> Column:
        self.evaluators[name] = column = Column(name, [None] * length, [None] * length)
        return column

    def as_json(self) -> dict[str, Any]:
        """Return the columns as the page's script reads them."""
        columns = self.evaluators.values()
        return {
            "id": self.ids,
            "time": self.times,
            "name": self.names,
            "model": self.models,
            "question": self.questions,
            "answer": self.answers,
            "verdict": self.verdicts,
            "outcome": self.outcomes,
            "attempts": self.attempts,
            "label": self.labels,
            "findings": [column.findings for column in columns],
            "scores": [column.scores for column in columns],
        }


def _shown(text: str | None) -> str | None:
    return None if text is None else one_line(text)


def chunks(values: Iterator[str], most: int, signs: int) -> Iterator[Sequence[str]]:
    """Yield the values in lists of at most `most`, each of which ends at `signs` characters."""
    some: list[str] = []
    for value in values:
        some.append(value)
        if len(some) == most or sum(map(len, some)) >= signs:
            yield some
            some = []
    if some:
        yield some
