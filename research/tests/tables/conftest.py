"""Hold the fixtures that the tests of the tables share."""

from __future__ import annotations

from pathlib import Path

import pytest

from colours import Apart


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make vectors without a model."""
    monkeypatch.setattr("demur_research.bench.MiniLM", Apart)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a recording."""
    return tmp_path / "recording.jsonl"
