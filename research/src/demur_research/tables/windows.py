"""Measure whether the windows that RefChecker reads of long references hold the support of a claim.

The claims are those of WiCE. Each claim is held against many cited pages, of which one is its own.
A claim is found if the windows hold all sentences of one annotator's set. No model is asked.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias

from demur._text import words
from demur.evaluators.refchecker.nearness import Cutting, cut, nearest
from demur_research.bench import Bench, Column, Result, Row, Table
from demur_research.datasets.rows import LabelledRow
from demur_research.datasets.wice import places
from demur_research.resampling import share

MOST = (1, 2, 4, 8)
"""The numbers of windows that a claim is held against."""

Spans: TypeAlias = list[tuple[int, int]]

_PASSAGE_TOKENS = 180


@dataclass(frozen=True)
class Cited:
    """Hold a claim with the page that it cites."""

    claim: str
    group: str
    """The article; claims of one article are related."""
    page: str
    support: tuple[Spans, ...]
    """The places of the supporting sentences, one list for each annotator; empty if an annotator
    found none."""


def cited(row: LabelledRow) -> Cited:
    """Return the claim of a row of WiCE."""
    sentences: list[str] = row.metadata["evidence"]  # type: ignore[assignment]
    chosen: list[list[int]] = row.metadata["supporting_sentences"]  # type: ignore[assignment]
    of_sentences = places(sentences)
    support = tuple([of_sentences[at] for at in one] for one in chosen if all(chosen))
    return Cited(row.answers[0].text, row.group or row.key, "\n".join(sentences), support)


Place: TypeAlias = tuple[int | None, int, int]
"""A passage: the number of its page, its start and its end."""
Sized: TypeAlias = tuple[int | None, int, int, int]
"""A passage with its number of tokens."""
Choosing: TypeAlias = Callable[[list[str], dict[str, int | None]], list[list[list[Place]]]]
"""A function from claims and numbered pages to the passages that each claim is shown, for each
number of `MOST`."""


def measure(
    claims: Sequence[Cited], pages: int, seed: int, limit: int | None = None
) -> Iterator[tuple[str, list[Cited], list[list[bool]]]]:
    """Yield which claims are found, for each way of choosing and each number of `MOST`.

    Args:
        claims: The claims.
        pages: The number of pages that a claim is held against.
        seed: The seed for the choice and the order of the other pages.
        limit: The greatest number of claims to ask about; None: all that have support.

    Yields:
        The name of a way of choosing, the claims, and for each number of `MOST` whether each is
        found.

    Raises:
        ValueError: There are too few pages, or no claim has support.
    """
    asked = [one for one in claims if one.support][:limit]
    if not asked or len(claims) < pages:
        raise ValueError(
            f"expected {pages} claims, some of them with support, got {len(claims)}: name fewer "
            "pages with -O pages=NUMBER, or another file with --data"
        )
    cutting: Cutting = lru_cache(maxsize=None)(cut)
    counted = _Counted(cutting)
    ways: list[tuple[str, int, Choosing]] = [
        ("3,000 tokens, one claim", 1, partial(_by_nearness, cutting, 3000, False)),
        ("3,000 tokens, four claims at once", 4, partial(_by_nearness, cutting, 3000, False)),
        ("700 tokens, one claim", 1, partial(_by_nearness, cutting, 700, False)),
        ("a passage of 320 tokens", 1, partial(_by_nearness, cutting, 320, True)),
        ("3,000 tokens, one claim, by BM25", 1, partial(_by_bm25, counted, 3000)),
        (IN_ORDER, 1, partial(_in_order, cutting, 3000)),
    ]
    for name, at_once, choosing in ways:
        draw = random.Random(seed)
        order = draw.sample(asked, len(asked))
        found: list[list[bool]] = [[] for _ in MOST]
        for first in range(0, len(order), at_once):
            group = order[first : first + at_once]
            others = [one for one in claims if one not in group]
            held = [*group, *draw.sample(others, pages - len(group))]
            draw.shuffle(held)
            numbers: dict[str, int | None] = {one.page: at for at, one in enumerate(held)}
            shown = choosing([one.claim for one in group], numbers)
            for one, of_claim in zip(group, shown, strict=True):
                for told, passages in zip(found, of_claim, strict=True):
                    own = [(a, b) for page, a, b in passages if page == numbers[one.page]]
                    told.append(any(_hold(own, sentences, one.page) for sentences in one.support))
        yield name, order, found


IN_ORDER = "3,000 tokens, as the pages come"
"""The way of choosing that knows nothing of the claim."""


def _hold(spans: Spans, sentences: Spans, page: str) -> bool:
    """Return whether the passages hold all the sentences; a sentence may be in several passages."""
    return all(_holds(spans, *sentence, page) for sentence in sentences)


def _holds(spans: Spans, start: int, end: int, page: str) -> bool:
    at = start
    for first, last in sorted(spans):
        if not page[at : max(at, first)].strip():
            at = max(at, last)
    return not page[at:end].strip()


def _by_nearness(
    cutting: Cutting, size: int, lone: bool, claims: list[str], pages: dict[str, int | None]
) -> list[list[list[Place]]]:
    """Choose passages as RefChecker does; more windows begin with those that fewer windows hold."""
    chosen = nearest(claims, pages, size, max(MOST), lone=lone, cutting=cutting)
    return [
        [
            [
                (passage.context, passage.start, passage.start + len(passage.text))
                for window in one.windows[:most]
                for passage in window
            ]
            for most in MOST
        ]
        for one in chosen
    ]


def _first(passages: Iterable[Sized], size: int) -> list[list[Place]]:
    """Return the first passages that fit into windows of a size, for each number of `MOST`."""
    shown: list[list[Place]] = [[] for _ in MOST]
    total = 0
    for number, start, end, tokens in passages:
        total += tokens
        if total > max(MOST) * size:
            break
        for most, passages_of in zip(MOST, shown, strict=True):
            if total <= most * size:
                passages_of.append((number, start, end))
    return shown


def _in_order(
    cutting: Cutting, size: int, claims: list[str], pages: dict[str, int | None]
) -> list[list[list[Place]]]:
    """Choose passages in the order of the pages, whatever the claim says."""
    passages = (
        (number, *span)
        for page, number in pages.items()
        for span in cutting(page, _PASSAGE_TOKENS).spans
    )
    return [_first(passages, size)] * len(claims)


class _Counted:
    """Count the words of a page's passages for BM25, once for all claims."""

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting
        self._known: dict[str, list[tuple[int, int, int, Counter[str]]]] = {}

    def __call__(self, page: str) -> list[tuple[int, int, int, Counter[str]]]:
        if page not in self._known:
            self._known[page] = [
                (start, end, tokens, Counter(word for word, _, _ in words(page[start:end])))
                for start, end, tokens in self._cutting(page, _PASSAGE_TOKENS).spans
            ]
        return self._known[page]


