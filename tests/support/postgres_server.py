"""A real PostgreSQL server on a free port of this machine, with a password; it can be restarted."""

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
from typing import Any

import pytest

USER, PASSWORD = "writer", "s3cret/pass@word"
QUOTED = "s3cret%2Fpass%40word"
"""The password in a URL."""


def binaries() -> Path | None:
    """The folder with `initdb` and `postgres`, of the newest version; None without a server."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def _version(path: Path) -> int:
    name = path.parts[-3]
    return int(name) if name.isdigit() else 0


@dataclass
class PostgresServer:
    """A server with its data in a folder."""

    folder: Path
    port: int
    durable: bool = False
    """Whether what was written outlives a power cut, as it is outside of tests."""

    def url(self, database: str = "postgres", password: str = QUOTED) -> str:
        """Of one of its databases."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def new(self, options: str = "") -> str:
        """The URL of a new database."""
        name = f"logs_{uuid.uuid4().hex[:12]}"
        self.ask(f"create database {name} {options}")
        return self.url(name)

    def ask(self, statement: str, url: str | None = None, *values: object) -> list[tuple[Any, ...]]:
        """What a statement gives, asked without demur, in a transaction of its own."""
        import psycopg

        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Start it, and wait until it answers."""
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

    def stop(self) -> None:
        """Stop it, whoever is connected."""
        self._run("pg_ctl", "stop", "-w", "-m", "fast", "-D", self._data)

    def make(self) -> None:
        """Make the data."""
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
        """Who runs it: PostgreSQL does not run as root."""
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
    """A server of its own, with its data in a temporary folder (`TMPDIR` says where).

    Raises:
        FileNotFoundError: PostgreSQL is not installed.
    """
    if binaries() is None:
        raise FileNotFoundError("no initdb: apt-get install postgresql")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    # Not below pytest's own folder, which only its user may enter.
    with tempfile.TemporaryDirectory(prefix="demur-pg-", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(Path(folder), port, durable)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for the whole session. Each test takes a database of its own: `postgres.new()`."""
    if binaries() is None:
        pytest.skip("PostgreSQL is NOT INSTALLED: apt-get install postgresql")
    with postgres_server() as server:
        yield server
