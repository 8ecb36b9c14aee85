"""What failed evaluations tell whoever answers again."""

from __future__ import annotations

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict

from demur.schema import Claim, ClaimLabel, Evaluation


class Feedback(BaseModel):
    """Why an answer was rejected, as a value that a chain, a person or a prompt can act on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str | None
    """The question, if it was found."""
    answer: str
    """The rejected answer."""
    evaluations: tuple[Evaluation, ...]
    """Those that did not let it through, at least one."""
    documents: tuple[Document, ...] = ()
    """What the guard's retriever found for the failed claims, if it has one."""
    errors: tuple[str, ...] = ()
    """Why searches of that retriever found nothing, for each that failed."""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that did not hold, in the answer's order, without repeats."""
        first: dict[str, Claim] = {}
        for evaluation in self.evaluations:
            for claim in _failed(evaluation):
                first.setdefault(claim.text, claim)
        return tuple(first.values())

    @property
    def queries(self) -> tuple[str, ...]:
        """What to search for: one query for each failed claim, or else the question."""
        return tuple(claim.text for claim in self.claims) or ((self.question or self.answer),)

    @property
    def text(self) -> str:
        """The rejection in words for a model, a line for each problem."""
        lines = [_problem(claim) for claim in self.claims]
        # An evaluator that judges no claims says in its own words what is wrong.
        lines += [
            evaluation.explanation or f"{evaluation.name} rejects it."
            for evaluation in self.evaluations
            if not _failed(evaluation)
        ]
        return "\n".join(f"- {' '.join(line.split())}" for line in lines)


def _failed(evaluation: Evaluation) -> list[Claim]:
    wrong = (ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION)
    return [claim for claim in evaluation.claims if claim.label in wrong]


def _problem(claim: Claim) -> str:
    if claim.label is not ClaimLabel.CONTRADICTION:
        return f"Not in the sources: {claim.text}"
    quotes = [f'"{found.text}"' for found in claim.evidence]
    says = f" They say: {' '.join(quotes)}" if quotes else ""
    return f"Contradicted by the sources: {claim.text}.{says}"
