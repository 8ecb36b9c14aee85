"""Find claims that the references disagree about: one supports a claim, another contradicts it.

A judge that reads all references together supports a claim that one of them makes. So the texts
nearest to the claim are read one by one. But a text about another product, place or year seems to
contradict the claim as well. Three things tell it apart: whether it answers the question, how far
the judge that read all texts together saw a contradiction, and how many of the claim's words it
has.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

from langchain_core.documents import Document
from pydantic import TypeAdapter, ValidationError

from demur.evaluators.refchecker.checking import Checker, WindowFinding
from demur.evaluators.refchecker.content_words import beginnings
from demur.evaluators.refchecker.context import AskedClaim
from demur.evaluators.refchecker.letters import other_letters
from demur.evaluators.refchecker.localization import find_evidence, index
from demur.evaluators.refchecker.nearness import nearest
from demur.evaluators.refchecker.operands import telling
from demur.evaluators.refchecker.references import Window, window_text
from demur.runtime import Steps
from demur.schema import ClaimLabel, Evidence, Sample
from demur.shapes import is_users

IfContested = Literal["ignore", "mark", "fail"]

_MOST_APART = 3
# The limits were chosen on 280 pairs of texts, and measured on 160 others (docs/results.md).
_SEEN_TOGETHER = 0.02
"""The least probability of Contradiction, over all texts, from which a claim is read apart."""
_SUPPORTED, _CONTRADICTED = 0.25, 0.5
"""The least probabilities of Entailment and of Contradiction in the two texts that disagree."""
_OF_WORDS, _LEAST = 8.0, 2.5
"""The weight of the share of the claim's words, and the least sum with the two log odds."""
_SURE = 0.998  # so that no reading decides alone
_ANSWERS = "This text answers the question: {}"


@dataclass(frozen=True)
class Dispute:
    """Hold the two texts that disagree about a claim, and what a judge finds in each alone."""

    supporting: Window
    contradicting: Window
    findings: tuple[WindowFinding, WindowFinding]

    def quotes(self, claim: str) -> list[Evidence]:
        """Return what each of the texts says of a claim."""
        return [
            *find_evidence(claim, index(self.supporting), ClaimLabel.ENTAILMENT),
            *find_evidence(claim, index(self.contradicting), ClaimLabel.CONTRADICTION),
        ]


Apart = Sequence[tuple[Window, WindowFinding]]
"""What a judge finds in each text alone."""


def find_disputes(
    claims: Sequence[AskedClaim],
    together: Sequence[Sequence[WindowFinding]],
    sample: Sample,
    size: int,
    check: Checker,
) -> Steps[list[Dispute | str | None]]:
    """Find for each claim which of the references disagree about it.

    A claim that the judge surely supports costs nothing. Any other claim costs up to three
    requests, one for each text that is nearest to it, and one more if such a text contradicts it.

    Args:
        claims: The claims, each with a label.
        together: For each claim, what the judge found in all references.
        sample: The sample with its references. Without a question, nothing is found.
        size: The most tokens of a text that is read.
        check: Labels claims by probabilities.

    Returns:
        For each claim, the references that disagree about it. Or the error of a reading, without
        which nobody knows. None if no references disagree, as far as they are read.
    """
    if not (sample.question or "").strip():
        return [None] * len(claims)
    doubtful = {
        at: windows
        for at, findings in enumerate(together)
        if _share(findings, ClaimLabel.CONTRADICTION) >= _SEEN_TOGETHER
        and (windows := _nearest_apart(claims[at].alone, sample, size))
    }
    apart = yield from _read_apart(claims, doubtful, sample, check)
    found: list[Dispute | str | None] = [None] * len(claims)
    for at, of in apart.items():
        unread = (finding.error for _, finding in of if finding.error)
        found[at] = next(unread, None) or _opposed(of, together[at])
    against = {one.contradicting: None for one in found if isinstance(one, Dispute)}
    answering = yield from _read_for_answers([*against], sample, check)
    for at, pair in enumerate(found):
        if isinstance(pair, Dispute):
            answer = answering[pair.contradicting]
            same = _same_matter(claims[at], pair, together[at], answer)
            found[at] = answer.error or (pair if same else None)
    return found


def _read_apart(
    claims: Sequence[AskedClaim],
    doubtful: Mapping[int, tuple[Window, ...]],
    sample: Sample,
    check: Checker,
) -> Steps[dict[int, Apart]]:
    """Read the windows of each doubtful claim one by one; claims are given by their indices."""
    read: dict[tuple[Window, ...], list[int]] = defaultdict(list)
    for at, windows in doubtful.items():
        read[windows].append(at)
    groups = [([claims[at] for at in of], windows) for windows, of in read.items()]
    answers = yield from check(groups, sample.question)
    return {
        at: list(zip(windows, findings, strict=True))
        for (windows, of), answered in zip(read.items(), answers, strict=True)
        for at, findings in zip(of, zip(*answered, strict=True), strict=True)
    }


