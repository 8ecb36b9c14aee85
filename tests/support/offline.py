"""Keep tests offline: they reach no other machine and no real account."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

_LOOPBACK = ("127.", "::1", "localhost")


class NetworkUsedError(AssertionError):
    """Report that a test tried to reach another machine."""


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to other machines, and remove keys and URLs from the environment."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def local(sock: socket.socket, address: Any) -> None:
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            host = str(address[0])
            if not host.startswith(_LOOPBACK):
                raise NetworkUsedError(f"a test tried to connect to {host}")

    def guarded(sock: socket.socket, address: Any) -> None:
        local(sock, address)
        connect(sock, address)

    def guarded_ex(sock: socket.socket, address: Any) -> int:
        local(sock, address)
        return connect_ex(sock, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_ex)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST", "LANGSMITH_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    # The folder has no certificates. Tests need none, and reading the machine's own certificates
    # would take each client of a model longer than all its requests do in most tests.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(Path(__file__).parent))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
