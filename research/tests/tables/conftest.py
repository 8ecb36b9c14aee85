"""What the tables' tests have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from colours import Apart


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors without a model."""
    monkeypatch.setattr("demur_research.bench.MiniLM", Apart)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a recording is."""
    return tmp_path / "recording.jsonl"
