"""Find where an answer makes a claim, and which sentence of a reference decides it.

Both are lexical: the sentence that shares the most of the claim's words, rare words counting more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from demur._text import sentences, word_set, words
from demur.evaluators.refchecker.references import Passage
from demur.schema import ClaimLabel, Evidence, Span

# A word that stands in more sentences than this tells nothing, unless there is no other.
_COMMON = 200
# The weight of a word that stands in one sentence. Whole numbers, since the sum of fractions would
# depend on a set's order, which differs from process to process.
_WHOLE = math.lcm(*range(1, 25))


@dataclass(frozen=True)
class Sentence:
    """A sentence of an original string, indexed by its words."""

    context: int | None
    """Index of the context it stands in, None for an answer or `Sample.reference`."""
    start: int
    """Where it begins in the original string."""
    text: str


@dataclass(frozen=True)
class Index:
    """Sentences, and for each word those that hold it."""

    sentences: tuple[Sentence, ...]
    by_word: Mapping[str, Sequence[int]]


def index(passages: Iterable[Passage]) -> Index:
    """The sentences of the passages, ready to be searched."""
    return index_sentences(
        Sentence(passage.context, passage.start + start, passage.text[start:end])
        for passage in passages
        for start, end in sentences(passage.text)
    )


def index_sentences(listed: Iterable[Sentence]) -> Index:
    """Sentences, ready to be searched."""
    indexed = tuple(listed)
    by_word: dict[str, list[int]] = defaultdict(list)
    for at, sentence in enumerate(indexed):
        for word in word_set(sentence.text):
            by_word[word].append(at)
    return Index(indexed, by_word)


def locate(claim: str, answer: Index) -> Span | None:
    """Where an answer says `claim`: from its first word to its last in the best sentence.

    Returns:
        Offsets into the answer, or None if no sentence shares a word with the claim.
    """
    wanted = word_set(claim)
    best = _best(wanted, answer)
    if best is None:
        return None
    spans = [(start, end) for word, start, end in words(best.text) if word in wanted]
    return Span(start=best.start + spans[0][0], end=best.start + spans[-1][1])


def find_evidence(claim: str, references: Index, label: ClaimLabel) -> Evidence | None:
    """The sentence that bears on `claim`, or None if none shares a word with it."""
    best = _best(word_set(claim), references)
    if best is None:
        return None
    span = Span(start=best.start, end=best.start + len(best.text))
    return Evidence(context=best.context, span=span, text=best.text, label=label)


def _best(wanted: frozenset[str], indexed: Index) -> Sentence | None:
    holding = [indexed.by_word[word] for word in wanted if word in indexed.by_word]
    telling = [places for places in holding if len(places) <= _COMMON] or holding
    if not telling:
        return None
    weights = [0] * len(indexed.sentences)
    for places in telling:
        weight = _WHOLE // len(places)
        for at in places:
            weights[at] += weight
    return indexed.sentences[weights.index(max(weights))]
