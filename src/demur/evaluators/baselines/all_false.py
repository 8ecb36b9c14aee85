"""Reject every answer: the baseline that a method has to beat."""

from __future__ import annotations

from demur.evaluators.base import Evaluator
from demur.evaluators.verdicts import evaluation, refuse_empty
from demur.runtime import CallPolicy, Steps, ask_all, fields_of
from demur.schema import Evaluation, Sample


class AllFalse(Evaluator):
    """Reject every answer without reading it.

    As a detector, its recall is 1, and its precision is the share of non-factual answers.

    `score` is 0.0, `label` is "non-factual", `passed` is False and `failure` is "other". No call is
    made. An empty answer is undetermined, as with every evaluator.

    Args:
        name: The evaluator's name in traces and logs. None: the name of the class.
        call_policy: Accepted as by the other evaluators; it has no effect, since no call is made.
    """

    def __init__(self, *, name: str | None = None, call_policy: CallPolicy | None = None) -> None:
        """Make the evaluator; the class describes its arguments."""
        super().__init__(**fields_of(locals()))

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return the name of the class alone, since the scores depend on nothing else."""
        return {"evaluator": type(self).__qualname__}

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask_all(())
        refuse_empty(sample)
        return evaluation(self.get_name(), False, "Every answer is rejected.", {})
