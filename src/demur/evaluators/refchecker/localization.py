"""Find where an answer makes a claim, and which sentences of a reference decide it.

Both are lexical: the sentences that share the most of the claim's words, rare words counting more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from demur._text import sentences, word_set, words
from demur.evaluators.refchecker.assertion import content_words
from demur.evaluators.refchecker.references import Passage
from demur.schema import ClaimLabel, Evidence, Span

# A word that stands in more sentences than this tells nothing, unless there is no other.
_COMMON = 200
# The weight of a word that stands in one sentence. Whole numbers, since the sum of fractions would
# depend on a set's order, which differs from process to process.
_WHOLE = math.lcm(*range(1, 25))
# How many sentences are quoted for a claim, and how much each weighs at least, in tenths of the
# best. Both were chosen on half of WiCE (docs/results.md, Quotes).
_MOST_QUOTES, _LEAST_TENTHS = 3, 6
# What a word that only holds a sentence together counts: one part in ten. It decides where nothing
# else does, such as between "Oslo has one river" and "Oslo is large" for "Oslo has rivers". So much
# counts a line of one word, too: the name of a page says nothing of it.
_LITTLE = 10


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
    holding = _holding(wanted, answer)
    if not holding:
        return None
    weights = _weights(holding, wanted, answer)
    best = answer.sentences[weights.index(max(weights))]
    spans = [(start, end) for word, start, end in words(best.text) if word in wanted]
    return Span(start=best.start + spans[0][0], end=best.start + spans[-1][1])


def find_evidence(claim: str, references: Index, label: ClaimLabel) -> tuple[Evidence, ...]:
    """Return the sentences that bear on `claim`, at most three, the best first.

    Each further sentence weighs at least 0.6 of the best, and holds a word of the claim that the
    sentences before it lack. Words such as "the" and "was" count little, and bring in no further
    sentence; so do lines of one word, such as titles.

    Returns:
        Nothing if no sentence shares a word with the claim.
    """
    telling = content_words(claim)
    holding = _holding(word_set(claim), references)
    if not holding:
        return ()
    weights = _weights(holding, telling, references)
    for at, sentence in enumerate(references.sentences):
        if weights[at] and sentence.text.isascii() and " " not in sentence.text:
            weights[at] //= _LITTLE
    chosen = [weights.index(max(weights))]
    lacking = [places for word, places in holding.items() if word in telling]
    while len(chosen) < _MOST_QUOTES:
        lacking = [places for places in lacking if chosen[-1] not in places]
        least = weights[chosen[0]] * _LEAST_TENTHS
        further = {at for places in lacking for at in places if weights[at] * 10 >= least}
        if not further:
            break
        chosen.append(min(further, key=lambda at: (-weights[at], at)))
    return tuple(_quote(references.sentences[at], label) for at in chosen)


def _quote(sentence: Sentence, label: ClaimLabel) -> Evidence:
    span = Span(start=sentence.start, end=sentence.start + len(sentence.text))
    return Evidence(context=sentence.context, span=span, text=sentence.text, label=label)


def _holding(wanted: frozenset[str], indexed: Index) -> Mapping[str, Sequence[int]]:
    """For each word that tells sentences apart, those that hold it."""
    holding = {word: indexed.by_word[word] for word in wanted if word in indexed.by_word}
    rare = {word: places for word, places in holding.items() if len(places) <= _COMMON}
    return rare or holding


def _weights(
    holding: Mapping[str, Sequence[int]], telling: frozenset[str], indexed: Index
) -> list[int]:
    """The weight of each sentence: of its words, those that are not `telling` count little."""
    weights = [0] * len(indexed.sentences)
    for word, places in holding.items():
        weight = _WHOLE // len(places) // (1 if word in telling else _LITTLE)
        for at in places:
            weights[at] += weight
    return weights
