"""Show a claim with the text that it refers to, so that its "it" and "she" are understood.

A claim that is a unit of the answer itself may refer to the units before it. A judge that sees all
of them in order needs nothing more. A judge that is asked about one claim alone is shown the units
before it too, or the question if the claim is the first unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from demur._text import WORD_SIGNS, windows
from demur.evaluators.refchecker.languages import Language, likely, plain
from demur.evaluators.refchecker.units import Unit, units
from demur.schema import Claim, Sample

# How many units back a reference may lead, and how many tokens before the answer are searched.
_MOST_BACK = 3
_PRECEDING_TOKENS = 200
# A word that refers to the text before stands among the first words, or signs, of a sentence.
_FIRST = re.compile(rf"(?:[^{WORD_SIGNS}]*[{WORD_SIGNS}]+){{0,3}}[^{WORD_SIGNS}]*")
_FIRST_SIGNS = 4


@dataclass(frozen=True)
class AskedClaim:
    """Hold a claim as a judge is asked about it."""

    text: str
    """The text of the claim when it follows other claims in a list."""
    alone: str
    """The text of the claim when it stands alone, or first in a list."""


def refers(text: str) -> bool:
    """Return whether a text refers to what was said before it: "It was built in 1911."."""
    said = plain(text)
    return any(_refers(language, language.rewritten(said)) for language in likely(said))


def _refers(language: Language, text: str) -> bool:
    referring = language.pattern("words.referring", whole_words=True).search(text)
    first = _FIRST.match(text)
    latest = first.end() if language.spaced and first else _FIRST_SIGNS
    return referring is not None and referring.start() <= latest


def as_asked(claims: Sequence[Claim], sample: Sample) -> list[AskedClaim]:
    """Return the claims of a sample as a judge is asked about them, in their order."""
    answer_units = units(sample.answer)
    at = {unit.start: number for number, unit in enumerate(answer_units)}
    before = said_before(sample) or ([sample.question] if sample.question else [])
    asked_claims: list[AskedClaim] = []
    last: int | None = None
    for claim in claims:
        number = at.get(claim.span.start) if claim.span and not claim.triplet else None
        if number is None or answer_units[number].text != claim.text:
            asked_claims.append(AskedClaim(claim.text, claim.text))
            last = None
            continue
        alone = " ".join([*_leading(answer_units, number, before), claim.text])
        follows = last is not None and last == number - 1
        asked_claims.append(AskedClaim(claim.text if follows else alone, alone))
        last = number
    return asked_claims


def apart(claims: Sequence[AskedClaim], chosen: Sequence[int]) -> list[AskedClaim]:
    """Return some of the claims; a claim without its predecessor is asked about as if alone."""
    return [
        claims[at] if at - 1 in chosen else AskedClaim(claims[at].alone, claims[at].alone)
        for at in chosen
    ]


def said_before(sample: Sample) -> list[str]:
    """Return the last units of the text that precedes the answer, in order."""
    text = sample.preceding
    tail = windows(text, _PRECEDING_TOKENS, _PRECEDING_TOKENS // 2)[-1:]
    return [unit.said for start, end in tail for unit in units(text[start:end])]


def _leading(answer_units: Sequence[Unit], number: int, before: Sequence[str]) -> list[str]:
    """Return the earlier units that a unit refers to, in order."""
    if answer_units[number].kind not in ("sentence", "item"):
        return []
    texts = [*before, *(unit.said for unit in answer_units[:number])]
    leading: list[str] = []
    text = answer_units[number].text
    while texts and len(leading) < _MOST_BACK and refers(text):
        text = texts.pop()
        leading.insert(0, text)
    return leading
