"""Find the similarity that a name, a model or a function stands for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from langchain_core.embeddings import Embeddings

from demur._system import lock
from demur.errors import DemurError
from demur.local import MiniLM
from demur.schema import ClaimLabel
from demur.schema.fingerprints import fingerprint, function_fingerprint
from demur.similarity.encoders import (
    HHEM,
    HHEM_1_0,
    HHEM_2_1,
    load_cross_encoder,
    weights_fingerprint,
)
from demur.similarity.named import NAMED
from demur.similarity.nli import NLI, load_nli
from demur.similarity.pairs import Similarity
from demur.similarity.scorers import Cosine, CrossEncoder, Entailment, Pair, load_bleu, load_rouge
from demur.similarity.yes_no_models import load_yes_no

COSINE = "cosine"
"""The name of every similarity that is the cosine of embeddings, whatever the model."""


class Predicts(Protocol):
    """Describe a model that scores pairs, such as a sentence-transformers `CrossEncoder`."""

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the scores of pairs."""


class Encodes(Protocol):
    """Describe a model that computes vectors, such as a `SentenceTransformer`."""

    def encode(self, *args: Any, **kwargs: Any) -> Any:
        """Return the vectors of texts."""


SimilarityLike: TypeAlias = (
    str
    | os.PathLike[str]
    | Similarity
    | NLI
    | Embeddings
    | Predicts
    | Encodes
    | Callable[[list[Pair]], Sequence[float]]
)
"""The types that `resolve_similarity` takes."""


