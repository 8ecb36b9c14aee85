"""Keep tests from real accounts and from the settings of the developer's machine."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove keys and URLs from the environment; pytest-socket refuses other machines."""
    endpoints = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST", "DEMUR_JUDGE_KEY")
    for name in (*endpoints, "LANGSMITH_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    # The folder has no certificates. Tests need none, and reading the machine's own certificates
    # would take each client of a model longer than all its requests do in most tests.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(Path(__file__).parent))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
