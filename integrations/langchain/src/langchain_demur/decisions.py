"""Let demur's judges answer LangChain's questions about a reference and a claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from langchain_core.decisions import BaseDecisionModel, Choice, ClassifierResponse, Noul, State
from langchain_core.messages import BaseMessage
from pydantic import BaseModel, Field, PrivateAttr, StringConstraints, ValidationError

from demur import DemurError, Evaluation, RefChecker, Sample
from demur.runtime import FrozenRunnable
from demur.schema import NLI_LABELS, ClaimLabel, in_words

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _State(BaseModel, extra="forbid", strict=True):
    contexts: _Text | Annotated[list[_Text], Field(min_length=1)] = Field(alias="reference")
    answer: _Text = Field(alias="claim")
    question: _Text | None = None


class ClaimDecisionModel(BaseDecisionModel, FrozenRunnable[Any, Any]):
    """Answer whether a reference supports a claim, as a LangChain decision model.

    The state is a mapping with a "reference", which is a text or a list of texts, a "claim", and
    perhaps the "question" that the claim answers. It may also be the mapping's JSON text, or a
    message with this text. If the claim has several sentences, the worst of them decides.

    You can ask a `Choice` between Entailment, Contradiction and Neutral, such as `LABEL`, and the
    `Noul` in `SUPPORTED`. The choice is demur's label: Entailment from a probability of 0.5, and
    never if an identifier of the claim stands in no reference. `confidence` is the probability of
    the choice, and `noul` that of Entailment, in [0, 1].

    Args:
        model: "small", "local", or another name for `RefChecker` whose judge gives probabilities.

    Raises:
        ValueError: There is no such judge. When asked: the state or a question is another one.
        DemurError: The judge is not available. When asked: it could not decide, or the claim states
            nothing that can be checked.
    """

    SUPPORTED: ClassVar = Noul(instructions="Is the claim supported by the reference?")
    LABEL: ClassVar = Choice(
        instructions="What does the reference say about the claim?",
        criteria={"Entailment": None, "Contradiction": None, "Neutral": None},
    )

    model: str = "small"
    _checker: RefChecker = PrivateAttr()

    def __init__(self, model: str = "small") -> None:
        """Make the decision model; the class describes the argument."""
        super().__init__(model=model)

    def model_post_init(self, context: Any, /) -> None:
        """Make the judge, so that a wrong name is reported before the first question."""
        super().model_post_init(context)
        try:
            # A judge without probabilities refuses a threshold. Without one, an evaluation has a
            # label or is undetermined.
            sure = RefChecker(self.model, claims="sentences", threshold=0.5)
            self._checker = sure.model_copy(update={"threshold": None})
        except ValueError as error:
            raise ValueError(f"{self.model!r} is no judge with probabilities: {error}") from None

    @property
    def _provider(self) -> str:
        return "demur"

    def _classify(self, state: State, questions: Mapping[str, Any]) -> ClassifierResponse:
        return self._response(_asked(questions), self._checker.invoke(_sample(state)))

    async def _aclassify(self, state: State, questions: Mapping[str, Any]) -> ClassifierResponse:
        return self._response(_asked(questions), await self._checker.ainvoke(_sample(state)))

    def _response(self, asked: Mapping[str, Any], evaluation: Evaluation) -> ClassifierResponse:
        label, shares = _decided(evaluation)
        answers: dict[str, Any] = {}
        for key, names in asked.items():
            answers[key] = {"type": "noul", "noul": shares[ClaimLabel.ENTAILMENT]}
            if names and {*shares} - {*names}:
                raise ValueError(
                    f"{self.model!r} answers yes or no, without saying whether a reference "
                    "contradicts the claim: ask ClaimDecisionModel.SUPPORTED"
                )
            if names:
                named = {names[one]: share for one, share in shares.items()}
                told = {"choice": names[label], "confidence": shares[label]}
                answers[key] = {"type": "choice", "probabilities": named, **told}
        spent = evaluation.usage.model_dump(include={"input_tokens", "output_tokens"})
        usage = spent if any(spent.values()) else None
        found = {"model": self.model, "answers": answers, "usage": usage}
        return ClassifierResponse.model_validate(found)


# Whoever changes the public one is not to get the answer to another question.
_SUPPORTED = ClaimDecisionModel.SUPPORTED.model_copy()


def _asked(questions: Mapping[str, Any]) -> dict[str, dict[ClaimLabel | None, str]]:
    """Return the names of each `Choice`, by label, and {} for `SUPPORTED`; refuse others."""
    known = {label.casefold(): label for label in NLI_LABELS}
    asked = {}
    for key, question in questions.items():
        names = question.criteria if isinstance(question, Choice) else ()
        asked[key] = {known.get(name.casefold()): name for name in names}
        right = len(names) == len(known) and {*asked[key]} == {*NLI_LABELS}
        if not right and question != _SUPPORTED:
            raise ValueError(
                f"demur's judges cannot answer the question {key!r}: ask a Choice between "
                "Entailment, Contradiction and Neutral, or ClaimDecisionModel.SUPPORTED"
            )
    return asked


def _sample(state: State) -> Sample:
    """Return the sample that a state describes; refuse another state."""
    given = str(state.text) if isinstance(state, BaseMessage) else state
    read: Any = _State.model_validate_json if isinstance(given, str) else _State.model_validate
    try:
        return Sample.model_validate(read(given).model_dump())
    except ValidationError as error:
        raise ValueError(
            'expected {"reference": a text or a list of texts, "claim": a text}, perhaps with a '
            f'"question"; or its JSON text, or a message with this text: {in_words(error)}'
        ) from None


def _decided(evaluation: Evaluation) -> tuple[ClaimLabel, dict[ClaimLabel, float]]:
    """Return an evaluation's label, and the probabilities of the claim that decided it."""
    label = next((label for label in ClaimLabel if label == evaluation.label), None)
    if label is None:
        raise DemurError(f"the judge could not decide about the claim: {evaluation.explanation}")
    deciding = [claim for claim in evaluation.claims if claim.label is label]
    claim = min(deciding, key=lambda claim: 0 if claim.overruled else claim.support or 0)
    if not all(one.follows for one in claim.calculations):  # no judge decided
        return label, {one: float(one is label) for one in NLI_LABELS}
    found, support = claim.probabilities or {}, claim.support or 0.0
    # `support` may come from another window of the references than the probabilities.
    rest = 1 - found[ClaimLabel.ENTAILMENT]
    shares = {one: (1 - support) * share / rest if rest else 0.0 for one, share in found.items()}
    shares[ClaimLabel.ENTAILMENT] = support
    if claim.overruled:
        shares[label], shares[ClaimLabel.ENTAILMENT] = shares[label] + support, 0.0
    return label, {one: min(1.0, share) for one, share in shares.items()}
