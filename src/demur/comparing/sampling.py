"""Draw samples once for all variants of SelfCheck, since drawing them costs most."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel

from demur._system import Recent
from demur.evaluators import SelfCheck
from demur.runtime import Costs, PerModel, Spent, Steps
from demur.schema import Usage

_MOST = 1000
"""The number of questions whose samples are kept. The detectors judge a row one after another."""

_Drawn = tuple[list[str], Usage]
_kept: PerModel[Recent[_Drawn]] = PerModel()


class SharedSelfCheck(SelfCheck):
    """Run SelfCheck with the samples that another SharedSelfCheck drew for the question, if any.

    The cost of these samples is counted here too, as if they had been drawn for this evaluator. So
    the usage is that of a SelfCheck alone, and is more than was spent.
    """

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return the fingerprints of a SelfCheck, because the scores are the same."""
        return {**super().fingerprints, "evaluator": SelfCheck.__qualname__}

    def _drawn(self, model: BaseChatModel, question: str) -> Steps[_Drawn]:
        how = (self.n_samples, self.temperature)
        known = _kept.setdefault(model, how, lambda: Recent(_MOST))
        if (drawn := known.get([question]).get(question)) is not None:
            yield Spent(Costs({"sample": drawn[1]}))
            return drawn
        drawn = yield from super()._drawn(model, question)
        known.put(question, drawn, 1)
        return drawn
