"""Test the fingerprints that tell models, functions and prompts apart."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields, replace
from enum import Enum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_openai import ChatOpenAI

from demur.evaluators.baselines.prompts import LMvsLMPrompts, ZeroShotPrompts
from demur.local import MINILM, ChatLocal, MiniLM, Weights
from demur.runtime import is_local
from demur.schema.fingerprints import (
    digest,
    fingerprint,
    function_fingerprint,
    host_of,
    model_fingerprint,
    prompts_fingerprint,
)
from support.fakes import ScriptedModel


class Served:
    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


def test_the_embedded_model_is_known_by_its_weights() -> None:
    # Without `__init__`, the object is as on a machine where the files were not fetched.
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
    assert told[0] == "ChatOpenAI m (host=api.openai.com/v1)"


def test_the_same_chat_model_is_known_again_whatever_its_key() -> None:
    told = {
        model_fingerprint(_openai(base_url="http://u:hush@here/v1", api_key=key, max_retries=n))
        for key, n in (("sk-hush", 0), ("sk-new", 3))
    }
    (one,) = told
    assert one == "ChatOpenAI m (host=here/v1)"


def test_the_local_model_is_known_by_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for sha256 in ("aa", "bb", "aa"):
        weights = Weights(Path("m.gguf"), sha256)
        monkeypatch.setattr("demur.local.chat.verified_weights", lambda *_, found=weights: found)
        model = ChatLocal()
        assert is_local(model)
        told.append(model_fingerprint(model))
    assert told[0] == told[2] != told[1]


class _Telling(ScriptedModel):
    """Report to LangChain the identifying parameters that a test sets."""

    model_name: str = ""
    params: Any = None

    @property
    def _identifying_params(self) -> Any:
        return self.params


def _telling(params: Any, name: str = "") -> str:
    return model_fingerprint(_Telling(script=lambda *_: "", params=params, model_name=name))


def test_a_fingerprint_tells_each_parameter_by_its_name() -> None:
    """Pin the format: stores of neighbours and thresholds keep fingerprints and compare them."""
    params = {"b": "dict", "a": 1, "model_name": "org/m:7b", "c": None, "d": {"e": True, "f": []}}
    empty = hashlib.sha256(b"[]").hexdigest()[:12]
    expected = f"_Telling org/m:7b (a=1, b=dict, d.e=True, d.f=#{empty})"
    assert _telling(params, "org/m:7b") == expected


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.integers() | st.text(max_size=8)))
def test_a_parameter_that_is_not_known_counts(params: dict[str, Any]) -> None:
    assert _telling({**params, "new_parameter": 1}) != _telling({**params, "new_parameter": 2})


KEY = "a1b2c3d4e5f6a7b8c9d0"


@pytest.mark.parametrize(
    "params",
    [
        {"api_key": KEY},
        {"extra_headers": {"Authorization": KEY}},
        {"model_kwargs": {"auth_token": KEY}},
        {"extra_body": {"deeper": {"password": KEY}}},
        {"endpoint_path": KEY},
        {"callback": f"https://example.org/{KEY}/v1?key={KEY}"},
        {"base_url": f"https://ada:{KEY}@example.org/?key={KEY}"},
        {"route": f"x-{KEY}"},
    ],
    ids=str,
)
def test_no_parameter_shows_a_key(params: dict[str, Any]) -> None:
    assert KEY not in _telling(params)
    assert KEY not in _telling(params, name="m")


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://api.openai.com/v1/", "api.openai.com/v1"),
        ("HTTP://API.OpenAI.com:80/v1", "api.openai.com/v1"),
        ("http://here:1", "here:1"),
        ("http://u:hush@here/v1?key=hush", "here/v1"),
        ("here:11434", "here:11434"),
        ("http://[::1]:8/v1", "[::1]:8/v1"),
        ("https://x.example/openai/deployments/gpt-4o", "x.example/openai/deployments/gpt-4o"),
    ],
)
def test_a_host_is_told_without_scheme_user_and_query(address: str, host: str) -> None:
    assert host_of(address) == host


class _Mode(Enum):
    FAST = 1
    SLOW = 2


def test_no_address_gets_into_a_fingerprint() -> None:
    kept = [_Mode, _Mode]  # The objects below differ only in their addresses.
    for one, other in ((object(), object()), (lambda: kept, lambda: kept)):
        assert _telling({1: one, "a": 2}) == _telling({1: other, "a": 2})
        assert _telling({"a": {one}}) == _telling({"a": {other}})
        assert digest([one, "a"]) == digest([other, "a"])
    deep: list[Any] = []
    for _ in range(100_000):  # This is deeper than the recursion limit of any Python.
        deep = [deep]
    assert _telling(deep)


def test_sets_and_choices_tell_models_apart() -> None:
    told = [_telling({"a": one}) for one in ({"x"}, {"y"}, _Mode.FAST, _Mode.SLOW)]
    told += [_telling({_Mode.FAST: 1}), _telling({_Mode.SLOW: 1})]
    assert len(set(told)) == len(told)
    assert _telling({"a": {"x", "y", "z"}}) == _telling({"a": {"z", "y", "x"}})


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("http://here:1/v1", True),
        ("http://me:hush@here/v1", False),
        ("see http://here/m?key=hush now", False),
        ("http://[hush@::1", False),
    ],
)
def test_no_url_with_credentials_is_told_in_clear(name: str, shown: bool) -> None:
    for told in (_telling({}, name), fingerprint(Served(model=name))):
        assert (name in told) is shown
        assert "hush" not in told
    assert _telling({}, f"{name}2") != _telling({}, name)


# --- Functions and prompts ------------------------------------------------------------------------


def _one(x: str = "") -> str:
    return x


class _Callable:
    def __call__(self) -> None: ...

    def method(self) -> None: ...


class _Named(_Callable):
    fingerprint = "mine 7"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (_one, f"{__name__}._one"),
        (partial(partial(_one)), f"{__name__}._one"),
        (_Callable(), f"{__name__}._Callable"),
        (_Callable().method, f"{__name__}._Callable.method"),
        (_Named(), "mine 7"),
        (len, "builtins.len"),
        (str.strip, "str.strip"),
    ],
    ids=["function", "partial", "object", "method", "own", "builtin", "method of C"],
)
def test_functions_are_known_by_their_place(function: Callable[..., Any], expected: str) -> None:
    assert function_fingerprint(function) == expected


def test_a_partial_is_known_by_its_arguments() -> None:
    told = [
        function_fingerprint(one)
        for one in (_one, partial(_one, "a"), partial(_one, "b"), partial(_one, x="a"))
    ]
    assert len(set(told)) == 4
    assert function_fingerprint(partial(_one, "a")) == told[1]
    assert function_fingerprint(partial(_one, object())) == (
        function_fingerprint(partial(_one, object()))
    )


def test_prompts_are_known_by_what_they_say() -> None:
    ours = ZeroShotPrompts()
    same, other = (
        ZeroShotPrompts(judge=ours.judge),
        ZeroShotPrompts(judge=replace(ours.judge, closing="Now:")),
    )
    assert digest(ours) == digest(same) != digest(other)
    assert digest(ours) == hashlib.sha256(repr(ours).encode()).hexdigest()[:12]


def test_each_prompt_is_known_by_its_name() -> None:
    ours = LMvsLMPrompts()
    one = prompts_fingerprint(ours)
    other = prompts_fingerprint(replace(ours, testify=replace(ours.testify, closing="Now:")))
    told = [text.split(", ") for text in (one, other)]
    assert [part.partition("=#")[0] for part in told[0]] == [f.name for f in fields(ours)]
    assert [a.partition("=")[0] for a, b in zip(*told, strict=True) if a != b] == ["testify"]
