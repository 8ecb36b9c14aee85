"""SQLSink: records in a database, of SQLite or of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from demur.observe.places import is_server
from demur.observe.records import Record
from demur.observe.sinks.base import Sink

if TYPE_CHECKING:
    from demur.observe.postgres import Server
    from demur.observe.sqlite import File

_TOGETHER = 200
"""Records whose rows are sent together."""


class SQLSink(Sink):
    """Writes records to a database, which `demur log` reads, and which SQL can ask.

    A record is written in one transaction. One that was written outlives the process, also
    `kill -9`. A record that comes again, with the same id, takes the place of the first. Threads
    and processes, forked ones too, may write to the same database.

    - **A file of SQLite** (WAL mode), for the processes of one machine, on a local disk. Each write
      opens it and closes it; whoever finds it locked waits for up to ten seconds. It is to be moved
      while nobody writes to it. One that is made can be read by its owner only (mode 0600).
    - **PostgreSQL**, for the processes of many machines: in the schema `demur` of a database in
      UTF-8, which is made unless it is there. The sink keeps a few connections. A server that
      was away is used again when it is back.

    Args:
        where: A file, or `postgresql://user:password@host:port/database`. It is opened at once, so
            that what stands against it is known at once. A password may also come from
            `PGPASSWORD` or `~/.pgpass`; it is shown nowhere.

    Raises:
        ValueError: There is something else: no database, another program's tables, those of another
            version of demur, or a URL of something else. It is left as it was.
        DemurError: The file cannot be made, opened or written; the server cannot be reached, or
            does not let this user make tables.
        MissingExtraError: psycopg is not installed (`demur[postgres]`).
    """

    def __init__(self, where: str | Path) -> None:
        # Both bring SQLAlchemy, which nobody else needs.
        self.path: Path | None = None
        """The file; None for PostgreSQL."""
        self._database: File | Server
        if is_server(where):
            from demur.observe.postgres import Server

            self._database = server = Server(str(where))
            server.open()
            self.name = server.name
            """What to call it: the file, or the URL without user and password."""
        else:
            from demur.observe.sqlite import File

            self.path = Path(where).absolute()  # the process may go to another folder
            self._database = File(self.path)
            self.name = str(self.path)

    def __repr__(self) -> str:
        return f"SQLSink({self.name!r})"

    def write(self, record: Record) -> None:
        """Keep a record, in the place of one with the same id.

        Raises:
            DemurError: It could not be written; the database is as it was.
            ValueError, OSError: There is something else by now.
        """
        self.write_all([record])

    def write_all(self, records: Iterable[Record]) -> None:
        """Keep records in one transaction, all or none: much faster, for those of another log.

        Raises:
            DemurError: They could not be written; the database is as it was.
            ValueError, OSError: There is something else by now.
        """
        from demur.observe.tables import put

        with self._database.transaction() as connection:
            for some in _in_parts(iter(records)):
                put(connection, some)

    def close(self) -> None:
        """Let go of connections. A write after it makes them anew."""
        self._database.close()


def _in_parts(records: Iterator[Record]) -> Iterator[list[Record]]:
    while some := list(islice(records, _TOGETHER)):
        yield some
