"""Define what scores an answer: an evaluator, or an object that asks another process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from demur._secrets import learn
from demur.errors import DemurError
from demur.observe import redacted_evaluation
from demur.runtime import cause_of, describe
from demur.schema import Evaluation, Sample


class Scorer(Protocol):
    """Score answers, in many threads at once. Every evaluator is a scorer."""

    def invoke(self, input: Sample, /) -> Evaluation:
        """Score an answer.

        Raises:
            DemurError: No answer can be scored, for example because a model cannot be used. The run
                ends.
        """
        ...


def scored(scorer: Scorer, name: str, sample: Sample) -> Evaluation:
    """Return a scorer's evaluation; if the scorer breaks, the evaluation is undetermined.

    Raises:
        DemurError: The scorer raised it.
    """
    try:
        return scorer.invoke(sample)
    except DemurError:
        raise  # the sample is not the reason: the model cannot be used at all
    except Exception as error:
        why = f"a fault of the evaluator: {describe(error)}"
        return Evaluation(name=name, error=why, cause=cause_of(error))


class Scorers:
    """Hold the scorers of a process that scores for another process, by their names in the results.

    Evaluations that leave the process hold no credential that is known here, because the other
    process may not know it.
    """

    def __init__(self, scorers: Mapping[str, Scorer]) -> None:
        learn(scorers)
        self._scorers = scorers

    def score(self, name: str, sample: Sample) -> Evaluation:
        """Return the evaluation as `scored` does, without credentials.

        Raises:
            DemurError: The scorer raised it.
        """
        evaluation = scored(self._scorers[name], name, sample)
        return Evaluation.model_validate(redacted_evaluation(evaluation))
