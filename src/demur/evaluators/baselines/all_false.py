"""AllFalse: every answer is non-factual, which is what a method has to be better than."""

from __future__ import annotations

from demur._frozen import fields_of
from demur.evaluators.base import Evaluator
from demur.evaluators.baselines.verdicts import evaluation, refuse_empty
from demur.runtime import CallPolicy, Steps, ask_all
from demur.schema import Evaluation, Sample


class AllFalse(Evaluator):
    """Reject every answer, without reading it: recall 1, precision the share that is non-factual.

    `score` is 0.0, `label` "non-factual", `passed` False, `failure` "other"; no call is made. An
    empty answer is undetermined, as by every evaluator.

    Args:
        name: What traces call it. None: the class's name.
        call_policy: As the other evaluators have it; there is nothing to call.
    """

    def __init__(self, *, name: str | None = None, call_policy: CallPolicy | None = None) -> None:
        """See the class."""
        super().__init__(**fields_of(locals()))

    @property
    def fingerprints(self) -> dict[str, str]:
        """Its scores depend on nothing."""
        return {"evaluator": type(self).__qualname__}

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask_all(())
        refuse_empty(sample)
        return evaluation(self.get_name(), False, "Every answer is rejected.", {})
