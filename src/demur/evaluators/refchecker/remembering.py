"""Remember what was learned within a guarded call, so that no request is paid for twice.

The call's scope (`demur.runtime.scope`) keeps the memory. Outside of a guarded call, nothing is
kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from demur._text import least_tokens
from demur.evaluators.refchecker.checking import Checker, WindowFinding
from demur.evaluators.refchecker.context import AskedClaim
from demur.evaluators.refchecker.nearness import Chosen, Cut, Read, cut, nearest
from demur.evaluators.refchecker.references import (
    Passage,
    Window,
    pack_again,
    passages,
    window_text,
)
from demur.runtime import Steps, current_scope
from demur.schema import ClaimLabel, Sample

# References that fill this many windows are read whole. With two, documents that a second attempt
# adds do not change how those of the first attempt are read.
_READ_WHOLE = 2
_OVERLAP = 8  # neighbouring windows of a text that is read whole share an eighth of their size


class Same:
    """Identify one particular object as a key.

    The key holds the object, so that no other object can get its `id` in the meantime.
    """

    def __init__(self, held: object) -> None:
        self._held = held

    def __hash__(self) -> int:
        return id(self._held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._held is other._held


def memory(*key: Hashable) -> dict[Any, Any]:
    """Return what the guarded call keeps under a key, or a new dict outside of a guarded call."""
    scope = current_scope()
    return {} if scope is None else scope.known.setdefault(("refchecker", *key), {})


def remembered_cut(text: str, length: int) -> Cut:
    """Cut a text as `cut` does, but only once in a guarded call."""
    known = memory("cuts", length)
    if text not in known:
        known[text] = cut(text, length)
    found: Cut = known[text]
    return found


def choose(claims: Sequence[str], sample: Sample, size: int, most: int, lone: bool) -> Chosen:
    """Choose the windows that claims are checked against: all, or for long references the nearest.

    A claim that was checked against windows earlier in this guarded call keeps them as long as
    their texts are still among the references.

    Args:
        claims: The claims, as texts that can be understood alone.
        sample: The sample with its references.
        size: The size of a window, in tokens.
        most: The most windows that a claim is checked against, besides those that it keeps.
        lone: Whether each passage is a window of its own.
    """
    of_context: dict[int | None, str] = {
        at: document.page_content for at, document in enumerate(sample.contexts)
    }
    if sample.reference is not None:
        of_context[None] = sample.reference
    texts: dict[str, int | None] = {}
    for at, text in of_context.items():
        texts.setdefault(text, at)
    earlier: dict[str, _Earlier] = memory("read", size, most, lone)
    whole = _whole(sample, size, most, lone)
    if whole is None:
        found = {claim: _now(earlier[claim], texts) for claim in claims if claim in earlier}
        read = {claim: windows for claim, windows in found.items() if windows is not None}
        chosen = nearest(claims, texts, size, most, sample.question, lone, remembered_cut, read)
    else:
        chosen = Chosen([whole] * len(claims), [0] * len(claims))
    together = frozenset(texts)
    for claim, windows in zip(claims, chosen.windows, strict=True):
        standing = [[(of_context[one.context], one) for one in window] for window in windows]
        earlier[claim] = _Earlier(standing, together)
    return chosen


def _whole(sample: Sample, size: int, most: int, lone: bool) -> tuple[Window, ...] | None:
    """Return windows of all references, or None if they fill more windows than are read whole."""
    texts = {document.page_content for document in sample.contexts} | {sample.reference or ""}
    limit = max(most, _READ_WHOLE)
    if any(total > limit * size for total in accumulate(map(least_tokens, texts))):
        return None
    pieces = passages(sample.contexts, sample.reference, size, size // _OVERLAP)
    known: dict[tuple[str, ...], None] = memory("windows", size)
    # A cross-encoder judges a single passage better.
    packed = [(piece,) for piece in pieces] if lone else pack_again(pieces, size, list(known))
    if len(set(map(window_text, packed))) > limit:
        return None
    known.update(dict.fromkeys(tuple(piece.text for piece in window) for window in packed))
    return tuple(packed)


@dataclass(frozen=True)
class _Earlier:
    """Hold the windows that a claim was checked against at an earlier time."""

    windows: Sequence[Sequence[tuple[str, Passage]]]
    """Each passage, with the reference that it stands in."""
    texts: frozenset[str]
    """The references at that time."""


def _now(earlier: _Earlier, texts: Mapping[str, int | None]) -> Read | None:
    """Return a claim's earlier windows with present indices, or None if a text of them is gone."""
    if any(text not in texts for window in earlier.windows for text, _ in window):
        return None
    windows = [
        tuple(replace(passage, context=texts[text]) for text, passage in window)
        for window in earlier.windows
    ]
    return Read(tuple(windows), earlier.texts)


