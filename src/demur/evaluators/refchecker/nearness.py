"""Choose the windows that each claim is checked against: all, or of long references the nearest.

Of long references, each claim is checked against the passages nearest to it, wherever they stand.
Nearness is measured by shared words; docs/results.md compares it with other measures.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from demur._text import measured_windows
from demur.evaluators.refchecker.content_words import beginnings
from demur.evaluators.refchecker.letters import other_letters
from demur.evaluators.refchecker.references import Passage, Window, pack, passages, window_text
from demur.schema import Sample

# References that fill this many windows are read whole, since a search for the nearest passages
# misses some of what supports a claim (docs/results.md).
_READ_WHOLE = 2
_OVERLAP = 8  # neighbouring windows of a text that is read whole share an eighth of their size
# The most tokens of a passage: short enough for nearness to find the right place.
_PASSAGE_TOKENS = 180
# Claims share windows as long as a window has room for this many passages of each.
_LEAST_PASSAGES = 4
# The weight of a question's word, and the share of nearness that a passage gets from a neighbour.
_OF_QUESTION, _OF_NEIGHBOUR = 0.5, 0.5


@dataclass(frozen=True)
class Cut:
    """Hold a text that is cut into passages."""

    spans: Sequence[tuple[int, int, int]]
    """The start, the end and the number of tokens of each passage."""
    words: Sequence[frozenset[str]]
    """The first letters of each passage's content words."""


Cutting = Callable[[str, int], Cut]
"""A function from a text, and the most tokens of a passage, to its passages."""


def cut(text: str, length: int) -> Cut:
    """Cut a text into passages of at most `length` tokens."""
    spans = measured_windows(text, length, 0)
    return Cut(spans, [beginnings(text[start:end]) for start, end, _ in spans])


@dataclass(frozen=True)
class Chosen:
    """Hold the windows that a claim is checked against."""

    windows: tuple[Window, ...]
    left_out: int
    """How many windows the rest of the references would fill."""


def choose(
    claims: Sequence[str], sample: Sample, size: int, most: int, *, lone: bool, together: bool
) -> list[Chosen]:
    """Choose the windows of each claim: all, or for long references the nearest.

    Args:
        claims: The claims, as texts that can be understood alone.
        sample: The sample with its references.
        size: The size of a window, in tokens.
        most: The most windows that a claim is checked against.
        lone: Whether each passage is a window of its own.
        together: Whether one request asks about several claims, so that these share windows.
    """
    if (whole := _whole(sample, size, most, lone)) is not None:
        return [Chosen(whole, 0)] * len(claims)
    texts: dict[str, int | None] = {}
    for at, document in enumerate(sample.contexts):
        texts.setdefault(document.page_content, at)
    if sample.reference is not None:
        texts.setdefault(sample.reference, None)
    return nearest(claims, texts, size, most, sample.question, lone, together)


