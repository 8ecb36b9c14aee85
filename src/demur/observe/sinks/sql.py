"""Write records to a database of SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from demur.observe.places import is_server
from demur.observe.records import Record
from demur.observe.sinks.base import Sink

if TYPE_CHECKING:
    from demur.observe.postgres import Server
    from demur.observe.sqlite import File


class SQLSink(Sink):
    """Write records to a database, which `demur log` and SQL can read.

    Each record is written in one transaction. A written record survives the end of the process,
    even by `kill -9`. A record with the same id as an earlier one replaces it. Threads and
    processes, including forked ones, may write to the same database.

    - **A SQLite file** (WAL mode) is for the processes of one machine, on a local disk. Each write
      opens the file and closes it, and waits up to ten seconds for a lock. Move the file only while
      no process writes to it. The sink makes files that only their owner can read (mode 0600).
    - **PostgreSQL** is for the processes of many machines. The tables are in the schema `demur` of
      a database in UTF-8; the sink makes the schema if it does not exist. The sink keeps a few
      connections. If a server was away, the sink uses it again when it is back.

    Args:
        where: A file, or `postgresql://user:password@host:port/database`. The sink opens it at
            once, so that problems show at once. The password may also come from `PGPASSWORD` or
            `~/.pgpass`. No message shows it.

    Raises:
        ValueError: The file is not a database; the tables belong to another program or to another
            version of demur; or the URL has another scheme. Nothing is changed then.
        DemurError: The file cannot be made, opened or written; or the server cannot be reached, or
            does not allow this user to make tables.
        MissingExtraError: psycopg is not installed (`demur[postgres]`).
    """

    def __init__(self, where: str | Path) -> None:
        # Imported here, since only these two modules need SQLAlchemy.
        self.path: Path | None = None
        """The file; None for PostgreSQL."""
        self._database: File | Server
        if is_server(where):
            from demur.observe.postgres import Server

            self._database = server = Server(str(where))
            server.open()
            self.name = server.name
            """The file, or the URL without user and password, for messages."""
        else:
            from demur.observe.sqlite import File

            self.path = Path(where).absolute()  # the process may change its working folder
            self._database = File(self.path)
            self.name = str(self.path)

    def __repr__(self) -> str:
        return f"SQLSink({self.name!r})"

    def write(self, record: Record) -> None:
        """Write a record; it replaces a record with the same id.

        Raises:
            DemurError: The record could not be written. The database is unchanged.
            ValueError, OSError: The file or the schema was replaced meanwhile, and is not a log.
        """
        self.write_all([record])

    def write_all(self, records: Iterable[Record]) -> None:
        """Write records in one transaction, all or none.

        This is much faster than `write` for each record, such as those of another log.

        Raises:
            DemurError: The records could not be written. The database is unchanged.
            ValueError, OSError: The file or the schema was replaced meanwhile, and is not a log.
        """
        from demur.observe.tables import put

        with self._database.transaction() as connection:
            put(connection, records)

    def close(self) -> None:
        """Close the connections. A later `write` opens new ones."""
        self._database.close()
