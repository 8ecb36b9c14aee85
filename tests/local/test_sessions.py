"""Test how models of ONNX Runtime are loaded."""

from __future__ import annotations

from pathlib import Path

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
