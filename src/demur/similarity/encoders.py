"""Load classifiers of pairs of texts, on torch: once for each process, or with a clear error."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from demur.errors import DemurError, needs

HHEM = "vectara/hallucination_evaluation_model"
# These are commits, not tags: the first one contains code, which is run.
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
    try:
        encoder = CrossEncoder(name, revision=revision)
    except OSError as error:
        raise _unavailable(f"the cross-encoder {name!r}", revision, error) from error
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


@cache
def load_hhem(name: str = HHEM, revision: str | None = HHEM_2_1) -> Any:
    """Load HHEM-2.1-Open, or another model whose own code has a `predict(pairs)`; that code is run.

    HHEM's code asks for `google/flan-t5-base`, of which only the configuration and the tokenizer
    are fetched.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        DemurError: The model is not available, or this version of transformers cannot read its
            weights.
    """
    with needs("sentence-transformers", "similarity", "HHEM"):
        from transformers import AutoConfig
        from transformers.dynamic_module_utils import get_class_from_dynamic_module
    try:
        config = AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=True)
        model_class = get_class_from_dynamic_module(
            config.auto_map["AutoModelForSequenceClassification"],
            name,
            revision=revision,
            code_revision=revision,
        )
        model, loading = _finished(model_class).from_pretrained(
            name, config=config, revision=revision, output_loading_info=True
        )
    except OSError as error:
        raise _unavailable(f"the model {name!r}", revision, error) from error
    if loading["missing_keys"] or loading["mismatched_keys"]:
        raise DemurError(
            f"this version of transformers cannot read all weights of {name!r}: "
            f"{sorted(map(str, loading['missing_keys'])) or loading['mismatched_keys']} "
            "would be random numbers. An older version may read them: "
            "pip install 'transformers<5'"
        )
    return model.eval()


def _finished(model_class: Any) -> Any:
    """Return the class with a constructor that ends with `post_init()`, as transformers 5 requires.

    HHEM's own constructor does not call it, and loading then fails. Adding only the missing
    attribute that the error names would be worse: the embeddings would not be tied and would stay
    random, and the scores would mean nothing.
    """

    def construct(self: Any, config: Any) -> None:
        model_class.__init__(self, config)
        self.post_init()

    return type(
        model_class.__name__,
        (model_class,),
        {"__init__": construct, "__module__": model_class.__module__},
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
