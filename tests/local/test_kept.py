from __future__ import annotations

from pathlib import Path

import pytest

from demur.local import load_measured, save_measured
from support.fakes import ScriptedModel, scripted


class Known(ScriptedModel):
    """Represent a model with a fingerprint of its own."""

    fingerprint: str


def known(fingerprint: str = "abc") -> Known:
    return Known(script=scripted("x").script, fingerprint=fingerprint)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEMUR_MODELS", str(tmp_path))
    return tmp_path


def test_what_was_saved_is_found_by_an_equal_model_under_an_equal_key() -> None:
    assert load_measured(known(), ("prompt", 1)) is None
    save_measured(known(), ("prompt", 1), {"a": -0.5, "b": 2})
    assert load_measured(known(), ("prompt", 1)) == {"a": -0.5, "b": 2.0}
    assert load_measured(known(), ("prompt", 2)) is None
    assert load_measured(known("abd"), ("prompt", 1)) is None


def test_of_a_model_without_a_fingerprint_nothing_is_kept(folder: Path) -> None:
    save_measured(scripted("x"), "key", {"a": 1.0})
    assert load_measured(scripted("x"), "key") is None
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("content", ["", "[1]", '{"a": "b"}', '{"a": NaN}', '{"a": null}', "\0"])
def test_a_file_that_is_not_ours_is_no_measurement(folder: Path, content: str) -> None:
    save_measured(known(), "key", {"a": 1.0})
    (file,) = folder.iterdir()
    file.write_text(content)
    assert load_measured(known(), "key") is None
