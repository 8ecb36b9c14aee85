"""The scores that a threshold is chosen from: out of a log, or out of results of `demur score`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import typer

from demur import display
from demur.calibration import differences
from demur.errors import DemurError
from demur.observe.log import Damaged, Judged, answered, open_log
from demur.observe.log.labels import LABEL
from demur.schema import Evaluation
from demur.scoring.results import is_results, read_results


@dataclass
class Held:
    """What a file holds."""

    path: Path
    judged: dict[str, dict[str, Judged]] = field(default_factory=dict)
    """By what evaluators are chosen by, and by the answers' ids."""
    labels: dict[str, bool] = field(default_factory=dict)
    """By the answers' ids."""
    ids: set[str] = field(default_factory=set)
    """Of all answers."""
    unknown: set[str] = field(default_factory=set)
    """Ids of labels for which there is no answer."""
    damaged: list[Damaged] = field(default_factory=list)
    cut: str = ""
    """How to take a part of the file."""


def read(path: Path, labels: Mapping[str, bool] | None) -> Held:
    """Read a log, or results of `demur score`.

    Args:
        path: The file.
        labels: By the answers' ids, whether they are hallucinated.

    Raises:
        DemurError: It cannot be read, or is neither.
    """
    held = Held(path)
    if is_results(path):
        _read_results(held, labels or {})
    else:
        _read_log(held, labels)
    held.unknown = set(labels or ()) - held.ids
    return held


def _read_results(held: Held, labels: Mapping[str, bool]) -> None:
    held.cut = "Score all answers with the same settings"
    for found in read_results(held.path):
        held.ids.add(found.key)
        # The last one counts.
        held.judged.setdefault(found.evaluator, {})[found.key] = Judged((found.evaluation,))
    held.labels = {id: label for id, label in labels.items() if id in held.ids}


def _read_log(held: Held, labels: Mapping[str, bool] | None) -> None:
    held.cut = (
        "Take the runs of one kind, such as the later ones: "
        f"demur log {held.path} --since TIME --export part.sqlite"
    )
    with open_log(held.path) as log:
        held.damaged += log.damaged
        if log.position is not None and log.position.torn is not None:
            held.damaged.append(log.position.torn)
        for one in answered(log, labels=labels):
            if isinstance(one, Damaged):
                held.damaged.append(one)
                continue
            id = one.record.id
            held.ids.add(id)
            if one.hallucinated is not None:
                held.labels[id] = one.hallucinated
            for judged in one.judged:
                held.judged.setdefault(judged.name, {})[id] = judged


def chosen(held: Held, evaluator: str | None) -> str:
    """Whose scores are meant: those of the evaluator that is named, or of the only one.

    Raises:
        BadParameter: None is named of several, or one that is not there.
        DemurError: There is none.
    """
    known = sorted(held.judged)
    if not known:
        raise DemurError(f"{held.path} holds no scores: no evaluator judged an answer in it")
    if evaluator is None and len(known) == 1:
        return known[0]
    if evaluator not in held.judged:
        names = ", ".join(map(repr, known))
        message = (
            f"{held.path} has the scores of several evaluators, name one: {names}"
            if evaluator is None
            else f"expected an evaluator that {held.path} has scores of: {names}; got {evaluator!r}"
        )
        raise typer.BadParameter(display.one_line(message), param_hint="--evaluator")
    return evaluator


@dataclass(frozen=True)
class Kept:
    """The answers that a threshold is chosen from."""

    scored: dict[str, Evaluation]
    """By their ids."""
    left_out: dict[str, int]
    """How many others there are, by why."""
    in_parts: int = 0
    """How many of those with a score were judged sentence by sentence."""


_WHYS = ("not judged", "undetermined", "nothing to check", "without a score", "unlabelled")


def kept(held: Held, name: str, labelled: bool) -> Kept:
    """The answers with a score of an evaluator.

    Args:
        held: What was read.
        name: By which `chosen` knows the evaluator.
        labelled: Whether answers without a label are left out.

    Raises:
        DemurError: None is left, or their scores depend on different things.
    """
    judged = held.judged[name]
    if any(one.namesakes for one in judged.values()):
        raise DemurError(
            f"{held.path}: several evaluators that are called {name!r} judged the same answers, so "
            "that their scores cannot be told apart. Give each a name of its own, such as "
            'RefChecker(..., name="strict"), and score again'
        )
    left_out = dict.fromkeys(_WHYS[: None if labelled else -1], 0)
    left_out["not judged"] = len(held.ids) - len(judged)
    scored: dict[str, Evaluation] = {}
    for id, said in judged.items():
        if said.finding in ("undetermined", "nothing_to_check"):
            left_out[said.finding.replace("_", " ")] += 1
        elif said.score is None:
            left_out["without a score"] += 1
        elif labelled and id not in held.labels:
            left_out["unlabelled"] += 1
        else:
            scored[id] = Evaluation(
                name=said.name, score=said.score, fingerprints=dict(said.fingerprints)
            )
    if not scored:
        remedy = "a threshold needs answers with scores"
        if left_out.get("unlabelled"):
            remedy = f"--labels names a file with the ids of answers and whether they are {LABEL}"
            if held.unknown:
                remedy += f"; the one given has other ids, such as {min(held.unknown)!r}"
        raise DemurError(
            f"{held.path}: no answer is left of {name} ({counted(left_out)}): {remedy}"
        )
    if told := differences(one.fingerprints for one in scored.values()):
        raise DemurError(
            f"{held.path}: the scores of {name} cannot be compared, they depend on different "
            f"things: {'; '.join(told)}. {held.cut}"
        )
    return Kept(scored, left_out, sum(len(judged[id].parts) > 1 for id in scored))


def counted(counts: Mapping[str, int]) -> str:
    """Numbers in words, without those that are 0."""
    told: Iterable[str] = (f"{number:,} {why}" for why, number in counts.items() if number)
    return ", ".join(told)
