"""Put a sample into plain letters, and map an evaluation of it back to the original."""

from __future__ import annotations

from dataclasses import dataclass, field

from demur._text import Plain, plain
from demur.schema import Claim, Evaluation, Evidence, Sample, Span

_TEXTS = ("question", "answer", "preceding", "reference")


@dataclass(frozen=True)
class Unstyled:
    """Hold a sample and its copy whose texts are in plain letters."""

    original: Sample
    sample: Sample
    texts: dict[str, Plain] = field(default_factory=dict)
    """The texts that changed, by the name of their field."""
    contexts: dict[int, Plain] = field(default_factory=dict)
    """The contexts that changed, by their index."""

    def in_original(self, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation with the spans and quotes of the original sample."""
        if not evaluation.claims:
            return evaluation
        claims = tuple(map(self._claim, evaluation.claims))
        return evaluation.model_copy(update={"claims": claims})

    def _claim(self, claim: Claim) -> Claim:
        changes: dict[str, object] = {}
        if claim.span is not None and "answer" in self.texts:
            changes["span"] = _moved(claim.span, self.texts["answer"])
        if claim.evidence:
            changes["evidence"] = tuple(map(self._evidence, claim.evidence))
        return claim.model_copy(update=changes)

    def _evidence(self, evidence: Evidence) -> Evidence:
        at, span = evidence.context, evidence.span
        if evidence.known is not None:
            return evidence
        changed = self.texts.get("reference") if at is None else self.contexts.get(at)
        # A document that the evaluator retrieved itself stands in no text of the sample.
        if changed is None or changed.text[span.start : span.end] != evidence.text:
            return evidence
        text = self.original.reference if at is None else self.original.contexts[at].page_content
        moved = _moved(span, changed)
        quote = (text or "")[moved.start : moved.end]
        return evidence.model_copy(update={"span": moved, "text": quote})


def unstyled(sample: Sample) -> Unstyled | None:
    """Return the sample in plain letters, or None if all its letters are plain already."""
    plain_texts = {name: plain(getattr(sample, name) or "") for name in _TEXTS}
    texts = {name: text for name, text in plain_texts.items() if text is not None}
    read = {at: plain(document.page_content) for at, document in enumerate(sample.contexts)}
    contexts = {at: text for at, text in read.items() if text is not None}
    if not texts and not contexts:
        return None
    documents = tuple(
        document.model_copy(update={"page_content": contexts[at].text})
        if at in contexts
        else document
        for at, document in enumerate(sample.contexts)
    )
    changes = {name: text.text for name, text in texts.items()}
    copy = sample.model_copy(update={**changes, "contexts": documents})
    return Unstyled(sample, copy, texts, contexts)


def _moved(span: Span, changed: Plain) -> Span:
    start, end = changed.original(span.start, span.end)
    return Span(start=start, end=end)
