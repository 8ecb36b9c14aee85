"""Find where an answer makes a claim, and which sentence of a reference decides it.

Both are lexical: the sentence that shares the most of the claim's words, rare words counting more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from demur.evaluators.refchecker.references import Passage
from demur.schema import ClaimLabel, Evidence, Span
from demur.text import sentences, words


@dataclass(frozen=True)
class Sentence:
    """A sentence of an original string, indexed by its words."""

    context: int | None
    """Index of the context it stands in, None for an answer or `Sample.reference`."""
    start: int
    """Where it begins in the original string."""
    text: str
    words: frozenset[str]


def word_set(text: str) -> frozenset[str]:
    """The different words of `text`, case-folded."""
    return frozenset(word for word, _, _ in words(text))


def index(passages: Iterable[Passage]) -> list[Sentence]:
    """The sentences of the passages, ready to be searched."""
    return [
        Sentence(passage.context, passage.start + start, text, word_set(text))
        for passage in passages
        for start, end in sentences(passage.text)
        for text in [passage.text[start:end]]
    ]


def locate(claim: str, answer: Sequence[Sentence]) -> Span | None:
    """Where an answer says `claim`: from its first word to its last in the best sentence.

    Returns:
        Offsets into the answer, or None if no sentence shares a word with the claim.
    """
    wanted = word_set(claim)
    best = _best(wanted, answer)
    if best is None:
        return None
    found = [(start, end) for word, start, end in words(best.text) if word in wanted]
    return Span(start=best.start + found[0][0], end=best.start + found[-1][1])


def find_evidence(claim: str, references: Sequence[Sentence], label: ClaimLabel) -> Evidence | None:
    """The sentence that bears on `claim`, or None if none shares a word with it."""
    best = _best(word_set(claim), references)
    if best is None:
        return None
    span = Span(start=best.start, end=best.start + len(best.text))
    return Evidence(context=best.context, span=span, text=best.text, label=label)


def _best(wanted: frozenset[str], candidates: Sequence[Sentence]) -> Sentence | None:
    shared = [wanted & candidate.words for candidate in candidates]
    frequency = Counter(word for found in shared for word in found)
    # fsum: a plain sum depends on a set's order, which differs from process to process.
    scores = [math.fsum(1 / frequency[word] for word in found) for found in shared]
    if not any(scores):
        return None
    return candidates[max(range(len(scores)), key=scores.__getitem__)]