def _whole(sample: Sample, size: int, most: int, lone: bool) -> tuple[Window, ...] | None:
    """Return windows of all references, or None if they fill more windows than are read whole."""
    pieces = passages(sample.contexts, sample.reference, size, size // _OVERLAP)
    # A cross-encoder judges a single passage better.
    packed = [(piece,) for piece in pieces] if lone else pack(pieces, size)
    different: dict[str, Window] = {}
    for window in packed:  # A document that was found twice is read once.
        different.setdefault(window_text(window), window)
    return None if len(different) > max(most, _READ_WHOLE) else tuple(different.values())


def nearest(
    claims: Sequence[str],
    texts: Mapping[str, int | None],
    size: int,
    most: int,
    question: str | None = None,
    lone: bool = False,
    together: bool = True,
    cutting: Cutting = cut,
) -> list[Chosen]:
    """Choose the passages nearest to each claim, in at most `most` windows.

    Passages that share no word with a claim come last, in the order of the references. So a claim
    in another language is checked against the first passages.

    Args:
        claims: The claims, as texts that can be understood alone.
        texts: The different references, each with its context (see `Passage`).
        size: The size of a window, in tokens.
        most: The most windows that a claim is checked against.
        question: The question that was answered; its words count half.
        lone: Whether each passage is a window of its own.
        together: Whether claims share windows that have room for several.
        cutting: The function that cuts a text into passages.

    Returns:
        The windows of each claim. Claims that stand together share their windows.
    """
    length = size if lone else min(size, _PASSAGE_TOKENS)
    words = [beginnings(claim) for claim in claims]
    asked = dict.fromkeys(beginnings(question or ""), _OF_QUESTION)
    index = _index(texts, [cutting(text, length) for text in texts], frozenset(asked).union(*words))
    at_once = max(1, size // length // _LEAST_PASSAGES) if together and not lone else 1
    chosen: list[Chosen] = []
    for first in range(0, len(words), at_once):
        group = words[first : first + at_once]
        orders = [_ranked({**asked, **dict.fromkeys(own, 1.0)}, index) for own in group]
        # With a size of 1 token no two passages fit together, so each one fills a window.
        filled = _filled(orders, index, 1 if lone else size, most)
        windows = tuple(tuple(index.passages[at] for at in window) for window in filled)
        rest = set(range(len(index.passages))).difference(*filled)
        left_out = len(rest) if lone else -(-sum(index.tokens[at] for at in rest) // size)
        chosen += [Chosen(windows, left_out)] * len(group)
    return chosen


def nearest_alone(
    claims: Sequence[str], windows: Sequence[tuple[Window, ...]]
) -> list[tuple[Window, ...]]:
    """Return the window that is nearest to each claim, or several that are equally near.

    The small judge supports three in ten claims by a text about something else, so each further
    window lets more of the wrong ones pass. A window's nearness is the sum over the claim's words
    in it, of which rare ones count more. If no window has a word of the claim, all are returned.
    Windows in other letters than the claim, which are not read, count only where all are in such.
    """
    return [_near(claim, of_claim) for claim, of_claim in zip(claims, windows, strict=True)]


def _near(claim: str, every: tuple[Window, ...]) -> tuple[Window, ...]:
    windows = [one for one in every if not other_letters(claim, window_text(one))] or every
    wanted = beginnings(claim)
    held = [wanted & _words_of(window) for window in windows]
    holding = Counter(word for words in held for word in words)
    weight = {word: math.log(1 + len(windows) / count) for word, count in holding.items()}
    # In a fixed order, since the sum of fractions depends on it.
    nearness = [sum(weight[word] for word in sorted(words)) for words in held]
    best = max(nearness, default=0.0)
    return tuple(window for window, near in zip(windows, nearness, strict=True) if near == best)


@lru_cache(maxsize=256)  # the claims of an answer are held against the same windows
def _words_of(window: Window) -> frozenset[str]:
    return beginnings(window_text(window))


@dataclass(frozen=True)
class _Index:
    """Hold the passages of all references, by number."""

    passages: list[Passage] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    places: dict[int | None, range] = field(default_factory=dict)
    """The passages of each context."""
    by_word: dict[str, NDArray[np.intp]] = field(default_factory=dict)
    """For each word of the claims and the question, the passages that contain it."""


def _index(texts: Mapping[str, int | None], cuts: Sequence[Cut], wanted: frozenset[str]) -> _Index:
    index = _Index()
    holding: dict[str, list[int]] = defaultdict(list)
    for (text, context), of_text in zip(texts.items(), cuts, strict=True):
        begin = len(index.passages)
        for (start, end, tokens), words in zip(of_text.spans, of_text.words, strict=True):
            for word in wanted & words:
                holding[word].append(len(index.passages))
            index.passages.append(Passage(context, start, text[start:end]))
            index.tokens.append(tokens)
        index.places[context] = range(begin, len(index.passages))
    index.by_word.update((word, np.array(places, np.intp)) for word, places in holding.items())
    return index


def _ranked(weights: Mapping[str, float], index: _Index) -> list[int]:
    """Rank all passages by the words that they contain; rare words count more.

    A passage next to a near passage is near too: it may say "it" where its neighbour has the name.
    """
    count = len(index.passages)
    nearness = np.zeros(count)
    for word in sorted(weights):
        if (holding := index.by_word.get(word)) is not None:
            nearness[holding] += weights[word] * math.log(1 + count / len(holding))
    beside = np.zeros(count)
    for places in index.places.values():
        own, around = nearness[places.start : places.stop], beside[places.start : places.stop]
        around[1:] = own[:-1]
        around[:-1] = np.maximum(around[:-1], own[1:])
    order: list[int] = np.argsort(-(nearness + _OF_NEIGHBOUR * beside), kind="stable").tolist()
    return order


def _filled(
    orders: Sequence[Sequence[int]], index: _Index, size: int, most: int
) -> list[list[int]]:
    """Fill windows with the nearest passages of each claim in turn, nearest first.

    Inside a window, the passages stand in their original order.
    """
    turns = (at for of_rank in zip_longest(*orders) for at in of_rank if at is not None)
    filled: list[list[int]] = [[]]
    total = 0
    for at in dict.fromkeys(turns):
        if filled[-1] and total + index.tokens[at] > size:
            if len(filled) == most:
                break
            filled.append([])
            total = 0
        filled[-1].append(at)
        total += index.tokens[at]
    return [sorted(window) for window in filled]
