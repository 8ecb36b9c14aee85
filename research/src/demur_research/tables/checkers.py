"""RefChecker's checkers on claims that are given: the checking is measured, not the extraction."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel

from demur import Claim, ClaimLabel, Evaluation, RefChecker, Sample
from demur.evaluators import Evaluator
from demur.evaluators.base import ExtractedClaims
from demur.runtime import Steps
from demur.schema import ABSTAIN

CHECKERS = ("logprobs", "joint", "per_claim")
"""RefChecker's checkers that ask a chat model."""
WHOLE = "answer"
"""RefChecker as a whole, on an answer whose claims it finds itself."""


class GivenClaims(RefChecker):
    """RefChecker for claims that are given: `metadata["claims"]`, or else the answer as one."""

    def _find(self, sample: Sample) -> Steps[ExtractedClaims | Evaluation]:
        yield from ()
        claims = sample.metadata.get("claims") or [Claim(text=sample.answer)]
        return ExtractedClaims(sample, tuple(claims))


def checker(name: str, model: BaseChatModel) -> Evaluator:
    """One of `CHECKERS`, or `WHOLE`."""
    return RefChecker(model) if name == WHOLE else GivenClaims(model=model, checker=name)


def sample(
    answer: str, contexts: Sequence[str], question: str | None = None, **metadata: object
) -> Sample:
    """What an evaluator reads."""
    documents = tuple(Document(page_content=text) for text in contexts)
    return Sample(answer=answer, contexts=documents, question=question, metadata=metadata)


def score(found: Evaluation) -> float | None:
    """How well supported a claim, or an answer, is said to be, in [0, 1]; None: undetermined.

    Of a single claim the probability of Entailment where the checker gives one, and else its label:
    Entailment above Neutral above Contradiction. Of several the entailed share.
    """
    if found.undetermined or found.label == ABSTAIN:
        return None if found.undetermined else 1.0
    if len(found.claims) != 1:
        return found.score
    (claim,) = found.claims
    if claim.probabilities:
        return claim.probabilities[ClaimLabel.ENTAILMENT]
    return 0.5 if claim.label is ClaimLabel.NEUTRAL else float(claim.label is ClaimLabel.ENTAILMENT)


def passing(name: str, passed: bool) -> Evaluation:
    """What one finds that knows nothing and says the same of every answer."""
    label = ClaimLabel.ENTAILMENT if passed else ClaimLabel.CONTRADICTION
    return Evaluation(name=name, score=float(passed), label=label.value, passed=passed)


FLOORS = {
    "everything passes": passing("everything passes", True),
    "nothing passes": passing("nothing passes", False),
}
"""By name, what they find."""
