"""Read judged answers, with labels and questions, from a log or from results of `demur score`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import typer

from demur.calibration import answer_key
from demur.comparing import Told
from demur.errors import DemurError
from demur.evaluators import nearest_quote
from demur.guard import Attempt
from demur.observe.log import Damaged, JudgedAnswer, answered, database_of, open_log
from demur.schema import failure_of
from demur.scoring import Note, Result, is_results, read_lines
from demur.views import terminal


@dataclass
class Held:
    """Hold what a log or a results file contains."""

    name: str
    """The name that messages use for it."""
    judged: dict[str, dict[str, JudgedAnswer]] = field(default_factory=dict)
    """The judged answers, by the evaluator's name and then by the answer's id."""
    labels: dict[str, bool] = field(default_factory=dict)
    """Whether an answer is hallucinated, by its id."""
    same: dict[str, str | None] = field(default_factory=dict)
    """The key of each answer, by its id; see `answer_key`. Equal answers have equal keys."""
    attempts: dict[str, Attempt] = field(default_factory=dict)
    """The judged answers of a log, by their ids, if they were asked for."""
    questions: dict[str, str] = field(default_factory=dict)
    """The questions of a log, each on one line, by the answers' ids; without removed ones."""
    groups: dict[str, str] = field(default_factory=dict)
    """What each answer belongs to, by its id: in results a row or group, in a log a question."""
    redacted: set[str] = field(default_factory=set)
    """The ids of answers whose texts were changed before they were kept."""
    unknown: set[str] = field(default_factory=set)
    """The ids of labels that belong to no answer."""
    damaged: list[Damaged] = field(default_factory=list)
    cut: str = ""
    """Advice on how to take only a part of it."""


def read(where: str, labels: Mapping[str, bool] | None, *, texts: bool = False) -> Held:
    """Read a log, or results of `demur score`.

    Args:
        where: The file, or the URL of a database.
        labels: Whether each answer is hallucinated, by the answer's id.
        texts: Whether to hold the attempts of a log, which may be large.

    Raises:
        DemurError: It cannot be read, or is neither a log nor results.
    """
    if database_of(where) is None and is_results(Path(where)):
        held = _results(Path(where), labels or {})
    else:
        held = _log(where, labels, texts)
    held.unknown = set(labels or ()) - held.same.keys()
    return held


def _results(path: Path, labels: Mapping[str, bool]) -> Held:
    held, told = Held(str(path), cut="Score all answers with the same settings"), Told()
    for line in read_lines(path):
        if isinstance(line, Note):
            told.take(line)
        elif isinstance(line, Result):
            held.same[line.key] = line.same
            held.groups[line.key] = line.row or line.key
            # The last result of an answer counts.
            judged = held.judged.setdefault(line.evaluator, {})
            judged[line.key] = JudgedAnswer((line.evaluation,))
    held.labels = {id: label.hallucinated for id, label in told.labels.items()} | {**labels}
    held.groups |= {id: label.group for id, label in told.labels.items()}
    return held


def _log(where: str, labels: Mapping[str, bool] | None, texts: bool) -> Held:
    with open_log(where) as log:
        held = Held(log.name, damaged=[*log.damaged])
        held.cut = (
            "Take the runs of one kind, such as the later ones: "
            f"demur log list {log.name} --since TIME -n 1000000 --json > part.jsonl"
        )
        for answer in answered(log, labels=labels):
            if isinstance(answer, Damaged):
                held.damaged.append(answer)
                continue
            id = answer.record.id
            first = answer.record.attempts[0]
            if texts:
                held.attempts[id] = first
            told = [first.question or "", first.answer]
            if answer.record.redacted:
                held.redacted.add(id)
                # The note in place of a removed text is the same for all texts of its length.
                told = ["" if text.startswith("[removed: ") else text for text in told]
            held.same[id] = answer_key(*told)
            if question := " ".join(told[0].split()):
                held.questions[id] = question
            held.groups[id] = question or id
            if answer.hallucinated is not None:
                held.labels[id] = answer.hallucinated
            for judged in answer.judged:
                held.judged.setdefault(judged.name, {})[id] = judged
    return held


def claims(held: Held, judge: str, id: str) -> Iterator[dict[str, str | None]]:
    """Yield the failing claims, or all claims of an answer that passed, with the nearest quotes."""
    contexts = held.attempts[id].contexts if id in held.attempts else ()
    every = [claim for part in held.judged[judge][id].parts for claim in part.claims]
    for claim in [claim for claim in every if failure_of(claim)] or every:
        label, quote = claim.label or "no label", nearest_quote(claim, contexts)
        yield {"label": label, "claim": claim.text, "quote": quote.text if quote else None}


def chosen(held: Held, evaluator: str | None) -> str:
    """Return the evaluator whose scores are used: the named one, or the only one.

    Raises:
        BadParameter: There are several evaluators and none is named, or the named one is missing.
        DemurError: There are no scores.
    """
    known = sorted(held.judged)
    if not known:
        raise DemurError(f"{held.name} holds no scores: no evaluator judged an answer in it")
    if evaluator is None and len(known) == 1:
        return known[0]
    if evaluator not in held.judged:
        names = ", ".join(map(repr, known))
        message = (
            f"{held.name} has the scores of several evaluators, name one: {names}"
            if evaluator is None
            else f"expected an evaluator that {held.name} has scores of: {names}; got {evaluator!r}"
        )
        raise typer.BadParameter(terminal.one_line(message), param_hint="--evaluator")
    return evaluator
