"""Evaluator: a Runnable from Sample to Evaluation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import PrivateAttr

from demur._json_places import path_of, places
from demur._text import replace_surrogates
from demur._undetermined import UndeterminedError
from demur.evaluators.styled import unstyled
from demur.runtime import Costs, Steps, Stepwise
from demur.schema import Claim, Evaluation, Sample


@dataclass
class Learnt:
    """What is known of an evaluator since it has judged. No part of what makes two equal."""

    judged: bool = field(default=False, compare=False)
    """Whether it has returned an evaluation."""
    fingerprints: dict[str, str] | None = field(default=None, compare=False)
    """What it said of itself, once it was asked."""


class Evaluator(Stepwise[Sample | Mapping[str, Any], Evaluation]):
    """Base of the evaluators: a Runnable from a sample, or a mapping with its fields."""

    _learnt: Learnt = PrivateAttr(default_factory=Learnt)

    @property
    def fingerprints(self) -> dict[str, str]:
        """What its scores depend on beside the sample, by name, each in a text.

        Models, prompts, similarity, the class and those of its options that change a score: each in
        a text that tells it from others, and holds no key. Equal ones mean that scores may be
        compared, so a `Threshold` is taken only where they are those that it is bound to; and every
        evaluation carries them. What decides on a score (`threshold`, an aggregation) is no part.

        An evaluator of your own tells nothing, {}, until it defines this property, and takes no
        `Threshold` until then: with its class alone, the thresholds of one model would be taken for
        those of another. It is asked once, so its texts must not change.
        """
        return {}

    @property
    def claim_level(self) -> bool:
        """Whether it judges claim by claim, so that an answer can be judged in parts."""
        return False

    @abstractmethod
    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        """Judge a sample.

        Raises:
            UndeterminedError: Nothing can be decided.
        """

    def _work(self, input: Sample | Mapping[str, Any]) -> Steps[Evaluation]:
        sample = as_sample(input)
        # Here for all evaluators: none compares or shows letters that only look like others.
        plain = unstyled(sample)
        try:
            evaluation = yield from self._steps(sample if plain is None else plain.sample)
        except UndeterminedError as error:
            evaluation = self._undetermined(error)
        return _with_paths(evaluation if plain is None else plain.in_original(evaluation), sample)

    def _undetermined(self, error: UndeterminedError) -> Evaluation:
        why = str(error)
        return Evaluation(
            name=self.get_name(),
            error=why,
            explanation=why,
            cause=error.cause,
            claims=error.claims,
            details=error.details,
        )

    def _accounted(self, output: Evaluation, costs: Costs) -> Evaluation:
        stages = {stage: spent.model_dump() for stage, spent in costs.usage.items()}
        details = {**output.details, "usage_by_stage": stages}
        fingerprints = self._fingerprints() or output.fingerprints
        changes = {"usage": costs.total, "details": details, "fingerprints": dict(fingerprints)}
        if output.undetermined and costs.causes:
            changes["cause"] = ", ".join(costs.causes)
        self._learnt.judged = True
        return output.model_copy(update=changes)

    def _fingerprints(self) -> dict[str, str]:
        """As `fingerprints`, worked out once: weights and prompts are hashed for them."""
        if self._learnt.fingerprints is None:
            self._learnt.fingerprints = _as_texts(self.fingerprints)
        return self._learnt.fingerprints


@dataclass(frozen=True)
class ExtractedClaims:
    """The claims of an answer, and what they are to be held against."""

    sample: Sample
    """With the references, also where the evaluator had to find them."""
    claims: tuple[Claim, ...]
    """Those that are to be labelled."""
    details: Mapping[str, Any] = field(default_factory=dict)
    unfit: tuple[Claim, ...] = ()
    """Those that cannot be labelled by anyone, each with its error. They count as claims without a
    label. With `claims` at least one."""


@dataclass(frozen=True)
class LabelledClaims:
    """Claims with their labels."""

    claims: tuple[Claim, ...]
    confidence: tuple[float, ...]
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
        extracted = yield from self._find(sample)
        if isinstance(extracted, Evaluation):
            return extracted
        labelled = yield from self._label(extracted.sample, extracted.claims)
        details = {**extracted.details, **labelled.details}
        return self._conclude((*labelled.claims, *extracted.unfit), details)

    @abstractmethod
    def _find(self, sample: Sample) -> Steps[ExtractedClaims | Evaluation]:
        """Find the claims; or the evaluation of an answer that has none."""

    @abstractmethod
    def _label(self, sample: Sample, claims: Sequence[Claim]) -> Steps[LabelledClaims]:
        """Label claims of a sample that has references, whatever labels they have."""

    @abstractmethod
    def _conclude(self, claims: Sequence[Claim], details: Mapping[str, Any]) -> Evaluation:
        """Judge the answer by its claims' labels.

        Raises:
            UndeterminedError: Labels are missing that could matter.
        """


def _as_texts(fingerprints: Mapping[Any, Any]) -> dict[str, str]:
    for name, text in fingerprints.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise TypeError(
                f"fingerprints: expected a mapping from texts to texts, got {name!r}: {text!r:.100}"
            )
    return {
        replace_surrogates(name): replace_surrogates(text) for name, text in fingerprints.items()
    }


def _with_paths(evaluation: Evaluation, sample: Sample) -> Evaluation:
    """The evaluation, whose claims name the values of a structured answer that they stand in."""
    if places(sample.answer) is None:
        return evaluation
    claims = [
        claim
        if claim.span is None
        else claim.model_copy(
            update={"path": path_of(sample.answer, claim.span.start, claim.span.end)}
        )
        for claim in evaluation.claims
    ]
    return evaluation.model_copy(update={"claims": tuple(claims)})


def as_sample(input: Sample | Mapping[str, Any]) -> Sample:
    """The sample itself, or the one that a mapping describes."""
    return input if isinstance(input, Sample) else Sample.model_validate(input)