def _read_for_answers(
    windows: Sequence[Window], sample: Sample, check: Checker
) -> Steps[dict[Window, WindowFinding]]:
    """Judge for each window whether it answers the question."""
    statement = _ANSWERS.format((sample.question or "").strip().rstrip("?？؟"))
    groups = [([AskedClaim(statement, statement)], windows)] if windows else []
    answers = yield from check(groups, sample.question)
    return {
        window: finding
        for answered in answers
        for window, (finding,) in zip(windows, answered, strict=True)
    }


def _nearest_apart(claim: str, sample: Sample, size: int) -> tuple[Window, ...]:
    """Return the nearest text of each reference, the nearest three; none if there is only one.

    What the user said is no source.
    """
    texts: dict[str, int | None] = {}
    for at, document in enumerate(sample.contexts):
        if not is_users(document):
            texts.setdefault(document.page_content, at)
    if sample.reference is not None:
        texts.setdefault(sample.reference, None)
    wanted = beginnings(claim)
    near: list[tuple[int, Window]] = []
    for text, context in texts.items():
        for window in nearest([claim], {text: context}, size, 1, sample.question)[0].windows:
            shared = len(wanted & beginnings(window_text(window)))
            if shared and not other_letters(claim, window_text(window)):
                near.append((shared, window))
    near.sort(key=lambda of: -of[0])
    return tuple(window for _, window in near[:_MOST_APART]) if len(near) > 1 else ()


def _opposed(apart: Apart, together: Sequence[WindowFinding]) -> Dispute | None:
    """Return the texts that support and contradict a claim most, if they do."""
    for_it = max(apart, key=lambda of: _share([of[1]], ClaimLabel.ENTAILMENT))
    others = [of for of in apart if of is not for_it]
    against = max(others, key=lambda of: _share([of[1]], ClaimLabel.CONTRADICTION))
    supported = any(one.label is ClaimLabel.ENTAILMENT for one in (for_it[1], *together))
    if (
        supported
        and against[1].label is ClaimLabel.CONTRADICTION
        and _share([for_it[1]], ClaimLabel.ENTAILMENT) >= _SUPPORTED
        and _share([against[1]], ClaimLabel.CONTRADICTION) >= _CONTRADICTED
    ):
        return Dispute(for_it[0], against[0], (for_it[1], against[1]))
    return None


def _same_matter(
    claim: AskedClaim,
    pair: Dispute,
    together: Sequence[WindowFinding],
    answering: WindowFinding,
) -> bool:
    """Return whether the text that contradicts a claim is about the same thing."""
    seen = _log_odds(_share(together, ClaimLabel.CONTRADICTION))
    answers = _log_odds(_share([answering], ClaimLabel.ENTAILMENT))
    words = telling(claim.text)
    had = words & telling(window_text(pair.contradicting))
    return seen + answers + _OF_WORDS * len(had) / max(1, len(words)) >= _LEAST


# -- What decides ----------------------------------------------------------------------------------


def counting(
    dispute: Dispute, sample: Sample, if_contested: IfContested, newest_by: str | None
) -> tuple[Window, WindowFinding] | None:
    """Return the text, and what a judge finds in it, that alone decides about a contested claim.

    Args:
        dispute: The texts that disagree.
        sample: The sample with its references.
        if_contested: "fail": the text that contradicts decides.
        newest_by: The key of the metadata that has a reference's date, of which the later decides.

    Returns:
        The text and the finding; None if all references decide, as for any other claim.
    """
    newer = None
    if newest_by is not None:
        before = _date(dispute.supporting, sample.contexts, newest_by)
        after = _date(dispute.contradicting, sample.contexts, newest_by)
        if before is not None and after is not None and before != after:
            newer = dispute.contradicting if after > before else dispute.supporting
    if newer is dispute.contradicting or (newer is None and if_contested == "fail"):
        return dispute.contradicting, dispute.findings[1]
    # Where the newer text alone is not enough, all texts together support the claim.
    if newer is not None and dispute.findings[0].label is ClaimLabel.ENTAILMENT:
        return newer, dispute.findings[0]
    return None


_DATE = TypeAdapter(datetime)
_LEAST_SECONDS = 1e8  # a lesser number is no time in seconds, but a year, or 20250301


def _date(window: Window, contexts: Sequence[Document], key: str) -> datetime | None:
    at = window[0].context
    value = None if at is None else contexts[at].metadata.get(key)
    if (isinstance(value, str) and value.isdigit()) or (
        isinstance(value, (int, float)) and value < _LEAST_SECONDS
    ):
        return None
    try:
        read = _DATE.validate_python(value)
    except ValidationError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=timezone.utc)


# -- Probabilities ---------------------------------------------------------------------------------


def _share(findings: Sequence[WindowFinding], label: ClaimLabel) -> float:
    """Return the greatest probability of a label; 0 if none is known."""
    return max((one.probabilities[label] for one in findings if one.probabilities), default=0.0)


def _log_odds(share: float) -> float:
    share = min(max(share, 1 - _SURE), _SURE)
    return math.log(share / (1 - share))
