"""Provide an evaluator that supports a sentence if a document contains all of its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from langchain_core.documents import Document

from demur import Claim, ClaimLabel, Evaluation, Evidence, Sample, Span
from demur.evaluators import Evaluator, units
from demur.runtime import Steps

LOUVRE = (
    Document(
        "The Louvre, in Paris, opened as a museum in 1793.",
        id="louvre-1",
        metadata={"title": "Louvre guide", "source": "https://museums.example/louvre"},
    ),
    Document("On show are 35000 works of art.", metadata={"source": "files/works.txt"}),
)
"""Two documents: one with a title and a URL, the other with a file name."""


class HeldByNumbers(Evaluator):
    """Label each sentence as supported, or as contradicted if one of its numbers is in no document.

    A sentence with the word "unsure" has no label.
    """

    @property
    def claim_level(self) -> bool:
        return True

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ()
        claims = [*_claims(sample)]
        if not claims:
            return Evaluation(name="HeldByNumbers", label="Abstain")
        labels = [claim.label for claim in claims]
        if None in labels and ClaimLabel.CONTRADICTION not in labels:
            return Evaluation(name="HeldByNumbers", error="not sure", claims=tuple(claims))
        passed = set(labels) == {ClaimLabel.ENTAILMENT}
        score = labels.count(ClaimLabel.ENTAILMENT) / len(labels)
        return Evaluation(name="HeldByNumbers", score=score, passed=passed, claims=tuple(claims))


def _claims(sample: Sample) -> Iterator[Claim]:
    for unit in units(sample.answer):
        span = Span(start=unit.start, end=unit.end)
        numbers = re.findall(r"\d+", unit.said)
        if "unsure" in unit.said:
            yield Claim(text=unit.said, span=span, error="not sure")
        elif numbers:
            found = [*_evidence(numbers, sample)]
            label = ClaimLabel.ENTAILMENT if found else ClaimLabel.CONTRADICTION
            yield Claim(text=unit.said, span=span, label=label, evidence=tuple(found[:1]))


def _evidence(numbers: list[str], sample: Sample) -> Iterator[Evidence]:
    for at, document in enumerate(sample.contexts):
        text = document.page_content
        if all(number in text for number in numbers):
            span = Span(start=0, end=len(text))
            yield Evidence(context=at, span=span, text=text, label=ClaimLabel.ENTAILMENT)
