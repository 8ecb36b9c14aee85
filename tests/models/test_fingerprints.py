"""What tells one model from another."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_openai import ChatOpenAI

from demur.models import local
from demur.models.embeddings import MiniLM
from demur.models.fingerprints import fingerprint, model_fingerprint
from demur.models.resolve import is_local
from demur.models.weights import MINILM, Weights
from support.fakes import ScriptedModel


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


# --- Chat models ----------------------------------------------------------------------------------


def _openai(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "m", "api_key": "sk-hush", **options})


def test_chat_models_that_answer_otherwise_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    models = [
        _openai(),
        _openai(model="other"),
        _openai(temperature=0.5),
        _openai(max_tokens=7),
        _openai(base_url="http://here:1/v1"),
        _openai(base_url="http://here:2/v1"),
    ]
    monkeypatch.setenv("OPENAI_BASE_URL", "http://there/v1")
    models.append(_openai())
    told = [model_fingerprint(one) for one in models]
    assert len(set(told)) == len(told)
    assert told[0].startswith("ChatOpenAI m (")


def test_the_same_chat_model_is_known_again_whatever_its_key() -> None:
    told = {
        model_fingerprint(_openai(base_url="http://u:hush@here/v1", api_key=key, max_retries=n))
        for key, n in (("sk-hush", 0), ("sk-new", 3))
    }
    (one,) = told
    assert "hush" not in one
    assert "here" not in one


class _Weighed(ChatOpenAI):
    """As the local model: another port each time, and known by its weights."""

    weights: str

    @property
    def fingerprint(self) -> str:
        return self.weights


def test_a_model_with_a_fingerprint_of_its_own_is_known_by_it() -> None:
    def told(weights: str, port: int, temperature: float = 0) -> str:
        url = f"http://127.0.0.1:{port}/v1"
        return model_fingerprint(
            _Weighed(model="m", api_key="k", base_url=url, weights=weights, temperature=temperature)
        )

    assert told("a", 1) == told("a", 2)
    assert told("a", 1) != told("b", 1)
    assert told("a", 1) != told("a", 1, temperature=1)


def test_the_local_model_is_known_by_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for sha256 in ("aa", "bb", "aa"):
        weights = Weights(Path("m.gguf"), sha256)
        monkeypatch.setattr(local, "verified_weights", lambda *_, found=weights: found)
        model = local.ChatLocal()
        assert is_local(model)
        told.append(model_fingerprint(model))
    assert told[0] == told[2] != told[1]


def test_a_class_of_ones_own_is_known_by_its_name() -> None:
    assert model_fingerprint(ScriptedModel(script=lambda stage, messages: "")).startswith(
        "ScriptedModel ("
    )
