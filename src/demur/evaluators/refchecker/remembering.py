"""What was found out within a guarded call is not paid for again.

The call's scope (`demur.runtime.scope`) keeps it; outside of a guarded call nothing is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

from demur.evaluators.refchecker.checking import Checker, Findings, WindowFinding
from demur.evaluators.refchecker.context import AskedClaim
from demur.evaluators.refchecker.references import Passage, Window, pack_again, window_text
from demur.runtime import Steps, current_scope, side_by_side
from demur.schema import ClaimLabel


class Same:
    """A key for one very object. It holds the object, whose `id` no other can get meanwhile."""

    def __init__(self, held: object) -> None:
        self._held = held

    def __hash__(self) -> int:
        return id(self._held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._held is other._held


def memory(*key: Hashable) -> dict[Any, Any]:
    """What this call keeps under a key; outside of a call, a dict that nobody else sees."""
    scope = current_scope()
    return {} if scope is None else scope.known.setdefault(("refchecker", *key), {})


def stable_windows(pieces: Sequence[Passage], size: int) -> list[Window]:
    """The passages in windows, those of earlier attempts first."""
    known: dict[tuple[str, ...], None] = memory("windows", size)
    windows = pack_again(pieces, size, list(known))
    known.update(dict.fromkeys(tuple(passage.text for passage in window) for window in windows))
    return windows


def check_unknown(
    check: Checker,
    identity: Hashable,
    claims: Sequence[AskedClaim],
    windows: Sequence[Window],
    question: str | None,
) -> Steps[tuple[Findings, int]]:
    """Have the claims checked against the windows, but for what is known already.

    A claim that is known to be supported by one window needs no other: its findings there are left
    without label and error.

    Args:
        check: What to ask.
        identity: Who is asked, and how: a finding is known only to the same.
        claims: What is asked. Equal ones are asked about once.
        windows: What the claims are held against.
        question: The one that was answered.

    Returns:
        The findings, and how many of them were known.
    """
    # Windows of equal text, as of a document that was found twice, are asked about once.
    places = {window_text(window): window for window in windows}
    known: dict[str, dict[str, WindowFinding]] = {
        text: memory("findings", identity, question, text) for text in places
    }
    findings = {
        text: [of_window.get(claim.alone, WindowFinding()) for claim in claims]
        for text, of_window in known.items()
    }
    supported = {
        at
        for of_window in findings.values()
        for at, finding in enumerate(of_window)
        if finding.label is ClaimLabel.ENTAILMENT
    }
    recalled = sum(
        finding.label is not None for of_window in findings.values() for finding in of_window
    )
    # Those that lack the same claims are asked about together.
    lacking: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for text, of_window in findings.items():
        unknown = tuple(
            at
            for at, finding in enumerate(of_window)
            if finding.label is None and at not in supported
        )
        if unknown:
            lacking[unknown].append(text)
    new = yield from side_by_side(
        [
            check(_apart(claims, unknown), [places[text] for text in texts], question)
            for unknown, texts in lacking.items()
        ]
    )
    for (unknown, texts), answers in zip(lacking.items(), new, strict=True):
        for text, answered in zip(texts, answers, strict=True):
            for at, finding in zip(unknown, answered, strict=True):
                findings[text][at] = finding
                if finding.label is not None:
                    known[text][claims[at].alone] = finding
    return [findings[window_text(window)] for window in windows], recalled


def _apart(claims: Sequence[AskedClaim], chosen: Sequence[int]) -> list[AskedClaim]:
    """Some of the claims; one that has lost the claim before it is asked about as if alone."""
    return [
        claims[at] if at - 1 in chosen else AskedClaim(claims[at].alone, claims[at].alone)
        for at in chosen
    ]
