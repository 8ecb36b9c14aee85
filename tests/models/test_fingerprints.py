"""What tells one embedding model from another."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from demur.models.embeddings import MiniLM
from demur.models.fingerprints import fingerprint
from demur.models.weights import MINILM


class Served:
    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


def test_the_embedded_model_is_known_by_its_weights() -> None:
    # As it is where the files are not fetched.
    assert fingerprint(MiniLM.__new__(MiniLM)) == f"MiniLM {MINILM.sha256}"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model": "e-3"}, "Served model=e-3"),
        ({"model_name": "bge", "revision": "v2"}, "Served model_name=bge revision=v2"),
        ({"model": "e-3", "dimensions": 256}, "Served model=e-3 dimensions=256"),
        ({"model": "e-3", "dimensions": None, "api_key": "s"}, "Served model=e-3"),
        ({"model": object()}, "Served"),
        ({"fingerprint": "mine 7", "model": "e-3"}, "mine 7"),
        ({"fingerprint": print, "model": "e-3"}, "Served model=e-3"),
        ({"underlying_embeddings": SimpleNamespace(model="e-3")}, "SimpleNamespace model=e-3"),
    ],
    ids=["model", "name", "dimensions", "no key", "object", "own", "method", "cache"],
)
def test_others_are_known_by_what_they_say(fields: dict[str, object], expected: str) -> None:
    assert fingerprint(Served(**fields)) == expected


def test_one_of_langchains_own() -> None:
    assert fingerprint(DeterministicFakeEmbedding(size=8)) == "DeterministicFakeEmbedding size=8"
