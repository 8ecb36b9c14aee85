"""Make up questions with scored answers and vectors, in any number and always the same.

A question is one of twelve, about one of eight kinds of house, in one of six towns. A name made of
syllables distinguishes it from the others.
"""

from __future__ import annotations

import random
import re
from functools import cache

import numpy as np
from bench.fewl_texts import SYLLABLES
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from demur.local import MiniLM
from demur.schema.fingerprints import fingerprint

CANDIDATES = 3
"""The number of answers to each question."""
MEDIAN_BEST = 0.5 ** (1 / CANDIDATES)
"""The median of the best of `CANDIDATES` scores that are uniform between 0 and 1."""

_ASKED = (
    *("Who founded the {}?", "When was the {} built?", "What are the walls of the {} made of?"),
    *("How many rooms are in the {}?", "Why did they close the {}?", "Who looks after the {}?"),
    *("When did the {} burn down?", "How many people visit the {}?", "Is the {} open in winter?"),
    *("What does it cost to enter the {}?", "Which river runs by the {}?", "Who owns the {}?"),
)
_KINDS = ("mill", "bridge", "museum", "library", "harbour", "theatre", "garden", "brewery")
_TOWNS = ("Hartmouth", "Lindau", "Oxley", "Severin", "Tarnby", "Wick")
_NAME = re.compile(r" of ([A-Z]\w+)(?= in )")
_FACTS = (
    "It stands near the old market.",
    "The records of the town say so, and a plate beside the gate does.",
    "Some hold that it was otherwise, but nobody has ever found a proof.",
    "That was after the fire in the east wing.",
    "A committee of neighbours decides about it once a year.",
)


def item(number: int) -> tuple[str, list[str], list[float]]:
    """Return a question with its answers and their scores."""
    chance = random.Random(-1 - number)
    answers = []
    for _ in range(CANDIDATES):
        said = f"{_name(chance)}, in {chance.randint(1500, 1999)}."
        answers.append(" ".join([said, *chance.sample(_FACTS, 2)]))
    return question(number), answers, [chance.random() for _ in answers]


def question(number: int) -> str:
    """Return the question of a number, which no other number has."""
    chance = random.Random(number)
    what, kind, town = (chance.choice(of) for of in (_ASKED, _KINDS, _TOWNS))
    # The last part of the name makes the question unique.
    return what.format(f"{kind} of {_name(chance)}{_spelt(number)} in {town}")


def _name(chance: random.Random) -> str:
    return "".join(chance.choices(SYLLABLES, k=3)).capitalize()


def _spelt(number: int) -> str:
    base = len(SYLLABLES)
    return SYLLABLES[number % base] + (_spelt(number // base) if number >= base else "")


class Near(Embeddings):
    """Make up vectors near those of MiniLM.

    A vector is MiniLM's vector of the question without the name, plus a part for the name.
    """

    _SHARE = 0.8
    """The cosine between a question and the same question without the name, about as with
    MiniLM."""

    @property
    def fingerprint(self) -> str:
        """Return MiniLM's fingerprint, so that the store can be searched with MiniLM."""
        return fingerprint(MiniLM())

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vector of each text."""
        found = np.stack([self._vector(text) for text in texts])
        rows: list[list[float]] = found.tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        return self.embed_documents([text])[0]

    def _vector(self, text: str) -> NDArray[np.float32]:
        name = _NAME.search(text)
        if name is None:
            raise RuntimeError(f"expected one of the questions made here, got {text!r}")
        spelt = name[1].lower()
        # Names that share syllables have similar vectors.
        rows = [
            at * len(SYLLABLES) + SYLLABLES.index(spelt[2 * at : 2 * at + 2])
            for at in range(len(spelt) // 2)
        ]
        own = _table()[rows].sum(axis=0)
        share = self._SHARE
        found: NDArray[np.float32] = share * _embedded(_NAME.sub("", text)) + (
            1 - share**2
        ) ** 0.5 * own / np.linalg.norm(own)
        return found


@cache
def _table() -> NDArray[np.float32]:
    shape = 8 * len(SYLLABLES), 384
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


@cache
def _embedded(text: str) -> NDArray[np.float32]:
    return np.asarray(MiniLM().embed_query(text), np.float32)
