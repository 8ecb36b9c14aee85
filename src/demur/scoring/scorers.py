"""Who scores an answer: an evaluator of this process, or what has one of another process do it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from demur._known_secrets import learn
from demur.errors import DemurError
from demur.observe import redacted_evaluation
from demur.runtime import cause_of, describe
from demur.schema import Evaluation, Sample


class Scorer(Protocol):
    """Scores answers, in many threads at a time. Every evaluator is one."""

    def invoke(self, input: Sample, /) -> Evaluation:
        """Score an answer.

        Raises:
            DemurError: No answer can be scored, as where a model cannot be had: the run ends.
        """
        ...


def scored(scorer: Scorer, name: str, sample: Sample) -> Evaluation:
    """What a scorer finds; one that breaks on a sample has decided nothing of it.

    Raises:
        DemurError: The scorer raised it.
    """
    try:
        return scorer.invoke(sample)
    except DemurError:
        raise  # of no sample: a model that cannot be had at all
    except Exception as error:
        why = f"a fault of the evaluator: {describe(error)}"
        return Evaluation(name=name, error=why, cause=cause_of(error))


class Scorers:
    """The scorers of a process that scores for another one, by the names that results give them.

    What leaves holds no credential that is known here: the other process may not know it.
    """

    def __init__(self, scorers: Mapping[str, Scorer]) -> None:
        learn(scorers)
        self._scorers = scorers

    def score(self, name: str, sample: Sample) -> Evaluation:
        """As `scored`.

        Raises:
            DemurError: The scorer raised it.
        """
        evaluation = scored(self._scorers[name], name, sample)
        return Evaluation.model_validate(redacted_evaluation(evaluation))
