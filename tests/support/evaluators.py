"""An evaluator that scores as a test says, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig
from pydantic import Field, PrivateAttr

from demur import CallPolicy, Evaluation, Sample, Threshold, Usage
from demur.evaluators import Evaluator
from demur.runtime import Outcome, Steps, ask


class Scripted(Evaluator):
    """Its script gives a score, an evaluation, or an exception to raise."""

    script: Callable[[Sample], float | Evaluation | Exception] = Field(exclude=True)
    cost: Usage = Usage()
    """Of each evaluation."""

    _asked: list[str] = PrivateAttr(default_factory=list)

    @property
    def asked(self) -> list[str]:
        """The answers, in the order in which they came."""
        return self._asked

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask([_Spent(self.cost)])
        self._asked.append(sample.answer)
        found = self.script(sample)
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, Evaluation) else Evaluation(name="Scripted", score=found)


class ForStrictGuards(Scripted):
    """Its threshold was chosen for guards that fail answers which state nothing to check."""

    threshold: Threshold = Threshold(
        value=0.5, method="percentile", percentile=5, on_abstain="fail", samples=1, passed=1
    )


@dataclass(frozen=True)
class _Spent:
    """A call that does nothing and costs something."""

    usage: Usage
    stage: str = "scripted"

    def at_once(self, policy: CallPolicy | None) -> int:
        return 1

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        return Outcome(usage=self.usage)

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        return Outcome(usage=self.usage)


def undetermined(why: str) -> Evaluation:
    """An evaluation that decides nothing."""
    return Evaluation(name="Scripted", error=why)
