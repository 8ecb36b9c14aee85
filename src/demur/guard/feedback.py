"""Describe why an answer failed, for the chain or the model that answers again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict

from demur.runtime.prompting import isolate
from demur.schema import Claim, ClaimLabel, Evaluation, Evidence, Failure, failure_of

_NOTHING = "It states nothing that could be checked."


class Problem(BaseModel):
    """Describe one problem of an answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    failure: Failure
    """The kind of the problem."""
    evaluator: str
    """The name of the evaluator that found the problem."""
    claim: Claim | None = None
    """The claim that does not hold; None if the problem is of the answer as a whole."""
    query: str
    """The text to search for: the claim, else the question, else the answer."""
    text: str
    """The problem in words, for a model."""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return the passages that refute the claim; empty if the references do not speak of it."""
        return () if self.claim is None else self.claim.evidence


class Feedback(BaseModel):
    """Describe why an answer was rejected, for a chain, a person or a prompt.

    Examples:
        >>> found = RefChecker("small").invoke({"answer": answer, "contexts": contexts})
        >>> Feedback(answer=answer, evaluations=[found]).prompt  # for the model that answers again
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str | None = None
    """The question, or None if it was not found."""
    answer: str
    """The rejected answer."""
    evaluations: tuple[Evaluation, ...]
    """The evaluations that did not let the answer through, at least one."""
    documents: tuple[Document, ...] = ()
    """The documents that the guard's retriever found for the failed claims, if the retriever was
    asked."""
    errors: tuple[str, ...] = ()
    """An error message for each search of that retriever that failed."""
    instruction: str = ""
    """What the recovery asks of a better answer."""
    attempt: int = 1
    """The number of the rejected answer, from 1. It is also the number of answers rejected so
    far."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of the answer: failed claims without repeats, then other problems."""
        return tuple(_distinct(self._problems()))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Return the kinds of the problems, without repeats."""
        return tuple(dict.fromkeys(problem.failure for problem in self.problems))

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Return the claims that do not hold, without repeats."""
        return tuple(problem.claim for problem in self.problems if problem.claim is not None)

    @property
    def queries(self) -> tuple[str, ...]:
        """Return the texts to search for, without repeats: the failed claims, else the question."""
        problems = self.problems
        claims = [problem.query for problem in problems if problem.claim is not None]
        return tuple(dict.fromkeys(claims or [problem.query for problem in problems]))

    @property
    def text(self) -> str:
        """Return the rejection in words for a model: the instruction, then a line for each problem.

        The text differs from attempt to attempt, so that a cache does not return a rejected answer
        again.
        """
        return in_words(self, self.problems)

    @property
    def prompt(self) -> str:
        """Return `text` and `documents` for a message, with quoted texts between delimiters.

        The instruction comes first. Texts that quote an answer or a source, and the documents,
        follow between delimiters that they cannot forge, so that the model does not obey them. Tell
        the model that text inside tags is data.
        """
        quoted = self.model_copy(update={"instruction": ""}).text
        sources = "\n\n".join(document.page_content for document in self.documents)
        parts = [self.instruction, f"Problems:\n{isolate('findings', quoted)}"]
        if sources:
            parts.append(f"Further sources:\n{isolate('sources', sources)}")
        return "\n\n".join(part for part in parts if part)

    def _problems(self) -> Iterator[Problem]:
        for evaluation in self.evaluations:
            for claim, failure in _failed(evaluation):
                yield Problem(
                    failure=failure,
                    evaluator=evaluation.name,
                    claim=claim,
                    query=claim.text,
                    text=_claim_in_words(claim),
                )
        for evaluation in self.evaluations:
            if not _failed(evaluation):
                nothing = evaluation.nothing_to_check
                rejects = evaluation.explanation or f"{evaluation.name} rejects it."
                if evaluation.undetermined:  # its explanation may quote a provider
                    cause = f" ({evaluation.cause})" if evaluation.cause else ""
                    rejects = f"{evaluation.name} could not decide about it{cause}."
                yield Problem(
                    failure=Failure.NOTHING if nothing else evaluation.failure or Failure.OTHER,
                    evaluator=evaluation.name,
                    query=self.question or self.answer,
                    text=_NOTHING if nothing else rejects,
                )


def in_words(feedback: Feedback, problems: Iterable[Problem]) -> str:
    """Return the instruction, how many answers were rejected, and some of the problems, as text."""
    tried = f"Of {feedback.attempt} answers none held. In the last one:"
    listed = (f"- {' '.join(problem.text.split())}" for problem in problems)
    lines = (feedback.instruction, tried if feedback.attempt > 1 else "", *listed)
    return "\n".join(line for line in lines if line)


def _failed(evaluation: Evaluation) -> list[tuple[Claim, Failure]]:
    """Return the claims that do not hold, each with its failure.

    The list is empty for an answer that contradicts itself, since either part may be the right one.
    It is empty, too, for an answer that cites a wrong source, since its claims may hold.
    """
    if evaluation.failure in (Failure.SELF_CONTRADICTION, Failure.CITATION):
        return []
    told = ((claim, failure_of(claim)) for claim in evaluation.claims)
    return [(claim, failure) for claim, failure in told if failure is not None]


def _distinct(problems: Iterable[Problem]) -> Iterable[Problem]:
    first: dict[str, Problem] = {}
    for problem in problems:
        first.setdefault(problem.text if problem.claim is None else problem.claim.text, problem)
    return first.values()


def _claim_in_words(claim: Claim) -> str:
    reason = f" ({claim.reason})" if claim.reason else ""
    if claim.label is not ClaimLabel.CONTRADICTION:
        found = "supported by" if claim.label is ClaimLabel.UNSUPPORTED else "in"
        return f"Not {found} the sources: {claim.text}{reason}"
    quotes = [f'"{evidence.text}"' for evidence in claim.evidence]
    says = f" They say: {' '.join(quotes)}" if quotes else ""
    by = "the sources" if claim.action is None else "what was done"
    return f"Contradicted by {by}: {claim.text.removesuffix('.')}{reason}.{says}"
