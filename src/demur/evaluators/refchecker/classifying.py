"""Label claims with a classifier of pairs in this process, which reads no prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from demur.evaluators.refchecker.checking import (
    Checker,
    Findings,
    Group,
    WindowFinding,
    in_parts,
    label_of,
)
from demur.evaluators.refchecker.references import window_text
from demur.runtime import LocalCall, Steps, ask_all
from demur.schema import ClaimLabel


class Classifier(Protocol):
    """Describe a judge of pairs in this process: the small judge, or a cross-encoder for NLI."""

    @property
    def batch_size(self) -> int:
        """Return the number of pairs that are judged in one call, which cannot be interrupted."""

    @property
    def fingerprint(self) -> str:
        """Return what identifies the judge."""

    def predict(
        self, pairs: Sequence[tuple[str, str]], /
    ) -> Sequence[Mapping[ClaimLabel, float] | str]:
        """Return each label's probability for each (reference, claim), or why there is none."""


def classified(judge: Classifier, supported_from: float | None) -> Checker:
    """Check the pairs of window and claim of all groups with a classifier in this process."""

    def check(groups: Sequence[Group], question: str | None) -> Steps[list[Findings]]:
        pairs = [
            (window_text(window), claim.alone)
            for claims, windows in groups
            for window in windows
            for claim in claims
        ]
        # Pairs of similar length are together, so that a cross-encoder pads little.
        different = sorted(dict.fromkeys(pairs), key=lambda pair: sum(map(len, pair)))
        parts = in_parts(different, judge.batch_size)
        calls = [LocalCall(partial(judge.predict, part), "checking") for part in parts]
        outcomes = yield from ask_all(calls)
        found: dict[tuple[str, str], WindowFinding] = {}
        for part, outcome in zip(parts, outcomes, strict=True):
            failed = f"the checker failed: {outcome.error}"
            read = outcome.value if outcome.error is None else [failed] * len(part)
            found |= zip(part, (_read(one, supported_from) for one in read), strict=True)
        findings = iter([found[pair] for pair in pairs])
        return [[[next(findings) for _ in claims] for _ in windows] for claims, windows in groups]

    return check


def _read(judged: Mapping[ClaimLabel, float] | str, supported_from: float | None) -> WindowFinding:
    if isinstance(judged, str):
        return WindowFinding(error=judged)
    return WindowFinding(label_of(judged, supported_from), judged)
