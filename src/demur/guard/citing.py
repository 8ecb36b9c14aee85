"""What a guard shows of an answer's sources, and what it makes of the chain's own citations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from demur._marks import marks_in
from demur.edits import Cited, Form, citations_of, cited, places_of
from demur.guard.trace import Attempt
from demur.schema import Claim, ClaimLabel, Evaluation, Failure


def cited_attempt(attempt: Attempt, form: Form | None) -> Cited:
    """The answer of an attempt with its citations; with `form` None, its text stays as it is."""
    answer = attempt.answer
    found = places_of(answer), attempt.evaluations, attempt.contexts
    if form is None:
        return Cited(answer, citations_of(answer, *found), "list")
    return cited(answer, *found, form)


def recited(attempt: Attempt) -> str | None:
    """The answer of an attempt, its citations corrected.

    Each supported sentence cites what it rests on, in the form that the answer has. A citation that
    is this very one, and failed all the same, is taken out.

    Returns:
        None where nothing is left to correct.
    """
    form: Form = "footnotes" if "[^" in attempt.answer else "numbers"
    failed = {
        claim.span.start
        for claim in _of_citations(attempt.evaluations)
        if claim.span and claim.label is not ClaimLabel.ENTAILMENT
    }
    before = _documents(attempt.answer, attempt)
    for unmarked in ((), failed):
        found = cited(
            attempt.answer,
            places_of(attempt.answer),
            [*_kept(attempt.evaluations)],
            attempt.contexts,
            form,
            unmarked,
        )
        if _documents(found.text, attempt) != before:
            return str(found.content)
    return None


def _documents(text: str, attempt: Attempt) -> list[int | None]:
    """The documents that a text cites, in order."""
    return [one for mark in marks_in(text, attempt.contexts) for one in mark.documents]


def _of_citations(evaluations: Iterable[Evaluation]) -> Iterator[Claim]:
    for evaluation in evaluations:
        if evaluation.failure is Failure.CITATION:
            yield from evaluation.claims


def _kept(evaluations: Iterable[Evaluation]) -> Iterator[Evaluation]:
    """Evaluations without the claims that say that a citation is wrong: the sentence may hold."""
    for evaluation in evaluations:
        if evaluation.failure is Failure.CITATION:
            right = [c for c in evaluation.claims if c.label is ClaimLabel.ENTAILMENT]
            evaluation = evaluation.model_copy(update={"claims": tuple(right)})
        yield evaluation
