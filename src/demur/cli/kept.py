"""Take the answers from which a threshold is chosen, or say why none can be chosen."""

from __future__ import annotations

from dataclasses import dataclass

from demur.calibration import contradiction, differences, passes_up_to
from demur.cli.judged import Held
from demur.errors import DemurError
from demur.observe.log import LABEL, JudgedAnswer
from demur.schema import ABSTAIN, Evaluation
from demur.views import counted


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


def keep(held: Held, name: str, labelled: bool) -> Kept:
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
