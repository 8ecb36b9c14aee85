"""BERTScore: two texts compared word by word in context (Zhang et al. 2020, arXiv 1904.09675).

The arithmetic is ours, since no library has it right here: `bert-score` was last released in 2023
and brings pandas and matplotlib, and torchmetrics (1.9) gives scores of other texts when a batch
holds texts of several lengths (its issue 2728).
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any

from demur.errors import DemurError, MissingExtraError
from demur.similarity import Pair, Similarity, weights_fingerprint

_LAYERS = {"roberta-large": 17, "roberta-base": 10, "bert-base-uncased": 9}
"""Of which layer the vectors are, as the paper chose by how well they go with human judgement."""
_AT_ONCE = 64
"""Texts that go through the encoder together."""


class BERTScore:
    """F1 of the greedy matching of two texts' token vectors by cosine; special tokens left out.

    Neither weighted by rarity nor rescaled, in [0, 1]: cosines below 0 count as 0.
    """

    def __init__(self, name: str, layer: int | None) -> None:
        """See `load_bertscore`."""
        self._given = name, layer
        self.encoder, self.tokenizer = _encoder(name)
        layers = self.encoder.config.num_hidden_layers
        self.layer = _LAYERS.get(name, layers) if layer is None else layer
        if not 0 <= self.layer <= layers:
            raise ValueError(f"{name!r} has the layers 0 to {layers}, got layer={layer}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the weights."""
        return BERTScore, self._given

    def __call__(self, pairs: list[Pair]) -> list[float]:
        """The F1 of each pair, which knows no direction."""
        vectors = self._vectors(list(dict.fromkeys(chain.from_iterable(pairs))))
        return [_f1(vectors[first], vectors[second]) for first, second in pairs]

    def _vectors(self, texts: list[str]) -> dict[str, Any]:
        """For each text a matrix of unit vectors, one a row for each token."""
        import torch

        vectors: dict[str, Any] = {}
        texts = sorted(texts, key=len)  # so that little is padding
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
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise MissingExtraError("transformers", "similarity", "BERTScore") from error
    try:
        return AutoModel.from_pretrained(name).eval(), AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise DemurError(
            f"the encoder {name!r} cannot be loaded: {str(error).rstrip('.')}. Give a folder that "
            "holds the model, or a name on the Hugging Face hub and a connection to it."
        ) from error


@cache
def load_bertscore(name: str, layer: int | None = None) -> Similarity:
    """BERTScore by an encoder's name on the Hugging Face hub, or its folder; once per process.

    Args:
        name: Such as "roberta-large", which the paper recommends for English.
        layer: Which hidden state is compared, from 0 (the embeddings). None: the paper's choice for
            the model, or the last one.

    Raises:
        MissingExtraError: transformers is not installed.
        DemurError: The model cannot be had.
        ValueError: It has no such layer.
    """
    score = BERTScore(name, layer)
    identity = f"bertscore:{weights_fingerprint(score.encoder)}@{score.layer}"
    return Similarity(score, "bertscore", identity, batch_size=2048, symmetric=True)
