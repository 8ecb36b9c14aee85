"""Add citations to an answer that passed, and correct the chain's own citations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from demur._text import marks_in
from demur.guard.edits import Cited, Form, citations_of, cited, places_of
from demur.guard.trace import Attempt
from demur.schema import Claim, ClaimLabel, Evaluation, Failure


def cited_attempt(attempt: Attempt, form: Form | None, known: str) -> Cited:
    """Return an attempt's answer with its citations; `form` None leaves its text unchanged.

    `known` is the mark of parts that a text supports which is always known; empty: no mark.
    """
    answer = attempt.answer
    found = places_of(answer), attempt.evaluations, attempt.contexts
    if form is None:
        return Cited(answer, citations_of(answer, *found), "list")
    return cited(answer, *found, form, known=known)


def recited(attempt: Attempt) -> str | None:
    """Return the answer of an attempt with its citations corrected.

    Each supported sentence cites its sources, in the answer's own style of citations. A citation
    that failed although it is already the right one is taken out.

    Returns:
        The corrected answer; None if nothing is left to correct.
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
    """Return the numbers of the documents that a text cites, in order."""
    return [one for mark in marks_in(text, attempt.contexts) for one in mark.documents]


def _of_citations(evaluations: Iterable[Evaluation]) -> Iterator[Claim]:
    for evaluation in evaluations:
        if evaluation.failure is Failure.CITATION:
            yield from evaluation.claims


def _kept(evaluations: Iterable[Evaluation]) -> Iterator[Evaluation]:
    """Yield the evaluations without their claims of wrong citations, as the sentences may hold."""
    for evaluation in evaluations:
        if evaluation.failure is Failure.CITATION:
            right = [c for c in evaluation.claims if c.label is ClaimLabel.ENTAILMENT]
            evaluation = evaluation.model_copy(update={"claims": tuple(right)})
        yield evaluation
