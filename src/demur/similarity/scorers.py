"""Define ways to score pairs of texts: each takes pairs and returns a number in [0, 1] for each.

`pairs.py` does the work that they share: it scores each pair once, makes batches, checks the
results, and calls a scorer from one thread at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur._system import Recent
from demur._text import words
from demur.errors import DemurError, needs
from demur.schema import ClaimLabel
from demur.similarity.nli import NLI

Pair = tuple[str, str]
"""A premise and a hypothesis, in that order."""
PairScorer = Callable[[list[Pair]], ArrayLike]


class Cosine:
    """Compute cosines of embeddings; a cosine below 0 counts as 0.

    A text is embedded once, as long as its vector is kept.

    Args:
        embed: A function from texts to their vectors, of any length but 0.
        room: The number of bytes of vectors that are kept. The least recently used are dropped.
        at_once: The number of texts that `embed` gets at once.
    """

    def __init__(
        self,
        embed: Callable[[list[str]], ArrayLike],
        room: int = 256 << 20,
        at_once: int = 256,
    ) -> None:
        """Make a scorer; the class describes the arguments."""
        self._given = embed, room, at_once
        self._kept: Recent[NDArray[np.float32]] = Recent(room)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the vectors."""
        return Cosine, self._given

    def __call__(self, pairs: list[Pair]) -> NDArray[np.float64]:
        """Return the cosine of each pair."""
        rows = {text: at for at, text in enumerate(dict.fromkeys(chain.from_iterable(pairs)))}
        vectors = np.stack(self._vectors(list(rows)))
        left = vectors[[rows[premise] for premise, _ in pairs]]
        right = vectors[[rows[hypothesis] for _, hypothesis in pairs]]
        cosines: NDArray[np.float64] = np.einsum("ij,ij->i", left, right).astype(np.float64)
        return cosines.clip(0, 1)

    def _vectors(self, texts: list[str]) -> list[NDArray[np.float32]]:
        keys = [hashlib.blake2b(text.encode(), digest_size=16).hexdigest() for text in texts]
        kept = self._kept.get(keys)
        vectors = {at: kept[key] for at, key in enumerate(keys) if key in kept}
        # Texts of similar length are embedded together, so that there is little padding.
        new = sorted(
            (at for at in range(len(texts)) if at not in vectors), key=lambda at: len(texts[at])
        )
        at_once = self._given[-1]
        for start in range(0, len(new), at_once):
            some = new[start : start + at_once]
            for at, vector in zip(some, self._embed([texts[at] for at in some]), strict=True):
                vectors[at] = vector.copy()  # a view would keep the whole batch
                self._kept.put(keys[at], vectors[at], weight=vector.nbytes)
        return [vectors[at] for at in range(len(texts))]

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = np.asarray(self._given[0](texts), dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise DemurError(
                f"the embedding model returned an array of shape {vectors.shape} for {len(texts)} "
                "texts; expected one vector for each"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        for text, length in zip(texts, lengths[:, 0], strict=True):
            if not 0 < length < np.inf:
                raise DemurError(
                    f"the embedding model returned a vector of length {length} for {text!r:.200}; "
                    "a cosine needs one that is finite and not 0"
                )
        scaled: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
        return scaled


@dataclass(frozen=True, eq=False)
class CrossEncoder:
    """Score by the single output of a `sentence_transformers.CrossEncoder`, mapped to [0, 1]."""

    encoder: Any

    def __call__(self, pairs: list[Pair]) -> ArrayLike:
        """Return the scores by the encoder's own activation, or by the sigmoid if it has none."""
        import torch

        own = self.encoder.activation_fn
        scores: ArrayLike = self.encoder.predict(
            pairs,
            activation_fn=torch.nn.Sigmoid() if isinstance(own, torch.nn.Identity) else own,
            show_progress_bar=False,
        )
        return scores


@dataclass(frozen=True, eq=False)
class Entailment:
    """Score by the probability that the premise entails the hypothesis, by an NLI model."""

    nli: NLI

    def __call__(self, pairs: list[Pair]) -> list[float]:
        """Return the probability for each pair."""
        return [probabilities[ClaimLabel.ENTAILMENT] for probabilities in self.nli.predict(pairs)]


def load_rouge() -> PairScorer:
    """Return a scorer for ROUGE-L: the F1 of the longest common subsequence of words.

    The score is symmetric. It equals the normalised Indel similarity of the two lists of words, to
    the last digit. rapidfuzz computes that thirty times as fast as the `rouge-score` package, and
    has wheels for every Python. Words are case-folded and not stemmed, and are not limited to
    ASCII.

    Raises:
        MissingExtraError: rapidfuzz is not installed.
    """
    with needs("rapidfuzz", "similarity", "ROUGE"):
        from rapidfuzz.distance import Indel

    def score(pairs: list[Pair]) -> list[float]:
        tokens = {
            text: [word for word, _, _ in words(text)]
            for text in dict.fromkeys(chain.from_iterable(pairs))
        }
        return [_f1(tokens[premise], tokens[hypothesis]) for premise, hypothesis in pairs]

    def _f1(premise: Sequence[str], hypothesis: Sequence[str]) -> float:
        if not premise or not hypothesis:
            return 0.0  # the library would return 1 for two empty lists
        return float(Indel.normalized_similarity(premise, hypothesis))

    return score


def load_bleu() -> PairScorer:
    """Return a scorer for the sentence BLEU of the hypothesis, with the premise as reference.

    The score is that of sacrebleu, divided by 100. It is smoothed, and uses only the n-grams that
    so short a text can have.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """
    with needs("sacrebleu", "similarity", "BLEU"):
        from sacrebleu.metrics import BLEU
    bleu = BLEU(effective_order=True)

    def score(pairs: list[Pair]) -> list[float]:
        return [
            bleu.sentence_score(hypothesis, [premise]).score / 100 for premise, hypothesis in pairs
        ]

    return score
