"""Find the references of a sample: its own, those that a retriever finds, and what is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from demur.evaluators.refchecker.actions import reports_on_calls, without_calls
from demur.evaluators.styled import unstyled
from demur.runtime import RunnableCall, Steps, UndeterminedError, ask
from demur.schema import Claim, Evidence, Sample
from demur.shapes import is_users

NO_REFERENCES = (
    "there is nothing to check the answer against: give the sample contexts or a reference, or "
    "give RefChecker a retriever"
)
_NO_CONTEXTS = "no contexts"


def find_references(
    sample: Sample, retriever: Runnable[str, Any] | None, known: Sequence[Document]
) -> Steps[Sample]:
    """Return the sample with references.

    If its only references are what the user said, or what is `known` anyway, the retriever's
    documents are added, if there is a retriever.

    Raises:
        UndeterminedError: There are no references, and nothing is known.
    """
    texts = without_calls(sample).contexts
    others = [document for document in texts if not is_users(document)]
    if any_text(others, sample.reference):
        return sample
    said = sample.contexts if any_text(sample.contexts, None) else ()
    if retriever is None:
        if any_text((*texts, *known), None) or reports_on_calls(sample):
            return sample
        raise UndeterminedError(NO_REFERENCES, cause=_NO_CONTEXTS)
    query = sample.question or sample.answer
    searching = RunnableCall(retriever, query, "retrieval")
    documents = yield from ask(searching, "the retriever failed")
    contexts = (*_plain(documents), *said)
    if not any_text((*contexts, *known), None):
        why = "the retriever found no text to check the answer against"
        raise UndeterminedError(why, cause=_NO_CONTEXTS)
    return sample.model_copy(update={"contexts": contexts})


def any_text(contexts: Sequence[Document], reference: str | None) -> bool:
    """Return whether any of the references has text."""
    return any(document.page_content.strip() for document in contexts) or bool(
        reference and reference.strip()
    )


def with_known(sample: Sample, known: Sequence[Document]) -> Sample:
    """Return a sample with what is known before its contexts, since others may follow these."""
    texts = [Document(document.page_content) for document in _plain(known)]
    return sample.model_copy(update={"contexts": (*texts, *sample.contexts)})


def quoting_known(claims: Sequence[Claim], known: int) -> tuple[Claim, ...]:
    """Return claims that were judged `with_known` texts, whose evidence says where it stands.

    Args:
        claims: The claims, whose evidence counts the known texts as the first contexts.
        known: The number of known texts.
    """

    def placed(evidence: Evidence) -> Evidence:
        at = evidence.context
        if at is None:
            return evidence
        place = {"context": None, "known": at} if at < known else {"context": at - known}
        return evidence.model_copy(update=place)

    def quoting(claim: Claim) -> Claim:
        calculations = tuple(
            one.model_copy(update={"operands": tuple(map(placed, one.operands))})
            for one in claim.calculations
        )
        evidence = tuple(map(placed, claim.evidence))
        return claim.model_copy(update={"evidence": evidence, "calculations": calculations})

    return tuple(map(quoting, claims)) if known else tuple(claims)


def _plain(documents: Any) -> tuple[Document, ...]:
    """Return documents in plain letters, as every text that an evaluator is given."""
    sample = Sample(answer="", contexts=documents)
    plain = unstyled(sample)
    return (sample if plain is None else plain.sample).contexts
