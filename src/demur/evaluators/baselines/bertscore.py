"""Compare two texts by their tokens in context (BERTScore, Zhang et al. 2020, arXiv 1904.09675).

The arithmetic is demur's own, since neither library serves here. `bert-score` was last released in
2023 and needs pandas and matplotlib. torchmetrics (1.9) mixes up the scores of texts if a batch has
texts of several lengths (its issue 2728).
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any

from demur.errors import DemurError, needs
from demur.similarity import Pair, Similarity, weights_fingerprint

_LAYERS = {"roberta-large": 17, "roberta-base": 10, "bert-base-uncased": 9}
"""The layer of the vectors, which the paper chose by its correlation with people. For other models,
it is the last layer."""
_AT_ONCE = 64
"""The number of texts that go through the encoder together."""


class BERTScore:
    """Score pairs of texts by the F1 of a greedy matching of their token vectors by cosine.

    Special tokens are left out. The score is in [0, 1], since cosines below 0 count as 0. It is
    neither weighted by rarity nor rescaled.
    """

    def __init__(self, name: str) -> None:
        """Load the encoder with this name or from this folder."""
        self._name = name
        self.encoder, self.tokenizer = _encoder(name)
        self.layer = _LAYERS.get(name, self.encoder.config.num_hidden_layers)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the weights."""
        return BERTScore, (self._name,)

    def __call__(self, pairs: list[Pair]) -> list[float]:
        """Return the F1 of each pair, which is the same in both directions."""
        vectors = self._vectors(list(dict.fromkeys(chain.from_iterable(pairs))))
        return [_f1(vectors[first], vectors[second]) for first, second in pairs]

    def _vectors(self, texts: list[str]) -> dict[str, Any]:
        """Return for each text a matrix of unit vectors, with one row for each token."""
        import torch

        vectors: dict[str, Any] = {}
        texts = sorted(texts, key=len)  # to keep the padding small
        for start in range(0, len(texts), _AT_ONCE):
            some = texts[start : start + _AT_ONCE]
            read = self.tokenizer(
                some,
                return_tensors="pt",
                padding=True,
                truncation=True,
                max_length=min(self.tokenizer.model_max_length, 512),
                return_special_tokens_mask=True,
            )
            word = read["attention_mask"].bool() & ~read.pop("special_tokens_mask").bool()
            with torch.inference_mode():
                states = self.encoder(**read, output_hidden_states=True).hidden_states
            units = torch.nn.functional.normalize(states[self.layer].float(), dim=-1)
            for text, rows, kept in zip(some, units, word, strict=True):
                vectors[text] = rows[kept]
        return vectors


def _f1(first: Any, second: Any) -> float:
    if not len(first) or not len(second):
        return 0.0
    cosines = (first @ second.T).clamp(0, 1)
    recall, precision = cosines.amax(dim=0).mean(), cosines.amax(dim=1).mean()
    both = recall + precision
    return float(2 * recall * precision / both) if both > 0 else 0.0


@cache
def _encoder(name: str) -> tuple[Any, Any]:
    with needs("transformers", "similarity", "BERTScore"):
        from transformers import AutoModel, AutoTokenizer
    try:
        return AutoModel.from_pretrained(name).eval(), AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise DemurError(
            f"the encoder {name!r} cannot be loaded: {str(error).rstrip('.')}. Give a folder that "
            "holds the model, or a name on the Hugging Face hub and a connection to it."
        ) from error


@cache
def load_bertscore(name: str) -> Similarity:
    """Load BERTScore with an encoder, given by its Hugging Face name or a folder; once per process.

    Args:
        name: The encoder's name or folder, such as "roberta-large", which the paper recommends for
            English.

    Raises:
        MissingExtraError: transformers is not installed.
        DemurError: The encoder is not available.
    """
    score = BERTScore(name)
    identity = f"bertscore:{weights_fingerprint(score.encoder)}@{score.layer}"
    return Similarity(score, "bertscore", identity, batch_size=2048, symmetric=True)
