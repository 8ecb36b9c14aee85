"""Test how models of ONNX Runtime are loaded."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from demur.errors import LocalModelError
from demur.local.sessions import loaded

tokenizers = pytest.importorskip("tokenizers")
pytest.importorskip("onnxruntime")


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a"))
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_a_model_that_the_runtime_cannot_load_is_said(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(LocalModelError, match=r"ONNX Runtime .* could not load .*model\.onnx"):
        loaded(tokenizer, tmp_path / "model.onnx")


def test_a_tokenizer_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(LocalModelError, match=r"could not load .*tokenizer\.json"):
        loaded(tmp_path / "tokenizer.json", tmp_path / "model.onnx")


def test_further_runs_wait_while_there_are_as_many_as_may_be(
    tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = 3
    together, free = threading.Barrier(cores + 1), threading.Event()
    running: set[int] = set()

    class Session:
        """Run until it is told to end."""

        def __init__(self, *given: Any, **options: Any) -> None:
            pass

        def run(self, outputs: None, inputs: int) -> int:
            running.add(inputs)
            if not free.is_set():
                together.wait()
                free.wait()
            return inputs

    monkeypatch.setattr("onnxruntime.InferenceSession", Session)
    _, session = loaded(tokenizer, tmp_path / "model.onnx", at_once=cores)
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda one: session.run(None, one), range(8))
        together.wait()
        assert len(running) == cores
        free.set()
        assert [*found] == [*range(8)]


def test_files_are_verified_once_before_they_are_loaded(
    tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[str] = []

    def load(*given: Any, **options: Any) -> object:
        verified.append("loaded")
        return object()

    monkeypatch.setattr("onnxruntime.InferenceSession", load)
    for _ in range(2):
        loaded(tokenizer, tmp_path / "model.onnx", verify=lambda: verified.append("verified"))
    assert verified == ["verified", "loaded"]

    def refuse() -> None:
        raise LocalModelError("damaged")

    for _ in range(2):
        with pytest.raises(LocalModelError, match="damaged"):
            loaded(tokenizer, tmp_path / "other.onnx", verify=refuse)
