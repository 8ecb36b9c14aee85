"""Whether what supports a claim stands in the windows of long references that RefChecker reads.

Claims of WiCE, each held against many cited pages of which one is its own. A claim is found if the
windows hold all sentences of one annotator's set. No model is asked.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel

from demur._share import Share
from demur._text import words
from demur.evaluators.refchecker.nearness import Cutting, cut, nearest
from demur_research.datasets.files import load, rows

MOST = (1, 2, 4, 8)
"""How many windows a claim is held against."""

Spans: TypeAlias = list[tuple[int, int]]

_PASSAGE_TOKENS = 180


class _Row(BaseModel):
    claim: str
    evidence: list[str]
    supporting_sentences: list[list[int]]


@dataclass(frozen=True)
class Cited:
    """A claim with the page that it cites."""

    claim: str
    page: str
    support: tuple[Spans, ...]
    """For each annotator where the sentences stand that support the claim; empty if one of them
    found none."""


def read(data: Path) -> list[Cited]:
    """The claims of WiCE's development set.

    Raises:
        ValueError: There is no `wice/claim_dev.jsonl`, or it is of another form.
    """
    path = data / "wice" / "claim_dev.jsonl"
    return [_cited(row) for row in rows(load(path), _Row, str(path))]


def _cited(row: _Row) -> Cited:
    ends = list(accumulate(len(sentence) + 1 for sentence in row.evidence))
    places = [(end - 1 - len(text), end - 1) for end, text in zip(ends, row.evidence, strict=True)]
    sets = row.supporting_sentences if all(row.supporting_sentences) else []
    support = tuple([places[at] for at in one] for one in sets)
    return Cited(row.claim, "\n".join(row.evidence), support)


Place: TypeAlias = tuple[int | None, int, int]
"""A passage: the number of its page, where it begins and where it ends."""
Choosing: TypeAlias = Callable[[list[str], dict[str, int | None]], list[list[list[Place]]]]
"""From claims and numbered pages to what each claim is shown with each number of `MOST`."""


def measure(cited: Sequence[Cited], pages: int, seed: int) -> Iterator[tuple[str, list[Share]]]:
    """How many claims are found, by the way of choosing and for each number of `MOST`.

    Args:
        cited: The claims.
        pages: Against how many pages a claim is held.
        seed: Of the choice of the other pages and of the order.

    Raises:
        ValueError: There are too few pages, or no claim has support.
    """
    asked = [one for one in cited if one.support]
    if not asked or len(cited) < pages:
        raise ValueError(f"expected {pages} claims, some of them with support, got {len(cited)}")
    cutting: Cutting = lru_cache(maxsize=None)(cut)
    ways: list[tuple[str, int, Choosing]] = [
        ("3,000 tokens, one claim", 1, partial(_by_nearness, cutting, 3000, False)),
        ("3,000 tokens, four claims at once", 4, partial(_by_nearness, cutting, 3000, False)),
        ("700 tokens, one claim", 1, partial(_by_nearness, cutting, 700, False)),
        ("a passage of 320 tokens", 1, partial(_by_nearness, cutting, 320, True)),
        ("3,000 tokens, one claim, by BM25", 1, partial(_by_bm25, _Counted(cutting), 3000)),
    ]
    for name, at_once, choosing in ways:
        draw = random.Random(seed)
        order = draw.sample(asked, len(asked))
        found = [0] * len(MOST)
        for first in range(0, len(order), at_once):
            group = order[first : first + at_once]
            others = [one for one in cited if one not in group]
            held = [*group, *draw.sample(others, pages - len(group))]
            draw.shuffle(held)
            numbers: dict[str, int | None] = {one.page: at for at, one in enumerate(held)}
            shown = choosing([one.claim for one in group], numbers)
            for one, of_claim in zip(group, shown, strict=True):
                for at, places in enumerate(of_claim):
                    own = [(a, b) for page, a, b in places if page == numbers[one.page]]
                    found[at] += any(_hold(own, sentences, one.page) for sentences in one.support)
        yield name, [Share(count, len(asked)) for count in found]


def table(cited: Sequence[Cited], pages: int, seed: int) -> list[str]:
    """The lines of the table: see `measure`."""
    head = " | ".join(f"max_windows={most}" for most in MOST)
    lines = [f"| windows of | {head} |", "|---" * (len(MOST) + 1) + "|"]
    for name, shares in measure(cited, pages, seed):
        cells = (f"{share.value or 0:.1%} of {share.total}" for share in shares)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _hold(spans: Spans, sentences: Spans, page: str) -> bool:
    """Whether the passages hold the sentences, each of them maybe in parts."""
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
    """As RefChecker chooses: what fewer windows hold, the first of more windows hold too."""
    chosen = nearest(claims, pages, size, max(MOST), lone=lone, cutting=cutting)
    return [
        [
            [
                (passage.context, passage.start, passage.start + len(passage.text))
                for window in windows[:most]
                for passage in window
            ]
            for most in MOST
        ]
        for windows in chosen.windows
    ]


class _Counted:
    """Pages as BM25 takes them: each passage with its words, counted once for all claims."""

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
    """By Okapi BM25 (k1 1.2, b 0.75) over whole words, each passage by itself."""
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

        order = [passages[at] for at in sorted(range(len(passages)), key=score, reverse=True)]
        sums = list(accumulate(tokens for _, _, _, tokens, _ in order))
        shown.append(
            [
                [
                    (number, start, end)
                    for (number, start, end, _, _), total in zip(order, sums, strict=True)
                    if total <= most * size
                ]
                for most in MOST
            ]
        )
    return shown
