"""Merge the findings about each claim into a label, a confidence and evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from demur.evaluators.base import LabelledClaims
from demur.evaluators.refchecker.aggregation import merge
from demur.evaluators.refchecker.calculations import WorkedOut
from demur.evaluators.refchecker.checking import WindowFinding
from demur.evaluators.refchecker.localization import Index, find_evidence, index
from demur.evaluators.refchecker.references import Window
from demur.schema import NLI_LABELS, Claim, ClaimLabel, Evidence, MissingString

_QUOTED = (ClaimLabel.ENTAILMENT, ClaimLabel.CONTRADICTION)
"""The labels that a passage decides, which can be quoted."""


def merged(
    claims: Sequence[Claim],
    read: Sequence[tuple[Sequence[Window], Sequence[WindowFinding]]],
    worked: Sequence[Sequence[WorkedOut]],
    missing: Sequence[Sequence[MissingString]],
) -> LabelledClaims:
    """Return the claims with their labels, merged over the windows, and with the evidence for them.

    A claim with a string that stands in no reference is Neutral where the windows support it. If
    the string is a figure that comes out otherwise, the claim is contradicted.

    Args:
        claims: The claims that were checked.
        read: For each claim, the windows that it was checked against and the finding of each
            window.
        worked: For each claim, what is worked out about its figures.
        missing: For each claim, its strings that stand in none of the references.
    """
    indexed: dict[Window, Index] = {}
    labelled = []
    confidence = []
    for claim, (windows, findings), known, strings in zip(
        claims, read, worked, missing, strict=True
    ):
        found = merge(finding.label for finding in findings)
        told = [one for one in known if _is_told(one, claim.text, found, strings)]
        refuting = [claim.text[one.start : one.end] for one in told if not one.follows]
        strings = [one for one in strings if not any(one.string in said for said in refuting)]
        label = found
        if found is not None and refuting:
            label = ClaimLabel.CONTRADICTION
        elif found is ClaimLabel.ENTAILMENT and strings:
            label = ClaimLabel.NEUTRAL
        evidence: list[Evidence] = []
        for finding, window in zip(findings, windows, strict=True):
            if label in _QUOTED and finding.label is label:
                if window not in indexed:
                    indexed[window] = index(window)
                evidence += find_evidence(claim.text, indexed[window], label)
        if label in _QUOTED:
            evidence += [
                quote
                for one in told
                for quote in one.quotes(label)
                if not any(_within(quote, other) for other in evidence)
            ]
        labelled.append(
            claim.model_copy(
                update={
                    "label": label,
                    "probabilities": _probabilities(findings, found),
                    "calculations": tuple(one.calculation(claim.text) for one in told),
                    "missing_strings": tuple(strings),
                    "support": _support(findings),
                    "evidence": tuple(dict.fromkeys(evidence)),
                    "error": None if label else next(f.error for f in findings if f.error),
                }
            )
        )
        confidence.append(1.0 if label is not found else _confidence(findings, found))
    return LabelledClaims(tuple(labelled), tuple(confidence))


def _is_told(
    one: WorkedOut, claim: str, found: ClaimLabel | None, strings: Sequence[MissingString]
) -> bool:
    """Return whether a calculation is told: the figure follows, or fails anyway, which it explains.

    A calculation fails no figure that the search for strings leaves to the judge, and the judge
    supports: "more than 20", and what else demur does not read.
    """
    if one.follows is None:
        return False
    missing = any(string.string in claim[one.start : one.end] for string in strings)
    return one.follows or missing or found is not ClaimLabel.ENTAILMENT


def _within(quote: Evidence, other: Evidence) -> bool:
    same = quote.context == other.context
    return same and other.span.start <= quote.span.start and quote.span.end <= other.span.end


def _probabilities(
    findings: Sequence[WindowFinding], label: ClaimLabel | None
) -> dict[ClaimLabel, float] | None:
    """Return the probabilities of the window that is most sure of the claim's label."""
    if label is None:
        return None
    known = [f.probabilities for f in findings if f.label is label and f.probabilities]
    return dict(max(known, key=lambda shares: shares[label])) if known else None


def _support(findings: Sequence[WindowFinding]) -> float | None:
    """Return the probability of Entailment in the window that supports the claim most.

    It is None if a window has a label without probabilities, since that may be the one.
    """
    if any(f.label is not None and f.probabilities is None for f in findings):
        return None
    known = [f.probabilities[ClaimLabel.ENTAILMENT] for f in findings if f.probabilities]
    return max(known, default=None)


def _confidence(findings: Sequence[WindowFinding], label: ClaimLabel | None) -> float:
    """Return how sure the merged label is, in [0, 1].

    One window is enough to support a claim, so an Entailment is as sure as its surest window. A
    Neutral is as sure as the least sure window. A Contradiction is sure if one window surely
    contradicts the claim, and every window surely does not support it.
    """
    if label is None:
        return 0.0
    known = [f.probabilities for f in findings if f.probabilities]
    if not known:
        return 1.0
    surest = max(shares[label] for shares in known)
    if label is ClaimLabel.ENTAILMENT:
        return surest
    if label is ClaimLabel.NEUTRAL:
        return min(shares[label] for shares in known)
    return min(surest, 1 - max(shares[ClaimLabel.ENTAILMENT] for shares in known))


def counts_of(claims: Sequence[Claim]) -> Mapping[str, int]:
    """Count the claims that have each label of NLI, and those that are Unsupported if there are."""
    counts = Counter(claim.label for claim in claims)
    shown = [label for label in ClaimLabel if label in NLI_LABELS or counts[label]]
    return {label.value: counts[label] for label in shown}


def explanation(claims: Sequence[Claim], in_part: bool) -> str:
    """Return the labels of the claims in one sentence.

    Args:
        claims: The claims that were checked.
        in_part: Whether some text of the references was left out.
    """
    counts = counts_of(claims)
    noun = "claim" if len(claims) == 1 else "claims"
    supported = counts[ClaimLabel.ENTAILMENT]
    parts = [f"The references support {supported} of {len(claims)} {noun}"]
    for label, words in (
        (ClaimLabel.CONTRADICTION, "contradicted by them"),
        (
            ClaimLabel.NEUTRAL,
            "not found in what was read of them" if in_part else "not found in them",
        ),
        (ClaimLabel.UNSUPPORTED, "not supported by them, and perhaps contradicted"),
    ):
        if counts.get(label):
            parts.append(f"{counts[label]} {words}")
    unlabelled = sum(claim.label is None for claim in claims)
    if unlabelled:
        parts.append(f"{unlabelled} without a label")
    return ", ".join(parts) + "."
