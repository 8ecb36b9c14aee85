"""Find the statements of an answer that no extracted claim covers, and make claims of them.

The extractor nominates claims. The answer's own words decide whether the claims are complete.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from demur._text import word_set
from demur.evaluators.refchecker.assertion import (
    affirms,
    asks_openly,
    denies,
    is_marker,
    is_polite,
    only_asks,
    states_nothing,
)
from demur.evaluators.refchecker.content_words import content_words, is_number, too_short
from demur.evaluators.refchecker.context import refers, said_before
from demur.evaluators.refchecker.units import Unit, units
from demur.schema import Claim, Sample, Span

# The share of a unit's content words that its claims may leave out, as a paraphrase does.
_LEFT_OUT = 1 / 4
_STEM = 4
NEEDS_QUESTION = "says too little to be checked without its question: give the sample a question"


def stating(sample: Sample) -> list[Unit]:
    """Return the units of an answer that state something.

    An affirmation such as "Certainly!" does so if it answers a question of yes or no: one that
    stands right before it, or the sample's question if the answer is polite besides and says
    nothing else. An answer that is nothing but a marker of having none ("N/A") states nothing.
    """
    every, asked = units(sample.answer), sample.question or ""
    is_whole = len(every) == 1 and not sample.preceding.strip()
    if is_whole:
        texts = [*(one.page_content for one in sample.contexts), sample.reference or ""]
        marked = is_marker(every[0].said, asked, texts)
        if marked is not None and (marked or asked):
            return [] if marked else list(every)
    is_answer = is_whole and bool(asked.strip()) and not is_polite(asked)
    before = [next(reversed(said_before(sample)), ""), *(unit.said for unit in every)]
    found = [
        unit
        for unit, last in zip(every, before, strict=False)
        if not states_nothing(unit.said, asked, is_answer)
        or (affirms(unit.said) and only_asks(last) and not asks_openly(last))
    ]
    if found or not asked or is_polite(asked) or asks_openly(asked):
        return found
    polite = all(is_polite(unit.said) for unit in every)
    return [unit for unit in every if polite and affirms(unit.said)]


@dataclass(frozen=True)
class Complete:
    """Hold all claims of an answer: the nominated ones, and the statements that they leave out."""

    claims: tuple[Claim, ...]
    """The claims in the order of the answer."""
    unfit: tuple[Claim, ...] = ()
    """The claims that say too little to be checked, each with its error."""
    dropped: tuple[str, ...] = ()
    """The nominated claims about units that state nothing."""
    details: Mapping[str, Any] = field(default_factory=dict)


def complete(nominated: Sequence[Claim], sample: Sample, as_fallback: bool) -> Complete:
    """Complete an answer's claims so that each unit that states something is checked.

    Args:
        nominated: The claims that an extractor found, with their places in the answer.
        sample: The answer, its question, and the text that precedes it.
        as_fallback: Whether `details` lists the units that became claims themselves, and the share
            of the answer that the nominated claims cover.
    """
    answer_units = units(sample.answer)
    by_unit = _by_unit(answer_units, nominated)
    stated = stating(sample)
    dropped = dict.fromkeys(
        claim for unit in answer_units if unit not in stated for claim in by_unit[unit.start]
    )
    kept = [claim for claim in nominated if claim not in dropped]
    before = said_before(sample)
    is_answer = len(answer_units) == 1 and bool(sample.question) and not before
    own = [
        _as_claim(unit, sample.question, before, is_answer)
        for unit in stated
        if not _covers(by_unit[unit.start], unit)
    ]
    claims = [*kept, *(claim for claim in own if claim.error is None)]
    details: dict[str, Any] = {}
    if as_fallback:
        details["fallback_claims"] = [claim.text for claim in own]
        details["coverage"] = round(_share_covered(stated, by_unit), 4)
    return Complete(
        claims=tuple(sorted(claims, key=_place)),
        unfit=tuple(claim for claim in own if claim.error is not None),
        dropped=tuple(claim.text for claim in dropped),
        details=details,
    )


def _place(claim: Claim) -> int:
    return 0 if claim.span is None else claim.span.start


def _as_claim(unit: Unit, question: str | None, before: Sequence[str], is_answer: bool) -> Claim:
    """Return a unit of an answer as a claim, with its place.

    A unit that says too little by itself ("No.", "11 years", "Certainly.") gets the question in
    front of it, and so does a whole answer of a few words ("Blue Heron Air"). Without a question,
    and behind a unit that only asks, it gets the unit before it. If there is neither, the claim has
    an error. Code needs no such context, nor does a value that stands behind its path.
    """
    span = Span(start=unit.start, end=unit.end)
    if unit.kind == "code" or not (too_short(unit.text, is_answer) or affirms(unit.text)):
        return Claim(text=unit.text, span=span)
    last = unit.after or next(reversed(before), "")
    asked = last if only_asks(last) else (question or "").strip()
    leading = asked or last
    if leading or unit.kind in ("value", "row"):
        return Claim(text=f"{leading} {unit.text}".strip(), span=span)
    return Claim(text=unit.text, span=span, error=f"{unit.text!r:.100} {NEEDS_QUESTION}")


def _by_unit(answer_units: Sequence[Unit], claims: Sequence[Claim]) -> Mapping[int, list[Claim]]:
    """Return the claims whose spans begin in each unit, by the unit's offset."""
    starts = [unit.start for unit in answer_units]
    held: dict[int, list[Claim]] = {start: [] for start in starts}
    for claim in claims:
        at = bisect_right(starts, claim.span.start) - 1 if claim.span else -1
        if claim.span and at >= 0 and claim.span.start < answer_units[at].end:
            held[starts[at]].append(claim)
    # A repeated sentence is covered by the claims of its first occurrence.
    first: dict[str, Unit] = {}
    for unit in answer_units:
        same = first.setdefault(unit.said, unit)
        if not held[unit.start] and not refers(unit.said):
            held[unit.start] = held[same.start]
    return held


def _share_covered(stated: Sequence[Unit], by_unit: Mapping[int, Sequence[Claim]]) -> float:
    """Return the share of the units' characters that the spans of their claims cover, in [0, 1]."""
    covered = 0
    for unit in stated:
        reached = unit.start
        spans = sorted((c.span.start, c.span.end) for c in by_unit[unit.start] if c.span)
        for start, end in spans:
            covered += max(0, min(end, unit.end) - max(start, reached))
            reached = max(reached, min(end, unit.end))
    total = sum(unit.end - unit.start for unit in stated)
    return covered / total if total else 1.0


def _covers(claims: Sequence[Claim], unit: Unit) -> bool:
    """Return whether a unit's claims hold its numbers, its denial, and three quarters of its words.

    Code is never covered, since one other character makes it another program.
    """
    if not claims or unit.kind == "code":
        return False
    covering = " ".join(claim.text for claim in claims)
    if denies(unit.said) and not denies(covering):
        return False
    wanted, held = content_words(unit.said), word_set(covering)
    stems = {word[:_STEM] for word in held}
    missing = {word for word in wanted if word not in held and word[:_STEM] not in stems}
    if any(map(is_number, missing)):
        return False
    return len(missing) <= _LEFT_OUT * len(wanted)