def _by_bm25(
    counted: _Counted, size: int, claims: list[str], pages: dict[str, int | None]
) -> list[list[list[Place]]]:
    """Choose passages by Okapi BM25 (k1 1.2, b 0.75) over whole words, each passage by itself."""
    passages = [(number, *of_page) for page, number in pages.items() for of_page in counted(page)]
    lengths = [sum(counts.values()) for *_, counts in passages]
    mean = sum(lengths) / len(lengths)
    shown = []
    for claim in claims:
        asked = {word for word, _, _ in words(claim)}
        holding = Counter(word for *_, counts in passages for word in asked if word in counts)
        rarity = {
            word: math.log(1 + (len(passages) - count + 0.5) / (count + 0.5))
            for word, count in holding.items()
        }

        def score(at: int, rarity: Mapping[str, float] = rarity) -> float:
            counts = passages[at][-1]
            damped = 1.2 * (0.25 + 0.75 * lengths[at] / mean)
            return sum(
                weight * counts[word] * 2.2 / (counts[word] + damped)
                for word, weight in rarity.items()
            )

        order = sorted(range(len(passages)), key=score, reverse=True)
        shown.append(_first((passages[at][:-1] for at in order), size))
    return shown


def _make(bench: Bench) -> Result:
    pages = bench.number("pages", 200)
    claims = [cited(row) for row in bench.read("wice")]
    rows = []
    for name, asked, found in measure(claims, pages, bench.seed, bench.limit):
        figures = tuple(share(held, [one.group for one in asked]) for held in found)
        rows.append(Row(name, figures, items=len(asked), floor=name == IN_ORDER))
    return Result(
        tuple(Column(f"max_windows={most}, %") for most in MOST),
        tuple(rows),
        (f"Each claim is held against {pages} pages, of which it cites one.",),
    )


WINDOWS = Table(
    "windows",
    "demur",
    "How often the windows that are read, of many pages, hold the support of a claim.",
    ("wice",),
    _make,
    asks=False,
    options={"pages": "the number of pages that a claim is held against [default: 200]"},
)

TABLES = (WINDOWS,)
