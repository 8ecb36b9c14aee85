"""Three-way NLI by a sentence-transformers cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

from demur._forks import lock
from demur.schema import ClaimLabel
from demur.similarity.encoders import load_cross_encoder, weights_fingerprint

_STEMS = {
    "entail": ClaimLabel.ENTAILMENT,
    "neutral": ClaimLabel.NEUTRAL,
    "contradict": ClaimLabel.CONTRADICTION,
}


class NLI:
    """A cross-encoder whose classes are entailment, neutral and contradiction.

    Raises:
        ValueError: The model's classes are others; the message lists them.
    """

    def __init__(self, encoder: Any, batch_size: int = 32) -> None:
        """Wrap a `sentence_transformers.CrossEncoder`, which is not changed."""
        self.encoder = encoder
        self.labels = _class_labels(encoder)
        self.batch_size = batch_size
        self._lock = lock()

    @cached_property
    def fingerprint(self) -> str:
        """What tells its probabilities from those of other models: a hash of the weights.

        Of an encoder that is not made of torch's parameters it is its own `fingerprint`, if that is
        a text, else its class and its labels in their order, by which not all can be told apart.
        """
        if hasattr(self.encoder, "named_parameters"):
            return weights_fingerprint(self.encoder)
        own = getattr(self.encoder, "fingerprint", None)
        if isinstance(own, str) and own:
            return own
        return " ".join([type(self.encoder).__qualname__, *map(str, self.labels)])

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[dict[ClaimLabel, float]]:
        """The probability of each label for each (premise, hypothesis)."""
        import torch

        # Equal pairs are scored once; sorted by length, a batch is padded least.
        unique = sorted(dict.fromkeys(pairs), key=lambda pair: len(pair[0]) + len(pair[1]))
        with self._lock:
            scores = self.encoder.predict(
                unique,
                batch_size=self.batch_size,
                activation_fn=torch.nn.Softmax(dim=-1),
                show_progress_bar=False,
            )
        known = {
            pair: dict(zip(self.labels, map(float, row), strict=True))
            for pair, row in zip(unique, scores, strict=True)
        }
        return [known[pair] for pair in pairs]


@cache
def load_nli(name: str) -> NLI:
    """Load a cross-encoder by its Hugging Face name or folder; once per process.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        DemurError: The model cannot be had.
        ValueError: It is no cross-encoder, or no three-way NLI model.
    """
    return NLI(load_cross_encoder(name))


def _class_labels(encoder: Any) -> list[ClaimLabel]:
    names: dict[int, str] = encoder.model.config.id2label
    labels = [
        label
        for _, name in sorted(names.items())
        for stem, label in _STEMS.items()
        if name.lower().startswith(stem)
    ]
    if sorted(labels) != sorted(ClaimLabel) or len(names) != len(labels):
        raise ValueError(
            "expected a three-way NLI cross-encoder, whose config.id2label names entailment, "
            f"neutral and contradiction; this one has {list(names.values())}"
        )
    return labels
