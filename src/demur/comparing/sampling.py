"""Samples that are drawn once for all variants of SelfCheck, which otherwise cost the most."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel

from demur._recent import Recent
from demur.evaluators import SelfCheck
from demur.runtime import Costs, PerModel, Spent, Steps
from demur.schema import Usage

_MOST = 1000
"""Questions whose samples are kept. The detectors judge a row one after another."""

_Drawn = tuple[list[str], Usage]
_kept: PerModel[Recent[_Drawn]] = PerModel()


class SharedSelfCheck(SelfCheck):
    """SelfCheck with the samples that another one of these drew for the question, if one did.

    What they cost is counted here too, as if they had been drawn for this one: so the usage is that
    of a SelfCheck alone, and more than was spent.
    """

    @property
    def fingerprints(self) -> dict[str, str]:
        """Those of a SelfCheck: its scores are the same."""
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
