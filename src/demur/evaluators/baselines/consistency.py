"""Compute how well an answer agrees with other answers to its question (SelfCheckGPT).

The idea is of Manakul et al. 2023 (arXiv 2303.08896), section 5: a model does not repeat what it
made up when it is asked again. These functions take numbers or texts, and return numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from demur._text import words
from demur.schema import ClaimLabel


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known values, or None if no value is known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def unlike(similarities: Sequence[float]) -> float:
    """Return 1 less the similarity to the most similar part of a sample, in [0, 1].

    The result is 1 if the sample has no parts.
    """
    return 1 - max(similarities, default=0.0)


def contradiction(probabilities: Mapping[ClaimLabel, float]) -> float:
    """Return the probability that a sample contradicts the sentence, given that it is not neutral.

    The formula is P(contradiction) / (P(contradiction) + P(entailment)).
    """
    against = probabilities[ClaimLabel.CONTRADICTION]
    both = against + probabilities[ClaimLabel.ENTAILMENT]
    return against / both if both > 0 else 0.5


def unsupported(probabilities: Mapping[ClaimLabel, float]) -> float:
    """Return the probability that a sample does not support the sentence."""
    return 1 - probabilities[ClaimLabel.ENTAILMENT]


class Unigrams:
    """Give each word a probability by how often it is in some texts.

    One is added to each count (Laplace), so that no probability is 0. SelfCheckGPT found unigrams
    to be the best of the n-grams.

    Args:
        texts: The texts to train on: sentences of the samples, and those of the answer.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Count the words; the class describes the argument."""
        self._counts = Counter(word for text in texts for word in _words(text))
        self._all = self._counts.total() + len(self._counts)

    def surprises(self, sentence: str) -> list[float]:
        """Return the negative log-probability of each word of a sentence that is in the texts."""
        return [-math.log((self._counts[word] + 1) / self._all) for word in _words(sentence)]


def _words(text: str) -> list[str]:
    return [word for word, _, _ in words(text)]
