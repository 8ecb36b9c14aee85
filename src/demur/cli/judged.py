"""Read the scores that a threshold is chosen from, out of a log or the results of `demur score`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import typer

from demur.calibration import answer_key, contradiction, differences, passes_up_to
from demur.comparing import Told
from demur.errors import DemurError
from demur.evaluators import nearest_quote
from demur.guard import Attempt
from demur.observe.log import LABEL, Damaged, JudgedAnswer, answered, database_of, open_log
from demur.schema import ABSTAIN, Evaluation, failure_of
from demur.scoring import Note, Result, is_results, read_lines
from demur.views import counted, terminal


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


@dataclass(frozen=True)
class Kept:
    """Hold the answers that a threshold is chosen from."""

    evaluations: dict[str, Evaluation]
    """The evaluations by the answers' ids: those that a threshold decides, and those of answers
    that state nothing to check."""
    left_out: dict[str, int]
    """The number of answers that were left out, by the reason."""
    in_parts: int = 0
    """How many answers with a score were judged sentence by sentence."""
    same: tuple[str | None, ...] = ()
    """The keys of the answers, in the order of `evaluations`; see `answer_key`."""

    @property
    def silent(self) -> list[str]:
        """Return the ids of the answers that state nothing to check."""
        return [id for id, evaluation in self.evaluations.items() if evaluation.nothing_to_check]

    @property
    def bounded(self) -> int:
        """Return how many answers have no score but a lower bound, because claims have no label."""
        return sum(evaluation.score is None for evaluation in self.evaluations.values()) - len(
            self.silent
        )


_WHYS = ("not judged", "undetermined", "without a score", "unlabelled")


def kept(held: Held, name: str, labelled: bool) -> Kept:
    """Return the answers from which a threshold for an evaluator is chosen.

    Args:
        held: The content of the log or of the results.
        name: The evaluator's name, as `chosen` returns it.
        labelled: Whether answers without a label are left out.

    Raises:
        DemurError: No answer is left, the scores depend on different things, some answers passed
            without a score, or the same answer has both labels.
    """
    judged = held.judged[name]
    if any(answer.namesakes for answer in judged.values()):
        raise DemurError(
            f"{held.name}: several evaluators that are called {name!r} judged the same answers, so "
            "that their scores cannot be told apart. Give each a name of its own, such as "
            'RefChecker(..., name="strict"), and score again'
        )
    left_out = dict.fromkeys(_WHYS[: None if labelled else -1], 0)
    left_out["not judged"] = len(held.same) - len(judged)
    taken: dict[str, Evaluation] = {}
    for id, answer in judged.items():
        evaluation = _as_one(answer)
        if passes_up_to(evaluation) is None and evaluation.finding == "passed":
            raise DemurError(
                f"{held.name}: {name} passed the answer {id!r} without a score, so no threshold "
                "decides what passes, and none can be chosen"
            )
        if passes_up_to(evaluation) is None:
            left_out["undetermined" if evaluation.undetermined else "without a score"] += 1
        elif labelled and id not in held.labels:
            left_out["unlabelled"] += 1
        else:
            taken[id] = evaluation
    if all(evaluation.nothing_to_check for evaluation in taken.values()):
        if taken:
            left_out["nothing to check"] = len(taken)
        remedy = "a threshold needs answers with scores"
        if left_out.get("unlabelled"):
            remedy = f"--labels names a file with the ids of answers and whether they are {LABEL}"
            if held.unknown:
                remedy += f"; the one given has other ids, such as {min(held.unknown)!r}"
        raise DemurError(
            f"{held.name}: no answer with a score is left of {name} ({counted(left_out)}): {remedy}"
        )
    if differing := differences(evaluation.fingerprints for evaluation in taken.values()):
        raise DemurError(
            f"{held.name}: the scores of {name} cannot be compared, they depend on different "
            f"things: {'; '.join(differing)}. {held.cut}"
        )
    ids = [*taken]
    same = tuple(held.same[id] for id in ids)
    if labelled and (pair := contradiction(same, [held.labels[id] for id in ids])):
        first, second = (repr(ids[at]) for at in pair)
        raise DemurError(
            f"{held.name}: {first} and {second} are the same answer to the same question, one "
            f"labelled as {LABEL} and the other not: correct the labels, or leave both out"
        )
    return Kept(taken, left_out, sum(len(judged[id].parts) > 1 for id in taken), same)


def _as_one(judged: JudgedAnswer) -> Evaluation:
    """Return the evaluations of the answer's sentences as one evaluation of the answer."""
    if len(judged.parts) == 1:
        return judged.parts[0]
    undetermined = judged.finding == "undetermined"
    return Evaluation(
        name=judged.name,
        score=None if undetermined else judged.score,
        label=ABSTAIN if judged.finding == "nothing_to_check" else None,
        error="a sentence is undetermined" if undetermined else None,
        fingerprints=dict(judged.fingerprints),
    )
