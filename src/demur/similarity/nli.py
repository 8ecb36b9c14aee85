"""Predict the three classes of NLI with a sentence-transformers cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, ClassVar

from demur._system import lock
from demur.schema import NLI_LABELS, ClaimLabel
from demur.similarity.encoders import load_cross_encoder, weights_fingerprint

_STEMS = {
    "entail": ClaimLabel.ENTAILMENT,
    "neutral": ClaimLabel.NEUTRAL,
    "contradict": ClaimLabel.CONTRADICTION,
}


class NLI:
    """Predict entailment, neutral or contradiction for pairs of texts with a cross-encoder.

    Raises:
        ValueError: The model has other classes; the message lists them.
    """

    batch_size: ClassVar[int] = 32
    """The number of pairs that the encoder gets at once."""

    def __init__(self, encoder: Any) -> None:
        """Wrap a `sentence_transformers.CrossEncoder`, which is not changed."""
        self.encoder = encoder
        self.labels = _class_labels(encoder)
        self._lock = lock()

    @cached_property
    def fingerprint(self) -> str:
        """Return a text that distinguishes its probabilities from those of other models.

        It is a hash of the weights. For an encoder without torch's parameters, it is the encoder's
        own `fingerprint` if that is a text. Otherwise, it is the class and the labels in their
        order, which do not distinguish all models.
        """
        if hasattr(self.encoder, "named_parameters"):
            return weights_fingerprint(self.encoder)
        own = getattr(self.encoder, "fingerprint", None)
        if isinstance(own, str) and own:
            return own
        return " ".join([type(self.encoder).__qualname__, *map(str, self.labels)])

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[dict[ClaimLabel, float]]:
        """Return the probability of each label for each (premise, hypothesis)."""
        import torch

        # Equal pairs are scored once. Pairs are sorted by length, so that there is little padding.
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
    """Load a cross-encoder by its Hugging Face name or folder, once for each process.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        DemurError: The model is not available.
        ValueError: The model is not a cross-encoder, or not a three-way NLI model.
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
    if sorted(labels) != sorted(NLI_LABELS) or len(names) != len(labels):
        raise ValueError(
            "expected a three-way NLI cross-encoder, whose config.id2label names entailment, "
            f"neutral and contradiction; this one has {list(names.values())}"
        )
    return labels