@dataclass(frozen=True)
class Recalled:
    """Hold the known findings about claims and windows, and list the missing ones."""

    findings: list[dict[str, WindowFinding]]
    """For each claim, its findings by the text of the window."""
    lacking: Mapping[tuple[int, ...], list[Window]]
    """Groups of claims that have to be asked about together, as indices, each with the windows to
    check them against."""
    count: int
    """The number of labels that are known."""


def recall(
    identity: Hashable,
    claims: Sequence[AskedClaim],
    windows: Sequence[Sequence[Window]],
    question: str | None,
) -> Recalled:
    """Return the findings that are already known about claims and their windows.

    A claim that one window is known to support needs no other window. Its findings there have
    neither label nor error.

    Args:
        identity: A key for the checker and the way it asks. Only findings of the same checker are
            known.
        claims: The claims.
        windows: The windows that each claim is checked against. Windows with equal text, as of a
            document that was found twice, are asked about once.
        question: The question that was answered.
    """
    windows_by_text: dict[str, Window] = {}
    lacking_claims: dict[str, list[int]] = defaultdict(list)
    findings: list[dict[str, WindowFinding]] = []
    count = 0
    for at, (claim, of_claim) in enumerate(zip(claims, windows, strict=True)):
        texts = {window_text(window): window for window in of_claim}
        windows_by_text |= texts
        known = {
            text: memory("findings", identity, question, text).get(claim.alone, WindowFinding())
            for text in texts
        }
        findings.append(known)
        labels = [finding.label for finding in known.values() if finding.label is not None]
        count += len(labels)
        if ClaimLabel.ENTAILMENT not in labels:
            for text, finding in known.items():
                if finding.label is None:
                    lacking_claims[text].append(at)
    lacking: dict[tuple[int, ...], list[Window]] = defaultdict(list)
    for text, unknown in lacking_claims.items():
        lacking[tuple(unknown)].append(windows_by_text[text])
    return Recalled(findings, lacking, count)


def check_lacking(
    check: Checker,
    identity: Hashable,
    claims: Sequence[AskedClaim],
    windows: Sequence[Sequence[Window]],
    question: str | None,
    recalled: Recalled,
) -> Steps[list[list[WindowFinding]]]:
    """Check the missing claims and windows, and remember the findings.

    Args:
        check: The checker.
        identity: The argument of `recall`, as are the next three.
        claims: The claims.
        windows: The windows that each claim is checked against.
        question: The question that was answered.
        recalled: The result of `recall`.

    Returns:
        For each claim, the finding of each of its windows.
    """
    groups = [(apart(claims, unknown), lacking) for unknown, lacking in recalled.lacking.items()]
    new = yield from check(groups, question)
    for (unknown, lacking), answers in zip(recalled.lacking.items(), new, strict=True):
        for window, answered in zip(lacking, answers, strict=True):
            text = window_text(window)
            for at, finding in zip(unknown, answered, strict=True):
                recalled.findings[at][text] = finding
                if finding.label is not None:
                    memory("findings", identity, question, text)[claims[at].alone] = finding
    return [
        [found[window_text(window)] for window in of_claim]
        for found, of_claim in zip(recalled.findings, windows, strict=True)
    ]


def apart(claims: Sequence[AskedClaim], chosen: Sequence[int]) -> list[AskedClaim]:
    """Return some of the claims; a claim without its predecessor is asked about as if alone."""
    return [
        claims[at] if at - 1 in chosen else AskedClaim(claims[at].alone, claims[at].alone)
        for at in chosen
    ]
