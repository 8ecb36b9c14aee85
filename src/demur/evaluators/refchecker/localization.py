"""Find where an answer makes a claim, and which sentences of a reference decide it.

Both searches are lexical: they choose the sentences that share the most words with the claim. Rare
words count more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.documents import Document

from demur._text import sentences, word_set, words
from demur.evaluators.refchecker.content_words import content_words
from demur.evaluators.refchecker.references import Passage, Window
from demur.schema import Claim, ClaimLabel, Evidence, Span

# A word in more sentences than this is ignored, unless all words are that common.
_COMMON = 200
# The weight of a word that stands in one sentence. Weights are whole numbers, since the sum of
# fractions would depend on the order of a set, which differs between processes.
_WHOLE = math.lcm(*range(1, 25))
# The most sentences that are quoted for a claim, and the least weight of each, in tenths of the
# best one's. Both were chosen on half of WiCE (docs/results.md, Quotes).
_MOST_QUOTES, _LEAST_TENTHS = 3, 6
# A word that only holds a sentence together counts a tenth. It decides if nothing else does: for
# "Oslo has rivers", between "Oslo has one river" and "Oslo is large". A line of one word counts a
# tenth too, since the name of a page says nothing about the page.
_LITTLE = 10


@dataclass(frozen=True)
class Sentence:
    """Hold a sentence and its place in the original string."""

    context: int | None
    """The index of the context, or None for an answer or `Sample.reference`."""
    start: int
    """The sentence's offset in the original string."""
    text: str


@dataclass(frozen=True)
class Index:
    """Hold sentences and, for each word, the numbers of the sentences that contain it."""

    sentences: tuple[Sentence, ...]
    by_word: Mapping[str, Sequence[int]]


def index(passages: Iterable[Passage]) -> Index:
    """Index the sentences of the passages for a search."""
    return index_sentences(
        Sentence(passage.context, passage.start + start, passage.text[start:end])
        for passage in passages
        if not passage.worked_out
        for start, end in sentences(passage.text)
    )


def index_sentences(listed: Iterable[Sentence]) -> Index:
    """Index sentences for a search."""
    indexed = tuple(listed)
    by_word: dict[str, list[int]] = defaultdict(list)
    for at, sentence in enumerate(indexed):
        for word in word_set(sentence.text):
            by_word[word].append(at)
    return Index(indexed, by_word)


def locate(claim: str, answer: Index) -> Span | None:
    """Return where an answer says `claim`: from its first word to its last in the best sentence.

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
    """Return the sentences that decide about `claim`, at most three, the best first.

    Each further sentence has at least 0.6 of the best sentence's weight, and contains a word of the
    claim that the earlier sentences lack. Words such as "the" and "was" count little, and do not
    bring in a further sentence. Lines of one word, such as titles, count little too.

    Returns:
        The sentences as evidence; empty if no sentence shares a word with the claim.
    """
    return tuple(_quote(sentence, label) for sentence in _deciding(claim, references))


def nearest_quote(claim: Claim, contexts: Sequence[Document]) -> Evidence | None:
    """Return the quote that decided about a claim, else the nearest sentence if any is near."""
    texts = (Passage(at, 0, one.page_content) for at, one in enumerate(contexts))
    label = claim.label or ClaimLabel.NEUTRAL
    return next(iter(claim.evidence or find_evidence(claim.text, index(texts), label)), None)


def with_quotes(
    claims: Sequence[str], windows: Sequence[tuple[Window, ...]], of_several: bool
) -> list[tuple[Window, ...]]:
    """Return each claim's windows, and behind them a window of the sentences that decide about it.

    These are the sentences that `find_evidence` finds in the windows, in their order. A claim that
    shares no word with its windows gets no further one.

    Args:
        claims: The claims, as texts that can be understood alone.
        windows: The windows of each claim.
        of_several: Whether a claim with several windows gets one too.
    """
    # Claims about short references have the same windows.
    indexed = {
        of_claim: index(dict.fromkeys(passage for window in of_claim for passage in window))
        for of_claim in dict.fromkeys(windows)
        if of_several or len(of_claim) == 1
    }
    found = []
    for claim, of_claim in zip(claims, windows, strict=True):
        deciding = _deciding(claim, indexed[of_claim]) if of_claim in indexed else ()
        quoted = sorted(
            (Passage(one.context, one.start, one.text) for one in deciding),
            key=lambda passage: (passage.context is None, passage.context, passage.start),
        )
        found.append((*of_claim, tuple(quoted)) if quoted else of_claim)
    return found


def _deciding(claim: str, references: Index) -> list[Sentence]:
    telling = content_words(claim)
    holding = _holding(word_set(claim), references)
    if not holding:
        return []
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
    return [references.sentences[at] for at in chosen]


def _quote(sentence: Sentence, label: ClaimLabel) -> Evidence:
    span = Span(start=sentence.start, end=sentence.start + len(sentence.text))
    return Evidence(context=sentence.context, span=span, text=sentence.text, label=label)


def _holding(wanted: frozenset[str], indexed: Index) -> Mapping[str, Sequence[int]]:
    """Map each word that distinguishes sentences to the numbers of those that contain it."""
    holding = {word: indexed.by_word[word] for word in wanted if word in indexed.by_word}
    rare = {word: places for word, places in holding.items() if len(places) <= _COMMON}
    return rare or holding


def _weights(
    holding: Mapping[str, Sequence[int]], telling: frozenset[str], indexed: Index
) -> list[int]:
    """Return the weight of each sentence; words that are not in `telling` count little."""
    weights = [0] * len(indexed.sentences)
    for word, places in holding.items():
        weight = _WHOLE // len(places) // (1 if word in telling else _LITTLE)
        for at in places:
            weights[at] += weight
    return weights
