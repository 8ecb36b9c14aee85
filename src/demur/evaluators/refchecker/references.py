"""Cut what an answer is held against into windows that a checker can read at once.

Short references are read as a whole. Of long ones each claim is shown the passages nearest to it,
by the words they share, wherever they stand.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core.documents import Document

from demur._text import count_tokens, windows
from demur.evaluators.refchecker.assertion import content_words

# Of long references so many tokens are one passage, for nearness to tell where it stands.
_PASSAGE_TOKENS = 180
# For each claim there has to be room for so many passages in a window that several claims share.
_LEAST_PASSAGES = 2
# How much a word of the question counts, and how much nearness a passage has of the one beside it.
_OF_QUESTION, _OF_NEIGHBOUR = 0.5, 0.5
# A checker that sees one passage at a time is shown so many for each claim.
_LONE_PASSAGES = 4


@dataclass(frozen=True)
class Passage:
    """A stretch of one reference."""

    context: int | None
    """Index of the context, None for `Sample.reference`."""
    start: int
    """Where it begins in the original string; it goes on for `len(text)` characters."""
    text: str


Window = tuple[Passage, ...]
"""Passages that a checker reads together."""


def passages(
    contexts: Sequence[Document], reference: str | None, size: int, overlap: int
) -> list[Passage]:
    """All references as passages of at most `size` tokens; blank ones have none."""
    texts: list[tuple[int | None, str]] = [
        (at, document.page_content) for at, document in enumerate(contexts)
    ]
    if reference is not None:
        texts.append((None, reference))
    return [
        Passage(at, start, text[start:end])
        for at, text in texts
        for start, end in windows(text, size, overlap)
    ]


def pack(pieces: Sequence[Passage], size: int) -> list[Window]:
    """Put short passages together, in order, into windows of at most `size` tokens."""
    if sum(len(passage.text) for passage in pieces) <= size:
        return [tuple(pieces)] if pieces else []  # no token is shorter than a sign
    packed: list[Window] = []
    current: Window = ()
    total = 0
    for passage in pieces:
        tokens = count_tokens(passage.text)
        if current and total + tokens > size:
            packed.append(current)
            current, total = (), 0
        current, total = (*current, passage), total + tokens
    return [*packed, current] if current else packed


def pack_again(
    pieces: Sequence[Passage], size: int, earlier: Sequence[Sequence[str]]
) -> list[Window]:
    """As `pack`, but passages that were packed together before stay together.

    Args:
        pieces: The passages.
        size: Of a window, in tokens.
        earlier: The texts of earlier windows of this size. One is kept if all of it is there.

    Returns:
        The windows that were kept, then those of the other passages.
    """
    by_text: dict[str, deque[Passage]] = defaultdict(deque)
    for passage in pieces:
        by_text[passage.text].append(passage)
    kept: list[Window] = []
    for texts in earlier:
        if all(len(by_text[text]) >= count for text, count in Counter(texts).items()):
            kept.append(tuple(by_text[text].popleft() for text in texts))
    left = set().union(*by_text.values())
    return [*kept, *pack([passage for passage in pieces if passage in left], size)]


@dataclass(frozen=True)
class Reading:
    """Claims, and the windows that they are held against."""

    claims: tuple[int, ...]
    """By number."""
    windows: tuple[Window, ...]


def nearest(
    claims: Sequence[str],
    contexts: Sequence[Document],
    reference: str | None,
    size: int,
    question: str | None = None,
    lone: bool = False,
) -> list[Reading]:
    """Choose what each claim is shown of references that are longer than a window.

    A claim that shares no telling word with any passage, as in another language, is shown all.

    Args:
        claims: As texts that can be understood alone.
        contexts: The references.
        reference: One more, if there is one.
        size: Of a window, in tokens.
        question: The one that was answered; its words count half.
        lone: Whether each passage is a window of its own.

    Returns:
        Each claim in one reading, claims that stand together in the order of the claims.
    """
    length = size if lone else min(size, _PASSAGE_TOKENS)
    pieces = passages(contexts, reference, length, 0)
    by_word = _passages_by_word(pieces)
    of_question = dict.fromkeys(content_words(question or ""), _OF_QUESTION)
    ranked = []
    for claim in claims:
        weights = dict.fromkeys(content_words(claim), 1.0)
        ranked.append(_ranked({**of_question, **weights} if weights else {}, by_word, pieces))
    blind = tuple(at for at, order in enumerate(ranked) if not order)
    sighted = [at for at, order in enumerate(ranked) if order]
    at_once = 1 if lone else max(1, size // length // _LEAST_PASSAGES)
    readings: list[Reading] = []
    shown: list[Window]
    for first in range(0, len(sighted), at_once):
        group = tuple(sighted[first : first + at_once])
        orders = [ranked[at] for at in group]
        if lone:
            shown = [(pieces[place],) for place in orders[0][:_LONE_PASSAGES]]
        else:
            shown = [_filled(orders, pieces, size)]
        readings.append(Reading(group, tuple(shown)))
    if blind:
        every = [(passage,) for passage in pieces] if lone else pack(pieces, size)
        readings.append(Reading(blind, tuple(every)))
    return readings


def _passages_by_word(pieces: Sequence[Passage]) -> Mapping[str, Sequence[int]]:
    by_word: dict[str, list[int]] = defaultdict(list)
    for at, passage in enumerate(pieces):
        for word in content_words(passage.text):
            by_word[word].append(at)
    return by_word


def _ranked(
    weights: Mapping[str, float], by_word: Mapping[str, Sequence[int]], pieces: Sequence[Passage]
) -> list[int]:
    """The passages that hold these words, the nearest first; rare words count more.

    What stands beside a near passage is near too: it may go on with "it" where that has the name.
    """
    nearness: dict[int, float] = defaultdict(float)
    for word in sorted(weights):
        holding = by_word.get(word, ())
        for at in holding:
            nearness[at] += weights[word] * math.log(1 + len(pieces) / len(holding))
    beside: dict[int, float] = defaultdict(float)
    for at, value in nearness.items():
        for neighbour in (at - 1, at + 1):
            if 0 <= neighbour < len(pieces) and pieces[neighbour].context == pieces[at].context:
                beside[neighbour] = max(beside[neighbour], _OF_NEIGHBOUR * value)
    whole = {at: nearness.get(at, 0) + beside.get(at, 0) for at in {*nearness, *beside}}
    return sorted(whole, key=lambda at: (-whole[at], at))


def _filled(orders: Sequence[Sequence[int]], pieces: Sequence[Passage], size: int) -> Window:
    """The nearest passages of each claim in turn, until the window is full, in their own order."""
    chosen: set[int] = set()
    total = 0
    for rank in range(max(map(len, orders))):
        for order in orders:
            if rank < len(order) and order[rank] not in chosen:
                tokens = count_tokens(pieces[order[rank]].text)
                if chosen and total + tokens > size:
                    return tuple(pieces[at] for at in sorted(chosen))
                chosen.add(order[rank])
                total += tokens
    return tuple(pieces[at] for at in sorted(chosen))


def window_text(window: Window) -> str:
    """The window as one text, its passages apart by a blank line."""
    return "\n\n".join(passage.text.strip() for passage in window)
