"""Load classifiers of pairs of texts, on torch: once for each process, or with a clear error."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from demur.errors import DemurError, needs

T = TypeVar("T")

HHEM = "vectara/hallucination_evaluation_model"
# These are commits, not tags.
HHEM_2_1 = "8e4a2e6e96c708cc76c2344f7e4757df2515292c"
"""The last commit of HHEM-2.1-Open, of October 2025."""
HHEM_1_0 = "58383384656cbaec2949a75a41f20e891e90a73b"
"""The commit of the branch `hhem-1.0-open`, which holds HHEM-1.0-Open, a cross-encoder."""

_SMALL = 10_000
"""The largest parameter that is read for a fingerprint, in numbers: biases, norms, most heads."""


@cache
def load_cross_encoder(name: str, revision: str | None = None) -> Any:
    """Load a `sentence_transformers.CrossEncoder` by its name on the Hugging Face hub or folder.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        DemurError: The model is not available.
        ValueError: The model is not a cross-encoder.
    """
    with needs("sentence-transformers", "similarity", "scoring by a cross-encoder"):
        from sentence_transformers import CrossEncoder

    def load(**where: Any) -> Any:
        encoder = CrossEncoder(name, revision=revision, **where)
        with_words(encoder.tokenizer)
        return encoder

    encoder = from_hub(f"the cross-encoder {name!r}", name, revision, load)
    architectures = encoder.model.config.architectures or []
    if not any("SequenceClassification" in architecture for architecture in architectures):
        # The library would add a last layer of random numbers, and only log a warning.
        raise ValueError(
            f"{name!r} is not a cross-encoder: its weights are those of "
            f"{', '.join(architectures) or 'nothing'}"
            ", which have no classifier. For the cosine of a bi-encoder's embeddings, give the "
            f"model itself: SentenceTransformer({name!r})"
        )
    return encoder


def from_hub(what: str, name: str, revision: str | None, load: Callable[..., T]) -> T:
    """Load something from a folder, the cache of the Hugging Face hub, or the hub, in this order.

    Args:
        what: What is loaded, for errors.
        name: Its name on the hub, or its folder.
        revision: Its commit. None: the newest, or what the cache has.
        load: A function that loads it, with the further argument `local_files_only`.

    Raises:
        DemurError: It is in neither, and the hub does not answer or does not have it.
    """
    import huggingface_hub

    here = os.path.isdir(name)
    with contextlib.suppress(ValueError):  # no name that the hub can have
        here |= isinstance(
            huggingface_hub.try_to_load_from_cache(name, "config.json", revision=revision), str
        )
    try:
        if here:
            # What is here is not asked for anew: that takes long where nothing answers.
            with contextlib.suppress(OSError):
                return load(local_files_only=True)
        if not os.path.isdir(name):
            _reach_hub()
        return load()
    except OSError as error:
        raise _unavailable(what, revision, error) from error


def with_words(tokenizer: Any) -> Any:
    """Return a tokenizer; raise OSError if it knows no words, as one whose files are missing."""
    own = {*tokenizer.all_special_ids}
    words = (token for token, at in tokenizer.get_vocab().items() if at not in own)
    if not any(any(map(str.isalnum, word)) for word in words):
        raise OSError("the files of its tokenizer are missing")
    return tokenizer


def _reach_hub() -> None:
    """Raise OSError if nothing answers at the hub, which transformers would ask for half a minute.

    A name that cannot be resolved and a refused connection are known at once.
    """
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=5)
    except Exception as error:
        raise OSError(f"the Hugging Face hub does not answer ({type(error).__name__})") from error


def refuse_random(name: str, loading: Mapping[str, Any]) -> None:
    """Refuse a model whose weights were not all read, since the others are random numbers."""
    if loading["missing_keys"] or loading["mismatched_keys"]:
        raise DemurError(
            f"this version of transformers cannot read all weights of {name!r}: "
            f"{sorted(map(str, loading['missing_keys'])) or loading['mismatched_keys']} "
            "would be random numbers. Another version may read them"
        )


def _unavailable(what: str, revision: str | None, error: OSError) -> DemurError:
    advice = (
        "Give a folder that holds the model, or a name on the Hugging Face hub and a connection "
        "to it."
        if revision is None
        else "It is fetched once from the Hugging Face hub. Without a connection, copy the cache "
        "of another machine (HF_HOME), and set HF_HUB_OFFLINE=1."
    )
    return DemurError(f"{what} cannot be loaded: {str(error).rstrip('.')}. {advice}")


def weights_fingerprint(model: Any) -> str:
    """Return a hash of a torch model's shapes and small parameters, which training changes too.

    It is cheap beside a hash of all weights, is the same in every process, and needs no file.
    """
    hashed = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        hashed.update(f"{name} {tuple(parameter.shape)}\n".encode())
        if parameter.numel() <= _SMALL:
            hashed.update(parameter.detach().cpu().float().numpy().tobytes())
    return hashed.hexdigest()[:16]
