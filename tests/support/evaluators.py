"""Provide an evaluator that scores as a test says and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field, PrivateAttr

from demur import Evaluation, Sample, Threshold, Usage
from demur.evaluators import Evaluator
from demur.runtime import Costs, Spent, Steps


class Scripted(Evaluator):
    """Evaluate by a script, which gives a score, an evaluation, or an exception to raise."""

    script: Callable[[Sample], float | Evaluation | Exception] = Field(exclude=True)
    cost: Usage = Usage()
    """The usage of each evaluation."""

    _asked: list[str] = PrivateAttr(default_factory=list)

    @property
    def asked(self) -> list[str]:
        """Return the answers in the order in which they came."""
        return self._asked

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield Spent(Costs({"scripted": self.cost}))
        self._asked.append(sample.answer)
        found = self.script(sample)
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, Evaluation) else Evaluation(name="Scripted", score=found)


class ForStrictGuards(Scripted):
    """Represent an evaluator whose threshold was chosen for guards with `on_abstain="fail"`."""

    threshold: Threshold = Threshold(
        value=0.5, method="percentile", percentile=5, on_abstain="fail", samples=1, passed=1
    )


def undetermined(why: str) -> Evaluation:
    """Return an undetermined evaluation with this error."""
    return Evaluation(name="Scripted", error=why)
