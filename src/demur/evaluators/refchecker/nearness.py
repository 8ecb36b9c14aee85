"""Choose what each claim is held against where the references are longer than what is read.

Each claim is shown the passages nearest to it, by the words they share, wherever they stand.
docs/results.md compares this nearness with others.
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

# So many tokens are one passage, for nearness to tell where it stands.
_PASSAGE_TOKENS = 180
# Claims share windows as long as there is room for so many passages of each in a window.
_LEAST_PASSAGES = 4
# How much a word of the question counts, and how much nearness a passage has of the one beside it.
_OF_QUESTION, _OF_NEIGHBOUR = 0.5, 0.5
# Words that begin with the same letters are taken for one: "opened", "opening".
_BEGINNING = 6


@dataclass(frozen=True)
class Cut:
    """A text in passages."""

    spans: Sequence[tuple[int, int, int]]
    """Where each passage begins and ends, and its tokens."""
    words: Sequence[frozenset[str]]
    """The beginnings of each passage's words."""


Cutting = Callable[[str, int], Cut]
"""From a text, and the most tokens of a passage, to its passages."""


def cut(text: str, length: int) -> Cut:
    """Cut a text into passages of at most `length` tokens."""
    spans = measured_windows(text, length, 0)
    return Cut(spans, [_beginnings(text[start:end]) for start, end, _ in spans])


@dataclass(frozen=True)
class Read:
    """What a claim was held against earlier in a guarded call."""

    windows: tuple[Window, ...]
    """Their passages count contexts as they stand now."""
    texts: frozenset[str]
    """The references that its windows were chosen from."""


@dataclass(frozen=True)
class Chosen:
    """What claims are held against."""

    windows: Sequence[tuple[Window, ...]]
    """Those of each claim."""
    left_out: Sequence[int]
    """For each claim, how many windows the text would fill that it is not held against."""


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

    Passages that share no word with a claim come last, in the order of the references; so a claim
    in another language is held against the first ones.

    Args:
        claims: As texts that can be understood alone.
        texts: The different references, each with its context (see `Passage`).
        size: Of a window, in tokens.
        most: How many windows a claim is held against.
        question: The one that was answered; its words count half.
        lone: Whether each passage is a window of its own.
        cutting: How a text is cut.
        read: For claims that were held against some of these references before, those windows.
            Such a claim keeps them, and only passages of other texts are added, as far as they are
            near enough to be shown if all were chosen anew.

    Returns:
        The windows of each claim. Claims that stand together share those that are chosen anew.
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
        # No two passages are of one token, so each lone one fills its window.
        new = _filled([orders[at] for at in group], index, 1 if lone else size, most)
        for at in group:
            windows[at] += new
    left_out = [_left_out(of_claim, index, size, lone) for of_claim in windows]
    return Chosen([tuple(of_claim) for of_claim in windows], left_out)


@dataclass(frozen=True)
class _Index:
    """The passages of all references, by number."""

    passages: list[Passage] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """The reference that each stands in."""
    places: dict[int | None, range] = field(default_factory=dict)
    """The passages of each context."""
    by_word: dict[str, NDArray[np.intp]] = field(default_factory=dict)
    """Those that hold a word, of the words that are asked for."""


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
    """All passages, those first that hold the most of these words; rare words count more.

    What stands beside a near passage is near too: it may go on with "it" where that has the name.
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
    """How many of the first passages fit into the windows of a claim."""
    if lone:
        return most
    sums = accumulate(index.tokens[at] for at in order)
    return sum(1 for _ in takewhile(lambda total: total <= most * size, sums))


def _filled(orders: Sequence[Sequence[int]], index: _Index, size: int, most: int) -> list[Window]:
    """The nearest passages of each claim in turn, in the first window the nearest of all.

    In a window they stand in their own order.
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
    """How many windows the passages would fill that are in none of these."""
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
    """The spans, those that overlap made one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
