"""How well an answer goes with other answers to its question: the arithmetic of SelfCheckGPT.

Manakul et al. 2023 (arXiv 2303.08896), section 5: what a model made up it does not say again when
it is asked again. All that is here takes numbers or texts, and returns numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from demur._text import words
from demur.schema import ClaimLabel


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def unlike(similarities: Sequence[float]) -> float:
    """1 less the similarity to what of a sample is most like the sentence, in [0, 1].

    Without anything to be like it is 1.
    """
    return 1 - max(similarities, default=0.0)


def contradiction(probabilities: Mapping[ClaimLabel, float]) -> float:
    """The probability that a sample contradicts the sentence, if it says anything of it.

    Neutral is left out: P(contradiction) / (P(contradiction) + P(entailment)).
    """
    against = probabilities[ClaimLabel.CONTRADICTION]
    both = against + probabilities[ClaimLabel.ENTAILMENT]
    return against / both if both > 0 else 0.5


class NGrams:
    """A model of n-grams of words, which gives each word after others a probability.

    Counts with one added to each word of the vocabulary (Laplace), so that no probability is 0.
    The vocabulary is that of the texts. nltk's `lm` would do the same with a package more.

    Args:
        texts: What it is trained on: sentences of the samples, and those of the answer.
        n: How many words a gram has; at least 1.
    """

    def __init__(self, texts: Sequence[str], n: int) -> None:
        """See the class."""
        self.n = n
        grams = [gram for text in texts for gram in _grams(text, n)]
        self._grams = Counter(grams)
        self._contexts = Counter(gram[:-1] for gram in grams)
        self._size = len({gram[-1] for gram in grams})

    def surprises(self, sentence: str) -> list[float]:
        """The negative log-probability of each word of a sentence of one of the texts."""
        return [
            -math.log((self._grams[gram] + 1) / (self._contexts[gram[:-1]] + self._size))
            for gram in _grams(sentence, self.n)
        ]


def _grams(text: str, n: int) -> list[tuple[str, ...]]:
    padded = [""] * (n - 1) + [word for word, _, _ in words(text)]
    return [tuple(padded[at : at + n]) for at in range(len(padded) - n + 1)]
