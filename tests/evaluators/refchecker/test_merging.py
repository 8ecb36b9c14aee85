"""Test the confidence in a merged label, and the evidence that is quoted for it."""

from __future__ import annotations

import pytest

from demur.evaluators.refchecker.checking import WindowFinding
from demur.evaluators.refchecker.merging import merged
from demur.evaluators.refchecker.references import Passage
from demur.schema import Claim, ClaimLabel, MissingString

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION


def found(entailed: float, neutral: float, contradicted: float) -> WindowFinding:
    shares = {E: entailed, N: neutral, C: contradicted}
    return WindowFinding(max(shares, key=shares.__getitem__), shares)


@pytest.mark.parametrize(
    ("findings", "label", "confidence"),
    [
        ([found(0.9, 0.1, 0.0)], E, 0.9),
        ([found(0.9, 0.1, 0.0), found(0.0, 0.0, 1.0)], E, 0.9),
        ([found(0.6, 0.4, 0.0), found(0.8, 0.1, 0.1)], E, 0.8),
        # The confidence in Neutral is that of the least confident window.
        ([found(0.0, 0.99, 0.01), found(0.4, 0.6, 0.0)], N, 0.6),
        # One window clearly contradicts the claim, and another nearly supports it.
        ([found(0.0, 0.05, 0.95), found(0.45, 0.55, 0.0)], C, 0.55),
        ([found(0.0, 0.05, 0.95), found(0.01, 0.99, 0.0)], C, 0.95),
        # A label without probabilities counts with full confidence.
        ([WindowFinding(N), WindowFinding(C)], C, 1.0),
        # One window was not asked about, because the other is known to support the claim.
        ([found(0.9, 0.1, 0.0), WindowFinding()], E, 0.9),
        ([found(0.1, 0.9, 0.0), WindowFinding(error="no reply")], None, 0.0),
    ],
)
def test_confidence(
    findings: list[WindowFinding], label: ClaimLabel | None, confidence: float
) -> None:
    windows = [(Passage(at, 0, f"Text {at}."),) for at in range(len(findings))]
    one = merged([Claim(text="A text.")], [(windows, findings)], [()], [()])
    assert one.claims[0].label is label
    assert one.confidence == (pytest.approx(confidence),)


def test_evidence_is_of_each_window_with_the_label_and_none_stands_twice() -> None:
    mill = Passage(0, 0, "The mill is tall. It burnt in 1880.")
    inn = Passage(1, 0, "The tall inn is old.")
    windows = [(mill,), (mill, inn), (inn,)]
    findings = [WindowFinding(E), WindowFinding(E), WindowFinding(N)]
    one = merged([Claim(text="The tall mill burnt.")], [(windows, findings)], [()], [()])
    quotes = [(quote.context, quote.text) for quote in one.claims[0].evidence]
    assert quotes == [(0, "The mill is tall."), (0, "It burnt in 1880.")]


def test_a_neutral_claim_has_no_evidence() -> None:
    window = (Passage(0, 0, "The mill is tall."),)
    one = merged([Claim(text="The mill is low.")], [([window], [WindowFinding(N)])], [()], [()])
    assert one.claims[0].evidence == ()


def test_a_missing_string_makes_a_supported_claim_neutral_and_keeps_the_probabilities() -> None:
    window = (Passage(0, 0, "The mill is at B12."),)
    strings = (MissingString(string="B21", nearest="B12"),)
    claims = [Claim(text="The mill is at B21.")] * 2
    findings = [found(0.7, 0.2, 0.1), found(0.1, 0.2, 0.7)]
    read = [([window], [finding]) for finding in findings]
    one = merged(claims, read, [(), ()], [strings, strings])
    assert [claim.label for claim in one.claims] == [N, C]
    assert one.confidence == (1.0, pytest.approx(0.7))
    assert [claim.probabilities for claim in one.claims] == [f.probabilities for f in findings]
    assert [claim.support for claim in one.claims] == [0.7, 0.1]
    assert all(claim.missing_strings == strings for claim in one.claims)
    assert one.claims[0].evidence == ()
