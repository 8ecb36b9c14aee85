"""Remember the claims that were judged within a guarded call, so that none is paid for twice.

The call's scope (`demur.runtime.scope`) keeps the memory. Outside of a guarded call, nothing is
kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from demur.evaluators.refchecker.aggregation import merge
from demur.evaluators.refchecker.checking import WindowFinding
from demur.evaluators.refchecker.nearness import Chosen
from demur.evaluators.refchecker.references import Window
from demur.runtime import current_scope
from demur.schema import ClaimLabel, Sample
from demur.shapes import status_of_call


@dataclass(frozen=True)
class JudgedClaim:
    """Hold what a claim was checked against, and what was found."""

    chosen: Chosen
    """The windows that were chosen for the claim."""
    windows: tuple[Window, ...]
    """All windows that the claim was checked against."""
    findings: tuple[WindowFinding, ...]
    """The finding of each window."""

    @property
    def label(self) -> ClaimLabel | None:
        """Return the label that the findings give the claim."""
        return merge(finding.label for finding in self.findings)


def recall(judge: object, sample: Sample, claims: Iterable[str]) -> dict[str, JudgedClaim]:
    """Return which of the claims were judged earlier in this guarded call.

    A claim is known if it was judged against the same contexts. A supported claim is also known if
    further contexts follow them now, since these cannot change its label. An agent's calls can, so
    it is judged again if calls follow.

    Args:
        judge: The evaluator that asks. It knows only what it has judged itself.
        sample: The sample with its references.
        claims: The claims, as texts that can be understood alone.
    """
    known = _memory(judge, sample)
    now = _contexts(sample)
    found = {}
    for claim in claims:
        contexts, judged = known.get(claim, ((), None))
        if judged is None:
            continue
        further = sample.contexts[len(contexts) :]
        followed = contexts == now[: len(contexts)] and not any(map(status_of_call, further))
        if contexts == now or (followed and judged.label is ClaimLabel.ENTAILMENT):
            found[claim] = judged
    return found


def remember(judge: object, sample: Sample, claims: Mapping[str, JudgedClaim]) -> None:
    """Remember claims that have a label; the other arguments are those of `recall`."""
    contexts = _contexts(sample)
    _memory(judge, sample).update(
        {text: (contexts, judged) for text, judged in claims.items() if judged.label is not None}
    )


def _memory(judge: object, sample: Sample) -> dict[str, Any]:
    """Return what is known by claim: the contexts at that time, and the judged claim."""
    scope = current_scope()
    if scope is None:
        return {}
    key = "refchecker", id(judge), sample.question, sample.reference
    # The judge is kept too, so that no other object can get its `id` in the meantime.
    known: dict[str, Any] = scope.known.setdefault(key, (judge, {}))[1]
    return known


def _contexts(sample: Sample) -> tuple[str, ...]:
    return tuple(document.page_content for document in sample.contexts)
