"""Find where an answer makes a claim, and which sentence of a reference decides it.

Both are lexical: the sentence that shares the most of the claim's words, rare words counting more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from demur.evaluators.refchecker.references import Passage
from demur.schema import ClaimLabel, Evidence, Span
from demur.text import sentences, words

# A word that stands in more sentences than this tells nothing, unless there is no other.
_COMMON = 200


@dataclass(frozen=True)
class Sentence:
    """A sentence of an original string, indexed by its words."""

    context: int | None
    """Index of the context it stands in, None for an answer or `Sample.reference`."""
    start: int
    """Where it begins in the original string."""
    text: str


def word_set(text: str) -> frozenset[str]:
    """The different words of `text`, case-folded."""
    return frozenset(word for word, _, _ in words(text))


@dataclass(frozen=True)
class Index:
    """Sentences, and for each word those that hold it."""

    sentences: tuple[Sentence, ...]
    by_word: Mapping[str, Sequence[int]]


def index(passages: Iterable[Passage]) -> Index:
    """The sentences of the passages, ready to be searched."""
    found = tuple(
        Sentence(passage.context, passage.start + start, passage.text[start:end])
        for passage in passages
        for start, end in sentences(passage.text)
    )
    by_word: dict[str, list[int]] = defaultdict(list)
    for at, sentence in enumerate(found):
        for word in word_set(sentence.text):
            by_word[word].append(at)
    return Index(found, by_word)


def locate(claim: str, answer: Index) -> Span | None:
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


def find_evidence(claim: str, references: Index, label: ClaimLabel) -> Evidence | None:
    """The sentence that bears on `claim`, or None if none shares a word with it."""
    best = _best(word_set(claim), references)
    if best is None:
        return None
    span = Span(start=best.start, end=best.start + len(best.text))
    return Evidence(context=best.context, span=span, text=best.text, label=label)


def _best(wanted: frozenset[str], indexed: Index) -> Sentence | None:
    holding = [indexed.by_word[word] for word in wanted if word in indexed.by_word]
    telling = [found for found in holding if len(found) <= _COMMON] or holding
    weights: dict[int, list[float]] = defaultdict(list)
    for found in telling:
        for at in found:
            weights[at].append(1 / len(found))
    if not weights:
        return None
    # fsum: a plain sum depends on a set's order, which differs from process to process.
    return indexed.sentences[max(sorted(weights), key=lambda at: math.fsum(weights[at]))]
