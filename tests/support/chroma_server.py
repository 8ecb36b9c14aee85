"""Start a real Chroma server, as `chroma run` does, on a free port of this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_RUN = "import sys; from chromadb.cli.cli import app; sys.exit(app())"


@contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    """Serve `folder` for the length of the block, and yield the URL."""
    import chromadb

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    where = ["run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", _RUN, *where], stdout=log, stderr=log)
    try:
        while True:
            try:
                chromadb.HttpClient("127.0.0.1", port)
                break
            except Exception:
                if process.poll() is not None:
                    raise
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run one server for the whole session, and return its URL. Each test names its collection."""
    with chroma_server(tmp_path_factory.mktemp("chroma") / "data") as url:
        yield url
