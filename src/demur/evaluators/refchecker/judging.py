"""From findings to judged claims: labels merged over windows, how sure they are, evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from demur.evaluators.base import LabelledClaims
from demur.evaluators.refchecker.aggregation import merge
from demur.evaluators.refchecker.checking import WindowFinding
from demur.evaluators.refchecker.localization import Index, find_evidence, index
from demur.evaluators.refchecker.quantities import missing_quantities
from demur.evaluators.refchecker.references import Window, window_text
from demur.schema import Claim, ClaimLabel, Evidence


def judged(
    claims: Sequence[Claim], read: Sequence[tuple[Sequence[Window], Sequence[WindowFinding]]]
) -> LabelledClaims:
    """The claims with their labels merged over the windows, and the evidence for them.

    Args:
        claims: Those that were checked.
        read: For each claim the windows that it was held against, and what each says of it.
    """
    indexed: dict[Window, Index] = {}
    labelled = []
    confidence = []
    for claim, (windows, findings) in zip(claims, read, strict=True):
        label = merge(finding.label for finding in findings)
        evidence: list[Evidence] = []
        for finding, window in zip(findings, windows, strict=True):
            if label not in (None, ClaimLabel.NEUTRAL) and finding.label is label:
                if window not in indexed:
                    indexed[window] = index(window)
                evidence += find_evidence(claim.text, indexed[window], label)
        labelled.append(
            claim.model_copy(
                update={
                    "label": label,
                    "probabilities": _probabilities(findings, label),
                    "evidence": tuple(dict.fromkeys(evidence)),
                    "error": None if label else next(f.error for f in findings if f.error),
                }
            )
        )
        confidence.append(_confidence(findings, label))
    return LabelledClaims(tuple(labelled), tuple(confidence))


def with_quantities(claim: Claim, answer: str, windows: Sequence[Window]) -> Claim:
    """The claim with its quantities that stand nowhere in what it was held against.

    Of a claim that is a piece of the answer behind its question, only the piece counts.
    """
    text = claim.text
    if claim.span is not None and not claim.triplet:
        own = answer[claim.span.start : claim.span.end]
        text = own if text.endswith(own) else text
    missing = missing_quantities(text, [window_text(window) for window in windows])
    return claim.model_copy(update={"missing_quantities": missing}) if missing else claim


def _probabilities(
    findings: Sequence[WindowFinding], label: ClaimLabel | None
) -> dict[ClaimLabel, float] | None:
    """Those of the window that is surest of the claim's label."""
    if label is None:
        return None
    known = [f.probabilities for f in findings if f.label is label and f.probabilities]
    return dict(max(known, key=lambda shares: shares[label])) if known else None


def _confidence(findings: Sequence[WindowFinding], label: ClaimLabel | None) -> float:
    """How sure the merged label is, in [0, 1].

    One window is enough to support a claim. That none does must be sure of every window: the claim
    is contradicted if one window surely does and the others surely do not support it, and Neutral
    if each window is.
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
    """How many claims have each label."""
    return {label.value: sum(claim.label is label for claim in claims) for label in ClaimLabel}


def explanation(claims: Sequence[Claim], in_part: bool) -> str:
    """The labels of the claims in a sentence.

    Args:
        claims: Those that were checked.
        in_part: Whether some text was left out that they could have been held against.
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
    ):
        if counts[label]:
            parts.append(f"{counts[label]} {words}")
    unlabelled = sum(claim.label is None for claim in claims)
    if unlabelled:
        parts.append(f"{unlabelled} without a label")
    return ", ".join(parts) + "."
