"""Evaluator: a Runnable from Sample to Evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config
from typing_extensions import Self

from demur.frozen import FrozenRunnable
from demur.models.calls import Ledger, Steps, adrive, drive
from demur.models.retry import CallPolicy
from demur.schema import Claim, Evaluation, Sample, Usage


class Evaluator(FrozenRunnable[Sample | Mapping[str, Any], Evaluation], ABC):
    """Base of the evaluators: the two thin edges, sync and async, around one core.

    A subclass writes `_steps`; it never waits and keeps nothing on `self`, so one evaluator serves
    any number of threads and loops at a time.
    """

    call_policy: CallPolicy | None = None
    """Retries, time limits and concurrency of the model calls. None: the model's own `call_policy`
    if it has one, as the local model does, else `CallPolicy()`."""

    @property
    def claim_level(self) -> bool:
        """Whether it judges claim by claim, so that an answer can be judged in parts."""
        return False

    @abstractmethod
    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        """Judge one sample; usage is filled in by the caller."""

    def _undetermined(self, error: str, **fields: Any) -> Evaluation:
        return Evaluation(name=self.get_name(), error=error, explanation=error, **fields)

    def __deepcopy__(self, memo: Any = None) -> Self:
        """A copy with the same models and stores, which are not its own."""
        return self.__copy__()

    def invoke(
        self,
        input: Sample | Mapping[str, Any],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Evaluation:
        """Judge one sample, or a mapping with its fields.

        Raises:
            pydantic.ValidationError: The input is no sample; the message names the field.
        """
        return self._call_with_config(self._evaluate, input, config, **kwargs)

    async def ainvoke(
        self,
        input: Sample | Mapping[str, Any],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Evaluation:
        """As `invoke`, natively asynchronous."""
        return await self._acall_with_config(self._aevaluate, input, config, **kwargs)

    def _evaluate(
        self,
        input: Sample | Mapping[str, Any],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> Evaluation:
        child = patch_config(config, callbacks=run_manager.get_child())
        return _accounted(*drive(self._steps(as_sample(input)), child, self.call_policy))

    async def _aevaluate(
        self,
        input: Sample | Mapping[str, Any],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> Evaluation:
        child = patch_config(config, callbacks=run_manager.get_child())
        return _accounted(*await adrive(self._steps(as_sample(input)), child, self.call_policy))


@dataclass(frozen=True)
class Found:
    """The claims of an answer, and what they are to be held against."""

    sample: Sample
    """With the references, also where the evaluator had to find them."""
    claims: tuple[Claim, ...]
    """At least one."""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Labelled:
    """Claims with their labels."""

    claims: tuple[Claim, ...]
    sureness: tuple[float, ...]
    """For each claim how sure its label is, in [0, 1]: 1 where the evaluator gives no probability,
    0 where there is no label."""
    details: Mapping[str, Any] = field(default_factory=dict)


class ClaimEvaluator(Evaluator):
    """Base of the evaluators that judge claim by claim: the parts that a cascade puts together."""

    @property
    def claim_level(self) -> bool:
        """It does."""
        return True

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        found = yield from self._find(sample)
        if isinstance(found, Evaluation):
            return found
        labelled = yield from self._label(found.sample, found.claims)
        return self._conclude(labelled.claims, {**found.details, **labelled.details})

    @abstractmethod
    def _find(self, sample: Sample) -> Steps[Found | Evaluation]:
        """Find the claims; or the evaluation, if there are none to label."""

    @abstractmethod
    def _label(self, sample: Sample, claims: Sequence[Claim]) -> Steps[Labelled]:
        """Label claims of a sample that has references, whatever labels they have."""

    @abstractmethod
    def _conclude(self, claims: Sequence[Claim], details: Mapping[str, Any]) -> Evaluation:
        """Judge the answer by its claims' labels; undetermined where missing ones could matter."""


def as_sample(input: Sample | Mapping[str, Any]) -> Sample:
    """The sample itself, or the one that a mapping describes."""
    return input if isinstance(input, Sample) else Sample.model_validate(input)


def _accounted(evaluation: Evaluation, ledger: Ledger) -> Evaluation:
    usage = sum(ledger.values(), Usage())
    stages = {stage: spent.model_dump() for stage, spent in ledger.items()}
    details = {**evaluation.details, "usage_by_stage": stages}
    return evaluation.model_copy(update={"usage": usage, "details": details})
