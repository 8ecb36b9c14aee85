"""Define the bases of all evaluators, which are Runnables from `Sample` to `Evaluation`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue, PrivateAttr

from demur._text import path_of, places, replace_surrogates
from demur.evaluators.styled import unstyled
from demur.runtime import Costs, Steps, Stepwise, UndeterminedError
from demur.schema import Claim, Evaluation, Sample, Threshold, validated
from demur.shapes import sample_of, status_of_call


@dataclass
class Learnt:
    """Hold what is known of an evaluator once it has judged; equality ignores it."""

    judged: bool = field(default=False, compare=False)
    """Whether the evaluator has returned an evaluation."""
    fingerprints: dict[str, str] | None = field(default=None, compare=False)
    """The evaluator's fingerprints, or None before they are first asked for."""


class Evaluator(Stepwise[Sample | Mapping[str, Any], Evaluation]):
    """Score answers: the base of all evaluators, a Runnable from a sample to an evaluation.

    The sample may also be given as a mapping with the fields of `Sample`, or as the state of an
    agent that has answered: `{"messages": [...]}`, also in the forms of OpenAI and Anthropic. The
    agent's last message is then judged by what its tools returned, and by `contexts` beside the
    messages. What it says that it did is judged by its calls.
    """

    _learnt: Learnt = PrivateAttr(default_factory=Learnt)

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return what the scores depend on beside the sample, as texts by name.

        The texts identify the models, the prompts, the similarity, the class, and the options that
        change a score. They hold no key. What only decides on a score, such as `threshold` or an
        aggregation, is not among them.

        Scores with equal fingerprints can be compared. So an evaluator accepts a `Threshold` only
        if the threshold is bound to the evaluator's own fingerprints, and every evaluation carries
        them.

        An evaluator of your own returns {} until you define this property, and accepts no
        `Threshold` until then. The name of the class alone would not tell one model's thresholds
        from another's. demur reads the property once, so the texts must not change.
        """
        return {}

    @property
    def claim_level(self) -> bool:
        """Return whether the evaluator judges claim by claim.

        Then it can also judge an answer in parts, such as sentence by sentence.
        """
        return False

    @property
    def reads_calls(self) -> bool:
        """Return whether the evaluator knows an agent's calls; if not, it is not given them."""
        return False

    @abstractmethod
    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        """Judge a sample.

        Raises:
            UndeterminedError: The evaluator cannot decide.
        """

    def _work(self, input: Sample | Mapping[str, Any]) -> Steps[Evaluation]:
        sample = readable(self, as_sample(input))
        # In plain letters for every evaluator, so that look-alike letters change no score.
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
        if isinstance(own := getattr(self, "threshold", None), Threshold):
            kappa: JsonValue = own.kappa and [*own.kappa]
            details["threshold"] = {"value": own.value, "samples": own.samples, "kappa": kappa}
        fingerprints = self._fingerprints() or output.fingerprints
        changes = {"usage": costs.total, "details": details, "fingerprints": dict(fingerprints)}
        if output.undetermined and costs.causes:
            changes["cause"] = ", ".join(costs.causes)
        self._learnt.judged = True
        return output.model_copy(update=changes)

    def _fingerprints(self) -> dict[str, str]:
        """Return `fingerprints`, computed once because weights and prompts are hashed for them."""
        if self._learnt.fingerprints is None:
            self._learnt.fingerprints = _as_texts(self.fingerprints)
        return self._learnt.fingerprints


@dataclass(frozen=True)
class ExtractedClaims:
    """Hold the claims of an answer and the sample whose references they are checked against."""

    sample: Sample
    """The sample with its references, including those that the evaluator retrieved."""
    claims: tuple[Claim, ...]
    """The claims to be labelled."""
    details: Mapping[str, Any] = field(default_factory=dict)
    unfit: tuple[Claim, ...] = ()
    """The claims that no stage can label, each with its error. They count as claims without a
    label. `claims` and `unfit` together hold at least one claim."""


@dataclass(frozen=True)
class LabelledClaims:
    """Hold claims with their labels."""

    claims: tuple[Claim, ...]
    confidence: tuple[float, ...]
    """For each claim, how sure its label is, in [0, 1]. It is 1 if the evaluator gives no
    probability, and 0 if there is no label."""
    details: Mapping[str, Any] = field(default_factory=dict)


class ClaimEvaluator(Evaluator):
    """Judge answers claim by claim: the base of such evaluators, in parts that a cascade uses."""

    @property
    def claim_level(self) -> bool:
        """Return True: the evaluator judges claim by claim."""
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
        """Find the claims, or return the evaluation of an answer that has no claims."""

    @abstractmethod
    def _label(self, sample: Sample, claims: Sequence[Claim]) -> Steps[LabelledClaims]:
        """Label claims against the sample's references, whatever labels the claims have."""

    @abstractmethod
    def _conclude(self, claims: Sequence[Claim], details: Mapping[str, Any]) -> Evaluation:
        """Judge the answer by the labels of its claims.

        Raises:
            UndeterminedError: The missing labels could change the decision.
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
    """Add to each claim the path of the value of a structured answer that the claim stands in."""
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


def readable(evaluator: object, sample: Sample) -> Sample:
    """Return the sample, without an agent's calls if the evaluator does not know them."""
    if getattr(evaluator, "reads_calls", False) or not any(map(status_of_call, sample.contexts)):
        return sample
    sources = tuple(document for document in sample.contexts if not status_of_call(document))
    return sample.model_copy(update={"contexts": sources})


_EXPECTED = (
    "a Sample, or a mapping such as {'question': ..., 'answer': ..., 'contexts': [...]} or an "
    "agent's {'messages': [...]}"
)


def as_sample(input: Sample | Mapping[str, Any]) -> Sample:
    """Return the sample itself, or the sample that a mapping describes.

    Raises:
        ValueError: The input is neither, or its messages have no answer.
    """
    if isinstance(input, Mapping) and "messages" in input and "answer" not in input:
        sample = sample_of(input["messages"])
        given = validated(Sample, {"answer": "", "contexts": input.get("contexts")}, _EXPECTED)
        return sample.model_copy(update={"contexts": (*given.contexts, *sample.contexts)})
    return validated(Sample, input, _EXPECTED)
