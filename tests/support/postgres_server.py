"""Run a real PostgreSQL server with a password on a free port of this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pytest

USER, PASSWORD = "writer", "s3cret/pass@word"
QUOTED = "s3cret%2Fpass%40word"
"""The password as it is written in a URL."""


def binaries() -> Path | None:
    """Return the folder with the newest `initdb` and `postgres`; None if PostgreSQL is missing."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def _version(path: Path) -> int:
    name = path.parts[-3]
    return int(name) if name.isdigit() else 0


@dataclass
class PostgresServer:
    """Represent a server with its data in a folder, which can be stopped and started again."""

    folder: Path
    port: int
    durable: bool = False
    """Whether written data survives a power cut, as outside of tests."""

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database of the server."""
        return f"postgresql://{USER}:{QUOTED}@127.0.0.1:{self.port}/{database}"

    def new(self, options: str = "") -> str:
        """Create a database and return its URL."""
        name = f"logs_{uuid.uuid4().hex[:12]}"
        self.ask(f"create database {name} {options}")
        return self.url(name)

    def ask(self, statement: str, url: str | None = None, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that runs without demur, in a transaction of its own."""
        import psycopg

        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        where = f"-c port={self.port} -c listen_addresses=127.0.0.1 -k {self.folder}"
        quick = "" if self.durable else "-c fsync=off -c full_page_writes=off"
        log = str(self.folder / "log")
        self._run(
            "pg_ctl",
            "start",
            "-w",
            "-D",
            self._data,
            "-l",
            log,
            "-o",
            f"{where} -c max_connections=200 {quick}",
        )

    def stop(self, how: Literal["fast", "immediate"] = "fast") -> None:
        """Stop the server, even if clients are connected; "immediate" leaves work for a start."""
        self._run("pg_ctl", "stop", "-w", "-m", how, "-D", self._data)

    def make(self) -> None:
        """Create the folder with the server's data."""
        (self.folder / "password").write_text(PASSWORD)
        if self._as:
            for path in (self.folder, self.folder / "password"):
                shutil.chown(path, self._as["user"])
        password = str(self.folder / "password")
        self._run(
            *("initdb", "-D", self._data, "-U", USER, f"--pwfile={password}", "-E", "UTF8"),
            *("-A", "scram-sha-256", "--locale=C.UTF-8", "--no-sync"),
        )

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    @cached_property
    def _as(self) -> dict[str, Any]:
        """Return the user that runs the server, because PostgreSQL refuses to run as root."""
        return {"user": "postgres"} if hasattr(os, "geteuid") and os.geteuid() == 0 else {}

    def _run(self, name: str, *arguments: str) -> None:
        folder = binaries()
        assert folder is not None
        with (self.folder / "commands").open("a+b") as said:
            done = subprocess.run(
                [str(folder / name), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=self.folder,
                timeout=120,
                **self._as,
            )
        if done.returncode:
            raise RuntimeError(f"{name} failed: {(self.folder / 'commands').read_text()[-2000:]}")


@contextlib.contextmanager
def postgres_server(durable: bool = False) -> Iterator[PostgresServer]:
    """Run a separate server with its data in a temporary folder, below `TMPDIR`.

    Raises:
        FileNotFoundError: PostgreSQL is not installed.
    """
    if binaries() is None:
        raise FileNotFoundError("no initdb: apt-get install postgresql")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    # The folder is not below pytest's own, which only pytest's user may enter.
    folder = tempfile.mkdtemp(prefix="demur-pg-")
    server = PostgresServer(Path(folder), port, durable)
    try:
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        # It holds thousands of files for each database: nobody waits until they are removed.
        subprocess.Popen(["rm", "-rf", folder], start_new_session=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Run one server for the whole session. Each test makes its own database: `postgres.new()`."""
    if binaries() is None:
        pytest.skip("PostgreSQL is NOT INSTALLED: apt-get install postgresql")
    with postgres_server() as server:
        yield server
