"""Keep the tests of sinks from waiting, and from each other."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from demur._system import once_a_minute


@pytest.fixture
def at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no record wait before it is offered again, and give the test a temporary folder."""
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr("demur.observe.delivery._SECONDS", float("inf"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    once_a_minute._logged.clear()
