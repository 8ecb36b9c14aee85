"""Choose the passages that each claim is checked against when the references are long.

Each claim is checked against the passages nearest to it, wherever they stand. Nearness is measured
by shared words; docs/results.md compares it with other measures.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile, zip_longest

import numpy as np
from numpy.typing import NDArray

from demur._text import measured_windows
from demur.evaluators.refchecker.assertion import content_words
from demur.evaluators.refchecker.references import Passage, Window

# The most tokens of a passage: short enough for nearness to find the right place.
_PASSAGE_TOKENS = 180
# Claims share windows as long as a window has room for this many passages of each.
_LEAST_PASSAGES = 4
# The weight of a question's word, and the share of nearness that a passage gets from a neighbour.
_OF_QUESTION, _OF_NEIGHBOUR = 0.5, 0.5
# Words with the same first letters count as the same word: "opened", "opening".
_BEGINNING = 6


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
    return Cut(spans, [_beginnings(text[start:end]) for start, end, _ in spans])


@dataclass(frozen=True)
class Read:
    """Hold the windows that a claim was checked against earlier in a guarded call."""

    windows: tuple[Window, ...]
    """The windows; their passages have the contexts' present indices."""
    texts: frozenset[str]
    """The references that the windows were chosen from."""


@dataclass(frozen=True)
class Chosen:
    """Hold the windows that claims are checked against."""

    windows: Sequence[tuple[Window, ...]]
    """The windows of each claim."""
    left_out: Sequence[int]
    """For each claim, how many windows the rest of the references would fill."""


def nearest(
    claims: Sequence[str],
    texts: Mapping[str, int | None],
    size: int,
    most: int,
    question: str | None = None,
    lone: bool = False,
    cutting: Cutting = cut,
    read: Mapping[str, Read] | None = None,
) -> Chosen:
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
        cutting: The function that cuts a text into passages.
        read: The earlier windows of claims that were checked against some of these references
            before. Such a claim keeps them. Only passages of other references are added, and only
            those near enough to be chosen if all passages were chosen anew.

    Returns:
        The windows of each claim. Claims that stand together share the windows that are chosen
        anew.
    """
    length = size if lone else min(size, _PASSAGE_TOKENS)
    words = [_beginnings(claim) for claim in claims]
    asked = dict.fromkeys(_beginnings(question or ""), _OF_QUESTION)
    index = _index(texts, [cutting(text, length) for text in texts], frozenset(asked).union(*words))
    kept = [(read or {}).get(claim) for claim in claims]
    orders = []
    for own, earlier in zip(words, kept, strict=True):
        order = _ranked({**asked, **dict.fromkeys(own, 1.0)}, index)
        if earlier is not None:
            order = [
                at
                for at in order[: _fitting(order, index, size, most, lone)]
                if index.texts[at] not in earlier.texts
            ]
        orders.append(order)
    windows = [list(one.windows) if one else [] for one in kept]
    open_claims = [at for at, order in enumerate(orders) if order]
    at_once = 1 if lone else max(1, size // length // _LEAST_PASSAGES)
    for first in range(0, len(open_claims), at_once):
        group = open_claims[first : first + at_once]
        # With a size of 1 token no two passages fit together, so each one fills a window.
        new = _filled([orders[at] for at in group], index, 1 if lone else size, most)
        for at in group:
            windows[at] += new
    left_out = [_left_out(of_claim, index, size, lone) for of_claim in windows]
    return Chosen([tuple(of_claim) for of_claim in windows], left_out)


@dataclass(frozen=True)
class _Index:
    """Hold the passages of all references, by number."""

    passages: list[Passage] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """The reference that each passage stands in."""
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
            index.texts.append(text)
        index.places[context] = range(begin, len(index.passages))
    index.by_word.update((word, np.array(places, np.intp)) for word, places in holding.items())
    return index


def _beginnings(text: str) -> frozenset[str]:
    return frozenset(word[:_BEGINNING] for word in content_words(text))


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


def _fitting(order: Sequence[int], index: _Index, size: int, most: int, lone: bool) -> int:
    """Return how many of the first passages fit into the windows of a claim."""
    if lone:
        return most
    sums = accumulate(index.tokens[at] for at in order)
    return sum(1 for _ in takewhile(lambda total: total <= most * size, sums))


def _filled(orders: Sequence[Sequence[int]], index: _Index, size: int, most: int) -> list[Window]:
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
    return [tuple(index.passages[at] for at in sorted(window)) for window in filled]


def _left_out(windows: Iterable[Window], index: _Index, size: int, lone: bool) -> int:
    """Return how many windows the passages would fill that are in none of these windows."""
    spans: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
    for window in windows:
        for passage in window:
            spans[passage.context].append((passage.start, passage.start + len(passage.text)))
    read = {
        at
        for context, of_context in spans.items()
        for start, end in _joined(of_context)
        for at in index.places[context]
        if start <= index.passages[at].start
        and index.passages[at].start + len(index.passages[at].text) <= end
    }
    if lone:
        return len(index.passages) - len(read)
    return -(-(sum(index.tokens) - sum(index.tokens[at] for at in read)) // size)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans, with overlapping spans joined."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
