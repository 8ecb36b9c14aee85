"""Nothing leaves the machine, and nothing reaches a real account."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

_LOOPBACK = ("127.", "::1", "localhost")


class NetworkUsedError(AssertionError):
    """A test tried to reach another machine."""


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to anywhere but this machine, and take away what would be used there."""
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
    # A folder without certificates: none is of use here, and to read the machine's own takes each
    # client of a model longer than all that it is asked in most tests.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(Path(__file__).parent))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
