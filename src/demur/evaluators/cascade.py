"""Ask cheap evaluators first, and expensive ones only about the claims that stay open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from pydantic import Field, field_validator

from demur.evaluators.base import ClaimEvaluator, Evaluator, ExtractedClaims, readable
from demur.runtime import (
    Call,
    CallPolicy,
    Calls,
    Outcome,
    Spent,
    Steps,
    UndeterminedError,
    fields_of,
)
from demur.schema import Claim, Evaluation, Sample

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Cascade(Evaluator):
    """Ask the cheapest evaluator first, and a more expensive one only about what is still open.

    The first stage that judges claim by claim, as `RefChecker` does, finds the claims. A claim is
    settled when a stage gives it a label and is sure of the label; the last stage need not be sure.
    The next stage is asked about the open claims, and only if their labels could change whether the
    answer passes. The rule for that is the one of the last stage that judges claim by claim. A
    claim that stays open has no label, and its `error` says why. Then `details["score_bounds"]` has
    the lowest and the highest value that the score can have.

    A stage that judges answers as a whole decides, or leaves the answer to the next stage. So does
    any stage that finds nothing to check.

    The evaluation is that of the stage that decided: the docstring of that evaluator describes
    `score` and `label`. It is undetermined if no stage could decide. Its label is "Abstain" only if
    every stage found nothing to check.

    `details["stages"]` lists the stages that were asked. Each entry has the number of claims that
    the stage was asked about (None: the whole answer) and the `finding` after the stage. The
    evaluation's usage is the sum over the stages, and `details["usage_by_stage"]` has it by call
    and by number of the stage.

    The guarantee of a stage's `Threshold` does not hold here, because the stage sees only some of
    the answers, or of their claims.

    Examples:
        >>> nli = "cross-encoder/nli-deberta-v3-base"
        >>> cheap = RefChecker("openai:gpt-4o-mini", checker=nli, claims="sentences")
        >>> Cascade([cheap, RefChecker("openai:gpt-4o-mini")]).invoke(sample).passed

    Args:
        stages: Two or more evaluators, the cheapest first.
        min_confidence: The lowest probability with which a label counts before the last stage, in
            (1/3, 1]. A label without a probability always counts.
        name: The evaluator's name in traces and logs. None: the name of the class.
        call_policy: The retries, time limits and concurrency of stages that have no policy of their
            own. None: defaults that fit the model.

    Raises:
        ValueError: There are fewer than two stages, a stage decides nothing because it has no
            threshold, or a stage is itself a cascade. Or `min_confidence` is out of its range.
        TypeError: A stage is not one of demur's evaluators.
    """

    stages: tuple[Evaluator, ...]
    min_confidence: float = Field(default=0.9, gt=1 / 3, le=1, allow_inf_nan=False)

    def __init__(
        self,
        stages: Sequence[Evaluator],
        *,
        min_confidence: float = 0.9,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes its arguments."""
        super().__init__(**fields_of(locals()))

    @field_validator("stages", mode="before")
    @classmethod
    def _usable(cls, value: object) -> object:
        if not isinstance(value, (list, tuple)):
            raise TypeError(
                "expected the stages in one list, the cheapest first, got "
                f"{type(value).__name__}: Cascade([cheap, expensive])"
            )
        for number, stage in enumerate(value, 1):
            if not isinstance(stage, Evaluator):
                a_class = isinstance(stage, type)
                got = f"the class {stage.__name__}" if a_class else f"a {type(stage).__name__}"
                raise TypeError(
                    f"stage {number} is {got}, expected an evaluator of demur's, such as "
                    "RefChecker(model)"
                )
            if isinstance(stage, Cascade):
                raise ValueError(f"stage {number} is a cascade: list its stages in this one")
            if getattr(stage, "threshold", 0) is None:
                raise ValueError(
                    f"stage {number} ({stage.get_name()}) scores answers but decides nothing: give "
                    "it a threshold"
                )
        if len(value) < 2:
            raise ValueError(
                f"expected at least two stages, the cheapest first, got {len(value)}: a single "
                "evaluator is used by itself"
            )
        return tuple(value)

    @property
    def claim_level(self) -> bool:
        """Return whether all stages judge claim by claim."""
        return all(stage.claim_level for stage in self.stages)

    @property
    def reads_calls(self) -> bool:
        """Return whether a stage knows the calls of an agent."""
        return any(stage.reads_calls for stage in self.stages)

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return `min_confidence` and the fingerprints of each stage, by the stage's number.

        The result is {} if a stage has no fingerprints.
        """
        texts = {}
        for number, stage in enumerate(self.stages, 1):
            of_stage = stage.fingerprints
            if not of_stage:
                return {}
            texts.update({f"stage {number} {name}": text for name, text in of_stage.items()})
        return {
            "evaluator": type(self).__qualname__,
            "min_confidence": str(self.min_confidence),
            **texts,
        }

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        deciding = [stage for stage in self.stages if isinstance(stage, ClaimEvaluator)]
        extracted: ExtractedClaims | None = None
        ended: Evaluation | None = None
        stages: list[dict[str, Any]] = []
        for number, stage in enumerate(self.stages, 1):
            about: dict[str, Any] = {"name": stage.get_name(), "claims": None}
            seen = readable(stage, sample)
            try:
                if isinstance(stage, ClaimEvaluator):
                    begun = extracted or (yield from _of_stage(number, stage, stage._find(seen)))
                    if isinstance(begun, ExtractedClaims):
                        extracted = yield from self._settle(number, stage, begun, about)
                        claims = (*extracted.claims, *extracted.unfit)
                        evaluation = deciding[-1]._conclude(claims, extracted.details)
                    else:
                        evaluation = begun
                else:
                    evaluation = yield from _of_stage(number, stage, stage._steps(seen))
            except UndeterminedError as error:
                evaluation = self._undetermined(error)
            stages.append({**about, "finding": evaluation.finding})
            # A stage that finds nothing to check does not overrule an earlier finding.
            ended = ended if ended and evaluation.nothing_to_check else evaluation
            if ended.passed is not None:
                break
        assert ended is not None  # there are stages
        details = {**ended.details, "stages": stages}
        return ended.model_copy(update={"name": self.get_name(), "details": details})

    def _settle(
        self, number: int, stage: ClaimEvaluator, extracted: ExtractedClaims, about: dict[str, Any]
    ) -> Steps[ExtractedClaims]:
        """Return the claims, with the labels that the stage is sure of added to the open ones."""
        open_at = [at for at, claim in enumerate(extracted.claims) if claim.label is None]
        open_claims = [extracted.claims[at] for at in open_at]
        labelled = yield from _of_stage(number, stage, stage._label(extracted.sample, open_claims))
        claims = list(extracted.claims)
        for at, claim, confidence in zip(
            open_at, labelled.claims, labelled.confidence, strict=True
        ):
            final = number == len(self.stages) or confidence >= self.min_confidence
            claims[at] = claim if final or claim.label is None else _left_open(claim, confidence)
        about.update(labelled.details, claims=len(open_claims))
        return replace(extracted, claims=tuple(claims))


def _left_open(claim: Claim, confidence: float) -> Claim:
    why = (
        f"{claim.label} is likely but not sure ({confidence:.2f}), and no later stage was asked: "
        "the label could not change the decision"
    )
    return claim.model_copy(update={"label": None, "evidence": (), "action": None, "error": why})


def _of_stage(number: int, stage: Evaluator, steps: Steps[T]) -> Steps[T]:
    """Run a stage's steps: its calls follow the stage's policy and count as its own usage."""
    came: Sequence[Outcome[object]] | None = None
    while True:
        try:
            effect = steps.send(came)
        except StopIteration as stop:
            return cast(T, stop.value)
        if isinstance(effect, Calls):
            policy = stage.call_policy
            effect = Calls([_StageCall(call, number, policy) for call in effect.calls])
        elif isinstance(effect, Spent):
            usage = {f"{name} {number}": spent for name, spent in effect.costs.usage.items()}
            effect = Spent(replace(effect.costs, usage=usage))
        came = yield effect


@dataclass(frozen=True)
class _StageCall(Generic[T_co]):
    """Wrap a call, so that it follows its stage's policy and counts as the stage's own."""

    call: Call[T_co]
    number: int
    policy: CallPolicy | None

    @property
    def stage(self) -> str:
        return f"{self.call.stage} {self.number}"

    def at_once(self, policy: CallPolicy | None) -> int:
        return self.call.at_once(self.policy or policy)

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        return self.call.run(config, self.policy or policy)

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        return await self.call.arun(config, self.policy or policy)
