"""Make up questions, and what models would say of them, in any number and always the same.

The questions of a topic share words, so every question has neighbours. Each question has five
reference answers, 25 pairs of a wrong and a corrected answer, and three answers to score. For every
fourth question, two of these three are equal, as for 24 % of CHALE's questions (319 of the 1,347
rows at hand). One in ten of the references' answers and of the pairs is repeated. For comparison, a
1.5B model that was asked 70 of CHALE's questions repeated 17 % of its answers and 7 % of the sides
of its pairs.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from demur.evaluators import Pairs
from demur.evaluators.fewl.neighbors import KnownQuestion

N, R, K = 5, 25, 25
"""The numbers of reference answers, pairs and neighbours, as in the papers."""
_PER_TOPIC = 50
EQUAL_WRONG = 4
"""One question in this many has two equal wrong answers."""
_COMMON = ["the", "of", "in", "and", "was", "by", "to", "a", "from", "with", "for", "when"]


@dataclass(frozen=True)
class Item:
    """Hold a question with all that is known of it, and the answers to score."""

    asked: KnownQuestion
    answers: tuple[str, ...]


def items(count: int) -> Iterator[Item]:
    """Return `count` questions, with the topics in turns."""
    return (item(at, topics(count)) for at in range(count))


def topics(count: int) -> int:
    """Return the number of topics of `count` questions."""
    return -(-count // _PER_TOPIC)


def item(number: int, among: int) -> Item:
    """Return the question of a number, with its answers, if there are `among` topics."""
    chance = random.Random(number)
    topic = _vocabulary(number % among)
    own, question = _asked(chance, topic)

    def sentence(length: int) -> str:
        known = chance.sample([*own, *topic, *_COMMON], length - 2)
        return " ".join([*known, *_words(chance, 2)]).capitalize() + "."

    said = [sentence(14) for _ in range(N)]
    if chance.random() < 0.5:
        said[-1] = said[0]
    corrected = [sentence(12) for _ in range(R - R // 5)]
    corrected += chance.sample(corrected, R // 5)
    pairs = Pairs(tuple((sentence(12), right) for right in corrected))
    wrong = sentence(30)
    second = wrong if number % EQUAL_WRONG == 0 else sentence(30)
    return Item(KnownQuestion(question, tuple(said), pairs), (sentence(30), wrong, second))


def question(number: int, among: int) -> str:
    """Return only the text of the question of a number."""
    return _asked(random.Random(number), _vocabulary(number % among))[1]


def _asked(chance: random.Random, topic: list[str]) -> tuple[list[str], str]:
    """Return what a question is about, and the question."""
    own = [*_words(chance, 3), *chance.sample(topic, 3)]
    return own, " ".join(["what", *chance.sample(_COMMON, 3), *own]) + "?"


def _words(chance: random.Random, count: int) -> list[str]:
    return ["".join(chance.choices(SYLLABLES, k=3)) for _ in range(count)]


SYLLABLES = [first + second for first in "bdfgklmnprstv" for second in "aeiou"]


@cache
def _vocabulary(topic: int) -> list[str]:
    return _words(random.Random(f"topic {topic}"), 30)


# --- Similarities -------------------------------------------------------------------------------


def overlap(pairs: list[tuple[str, str]]) -> list[float]:
    """Return for each pair the words that both texts have, divided by the words that either has.

    It is about as cheap as a similarity can be.
    """
    found = []
    for premise, hypothesis in pairs:
        one, other = set(premise.split()), set(hypothesis.split())
        found.append(len(one & other) / len(one | other))
    return found


class WordVectors(Embeddings):
    """Embed a text as 384 numbers: the sum of a vector for each word, chosen by its hash."""

    fingerprint = "bench: words, 384 numbers"

    def __init__(self) -> None:
        """Start the count of embedded texts at 0."""
        self.embedded = 0
        """The number of texts embedded so far."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vector of each text."""
        self.embedded += len(texts)
        rows = np.stack([self._vector(text) for text in texts])
        found: list[list[float]] = rows.tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        return self.embed_documents([text])[0]

    def _vector(self, text: str) -> NDArray[np.float32]:
        # All words use the rows of one table, so that many words take no more memory.
        rows = [
            int.from_bytes(hashlib.blake2b(word.encode(), digest_size=2).digest()) % len(_TABLE)
            for word in re.findall(r"\w+", text.lower())
        ]
        total: NDArray[np.float32] = _TABLE[rows].sum(axis=0)
        return total


_TABLE = np.random.default_rng(0).standard_normal((1 << 14, 384), dtype=np.float32)