class _Named(Similarity):
    """Represent a similarity made from a name, by which it is found again when unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return resolve_similarity, (self.name,)


_lock = lock()
_named: dict[str, _Named] = {}
"""The similarities made from a name. There is one for each name and process, so that its users
share the scores that it remembers."""


def resolve_similarity(similarity: SimilarityLike) -> Similarity:
    """Return the similarity that a name, a model or a function stands for.

    A name is one of these texts:

    - "cosine": the cosine of embeddings by the embedded MiniLM.
    - "hhem": HHEM-2.1-Open.
    - "hhem-1.0": HHEM-1.0-Open.
    - "rouge": ROUGE-L.
    - "bleu": BLEU.
    - "org/name" or a folder: a cross-encoder with one output, or with the three classes of NLI, of
      which the score is the probability of entailment.

    Args:
        similarity: A name, or an object: a sentence-transformers `CrossEncoder` or
            `SentenceTransformer`, LangChain `Embeddings` (cosine), a torch model with a `predict`
            for pairs (such as HHEM's), an `NLI`, a `Similarity`, or a function from a list of
            (premise, hypothesis) to as many numbers in [0, 1].

    Raises:
        ValueError: The name is unknown, or the model cannot score pairs.
        TypeError: The object is none of these.
        MissingExtraError: A package is not installed.
        DemurError: A model is not available.
    """
    if isinstance(similarity, Similarity):
        return similarity
    if not isinstance(similarity, (str, os.PathLike)):
        return _from_object(similarity)
    name = os.fspath(similarity)
    with _lock:  # otherwise, several threads would each load the model
        if name not in _BY_NAME and os.path.isdir(name):
            name = str(Path(name).resolve())
        if name not in _named:
            _named[name] = _Named(*_from_name(name).given)
        return _named[name]


def _from_name(name: str) -> Similarity:
    if name in _BY_NAME:
        return _BY_NAME[name]()
    if "/" not in name and not os.path.isdir(name):
        raise ValueError(
            f"unknown similarity {name!r}: expected one of {', '.join(map(repr, _BY_NAME))}; the "
            "name of a cross-encoder such as 'org/name', or its folder; or a model or a function, "
            "given as an object"
        )
    encoder = load_cross_encoder(name)
    if encoder.num_labels == 3:
        return _from_nli(load_nli(name), name)  # checkers share the model and its lock
    return _from_cross_encoder(encoder, name)


def _hhem() -> Similarity:
    judge = load_yes_no(NAMED["hhem"].judge)

    def score(pairs: list[Pair]) -> list[float]:
        found = judge.predict(pairs)
        if unread := [one for one in found if isinstance(one, str)]:
            raise DemurError(unread[0])
        return [one[ClaimLabel.ENTAILMENT] for one in found if not isinstance(one, str)]

    return Similarity(score, "hhem", f"{HHEM}@{HHEM_2_1}", batch_size=32)


def _hhem_1_0() -> Similarity:
    score = CrossEncoder(load_cross_encoder(HHEM, HHEM_1_0))
    return Similarity(score, "hhem-1.0", f"{HHEM}@{HHEM_1_0}", batch_size=32)


def _rouge() -> Similarity:
    identity = f"rouge-l:rapidfuzz=={version('rapidfuzz')}"
    return Similarity(load_rouge(), "rouge", identity, batch_size=256, symmetric=True)


def _bleu() -> Similarity:
    return Similarity(
        load_bleu(), "bleu", f"bleu:sacrebleu=={version('sacrebleu')}", batch_size=256
    )


def _from_embeddings(embeddings: Embeddings) -> Similarity:
    return _cosine(embeddings.embed_documents, fingerprint(embeddings))


def _cosine(embed: Callable[[list[str]], Any], identity: str) -> Similarity:
    # Scores are not kept: with embedded texts, a product costs less than a look-up.
    return Similarity(
        Cosine(embed), COSINE, f"cosine:{identity}", batch_size=2048, kept=0, symmetric=True
    )


def _from_cross_encoder(encoder: Any, name: str) -> Similarity:
    classes = encoder.num_labels
    if classes == 1:
        identity = f"cross-encoder:{weights_fingerprint(encoder)}"
        return Similarity(CrossEncoder(encoder), name, identity, batch_size=32)
    if classes == 3:
        return _from_nli(NLI(encoder), name)
    raise ValueError(
        f"the cross-encoder {name!r} has {classes} classes; expected one output, or the three "
        "classes of NLI. For another, give a function from pairs to numbers in [0, 1]"
    )


def _from_nli(nli: NLI, name: str) -> Similarity:
    identity = f"entailment:{weights_fingerprint(nli.encoder)}"
    return Similarity(Entailment(nli), name, identity, batch_size=32)


def _from_object(model: Any) -> Similarity:
    if isinstance(model, NLI):
        return _from_nli(model, "nli")
    if isinstance(model, Embeddings):
        return _from_embeddings(model)
    # The import takes seconds. If the user has such an object, the library is imported already.
    library = sys.modules.get("sentence_transformers")
    if library is not None and isinstance(model, library.CrossEncoder):
        return _from_cross_encoder(model, "cross-encoder")
    if library is not None and isinstance(model, library.SentenceTransformer):
        encode = partial(model.encode, show_progress_bar=False)
        return _cosine(encode, f"sentence-transformer:{weights_fingerprint(model)}")
    if hasattr(model, "predict") and hasattr(model, "named_parameters"):
        name = type(model).__name__
        identity = f"{name}:{weights_fingerprint(model)}"
        return Similarity(model.predict, name, identity, batch_size=32)
    if callable(model):
        identity = function_fingerprint(model)
        return Similarity(model, identity.rpartition(".")[2], identity)
    raise TypeError(
        f"expected a similarity's name ({', '.join(map(repr, _BY_NAME))}), a model that scores "
        "pairs or embeds texts, or a function from a list of (premise, hypothesis) to numbers in "
        f"[0, 1]; got {type(model).__name__}"
    )


_BY_NAME: dict[str, Callable[[], Similarity]] = {
    COSINE: lambda: _from_embeddings(MiniLM()),
    "hhem": _hhem,
    "hhem-1.0": _hhem_1_0,
    "rouge": _rouge,
    "bleu": _bleu,
}
