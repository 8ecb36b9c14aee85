"""Find the references of a sample: its own, or those that a retriever finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from demur.evaluators.refchecker.actions import reports_on_calls, without_calls
from demur.evaluators.styled import unstyled
from demur.runtime import RunnableCall, Steps, UndeterminedError, ask
from demur.schema import Sample
from demur.shapes import is_users

NO_REFERENCES = (
    "there is nothing to check the answer against: give the sample contexts or a reference, or "
    "give RefChecker a retriever"
)
_NO_CONTEXTS = "no contexts"


def find_references(sample: Sample, retriever: Runnable[str, Any] | None) -> Steps[Sample]:
    """Return the sample with references.

    If its only references are what the user said, the retriever's documents are added, if there is
    a retriever.

    Raises:
        UndeterminedError: There are no references.
    """
    texts = without_calls(sample).contexts
    others = [document for document in texts if not is_users(document)]
    if any_text(others, sample.reference):
        return sample
    said = sample.contexts if any_text(sample.contexts, None) else ()
    if retriever is None:
        if any_text(texts, None) or reports_on_calls(sample):
            return sample
        raise UndeterminedError(NO_REFERENCES, cause=_NO_CONTEXTS)
    query = sample.question or sample.answer
    searching = RunnableCall(retriever, query, "retrieval")
    documents = yield from ask(searching, "the retriever failed")
    retrieved = Sample(answer="", contexts=documents)
    plain = unstyled(retrieved)  # as for every text that an evaluator is given
    contexts = (*(retrieved if plain is None else plain.sample).contexts, *said)
    if not any_text(contexts, None):
        why = "the retriever found no text to check the answer against"
        raise UndeterminedError(why, cause=_NO_CONTEXTS)
    return sample.model_copy(update={"contexts": contexts})


def any_text(contexts: Sequence[Document], reference: str | None) -> bool:
    """Return whether any of the references has text."""
    return any(document.page_content.strip() for document in contexts) or bool(
        reference and reference.strip()
    )
