"""A log in PostgreSQL: in a schema of its own, of a database that an application may have too."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Table,
    create_engine,
    func,
    insert,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.schema import CreateSchema

from demur._forks import leave, renewed
from demur._known_secrets import learn
from demur._text import one_line
from demur.errors import DemurError, MissingExtraError
from demur.observe.places import SinkError, URLError
from demur.observe.tables import VERSION, metadata

SCHEMA = "demur"
"""Where the tables are."""
_LOCK = 0x64656D75
"""The advisory lock under which they are made."""
_SETTINGS = {
    "application_name": "demur",
    "client_encoding": "utf8",
    "connect_timeout": "5",
    # A server that is gone without a word: else TCP waits for a quarter of an hour.
    "tcp_user_timeout": "30000",
}
"""Of a connection, unless the URL says otherwise."""
_DATA = "22"
"""The class of PostgreSQL's errors whose words may quote a value."""

_version = Table("demur_log", MetaData(), Column("version", Integer, nullable=False))


class Server:
    """A database on a server, with a few connections that are kept. Safe in threads and forks.

    Args:
        url: `postgresql://user:password@host:port/database`, with the parameters of libpq.

    Raises:
        URLError: It is no such URL.
        MissingExtraError: psycopg is not installed.
    """

    def __init__(self, url: str) -> None:
        self._url = _parsed(url)
        self._secrets = [
            value
            for value in (
                self._url.password,
                *map(self._url.query.get, ("password", "sslpassword")),
            )
            if isinstance(value, str) and value
        ]
        learn({"password": self._url.password}, dict(self._url.query))
        self.name = _name(self._url)
        """What to call it: without user, password and parameters."""
        self._made: Engine | None = None
        self._ready = False
        _ = self._engine  # so that what is missing is told at once
        renewed(self, Server._begin_anew)

    @property
    def _engine(self) -> Engine:
        if self._made is None:
            self._made = self._new()
        return self._made

    def _new(self) -> Engine:
        try:
            return create_engine(
                self._url,
                pool_size=2,
                max_overflow=8,
                pool_pre_ping=True,
                hide_parameters=True,
                execution_options={"schema_translate_map": {None: SCHEMA}},
                # A pooler between may give each transaction to another connection of its own.
                connect_args={"prepare_threshold": None},
            )
        except ModuleNotFoundError as error:
            raise MissingExtraError("psycopg", "postgres", "a log in PostgreSQL") from error

    def _begin_anew(self) -> None:
        leave(self._made)  # its connections are the parent's
        self._made = None

    def open(self) -> None:
        """Make the tables, unless they are there.

        Raises:
            ValueError: The schema holds another program's tables, or those of another version.
            SinkError: The server cannot be reached, or does not allow it.
        """
        with self._in_words("cannot be written"), self._engine.begin() as connection:
            if self.version(connection) is None:
                connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
            found = self.version(connection)  # another process may have made them meanwhile
            if found is None:
                _make(connection)
            elif found != VERSION:
                raise ValueError(
                    f"{self.name} has a log of another version of demur (its tables are of version "
                    f"{found}, expected {VERSION}): give another database"
                )
        self._ready = True

    def version(self, connection: Connection) -> int | None:
        """Of the tables that are there; None if the schema is empty, or missing.

        Raises:
            ValueError: They are another program's.
        """
        there = set(
            connection.scalars(
                text(
                    "select relname from pg_class join pg_namespace n on n.oid = relnamespace "
                    "where nspname = :schema and relkind in ('r', 'p', 'v', 'm', 'f')"
                ),
                {"schema": SCHEMA},
            )
        )
        if not there:
            return None
        if _version.name not in there:
            raise ValueError(
                f"the schema {SCHEMA} in {self.name} holds tables of another program: give another "
                "database"
            )
        return connection.scalar(select(_version.c.version))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection, whose work the server keeps at the end, or undoes.

        Raises:
            ValueError: As `open`, where the tables have to be looked for again.
            SinkError: The server cannot be reached, or does not take it.
        """
        if not self._ready:
            self.open()
        try:
            with self._in_words("does not take a record"), self._engine.begin() as connection:
                yield connection
        except BaseException:
            self._ready = False  # the next one may find another server, or an empty database
            raise

    @contextlib.contextmanager
    def moment(self) -> Iterator[Connection]:
        """A connection that only reads, and sees what there was at one moment.

        Raises:
            ValueError: There is no log, or one of another version.
            SinkError: The server cannot be reached, or does not allow it.
        """
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with contextlib.ExitStack() as resources:
            with self._in_words("cannot be read"):
                connection = resources.enter_context(self._engine.connect())
                connection = connection.execution_options(**options)
                found = self.version(connection)
            if found is None:
                raise ValueError(f"{self.name} has no log: no SQLSink was made for it yet")
            if found != VERSION:
                raise ValueError(
                    f"{self.name} has tables of version {found}, and this demur reads version "
                    f"{VERSION}: read it with the version of demur that wrote it"
                )
            yield connection

    def close(self) -> None:
        """Let go of the connections; they are made again when they are needed."""
        self._engine.dispose()

    @contextlib.contextmanager
    def _in_words(self, what: str) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise SinkError(f"{self.name} {what}: {told(error, *self._secrets)}") from None


def told(error: Exception, *secrets: str) -> str:
    """What went wrong, in PostgreSQL's words: without secrets, and without what a record holds."""
    original = getattr(error, "orig", None)
    if original is None:
        return type(error).__name__
    state = getattr(original, "sqlstate", None)
    if state is None:  # no answer of the server, but libpq's own words
        words = str(original)
    elif state.startswith(_DATA):
        words = f"{type(original).__name__} ({state})"
    else:
        words = f"{original.diag.message_primary or type(original).__name__} ({state})"
    for secret in secrets:
        words = words.replace(secret, "[secret]")
    return one_line(words)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url.strip())
        host = parsed.host or ""
    except (ArgumentError, ValueError):
        parsed, host = None, ""
    # A password with a bare @ or : would be told as a part of the host.
    if parsed is None or "@" in host or not parsed.database:
        raise URLError(
            "expected postgresql://user:password@host:port/database, with %40 for @, %3A for :, "
            "%2F for / and %25 for % in the password"
        ) from None
    return parsed.set(drivername="postgresql+psycopg", query={**_SETTINGS, **parsed.query})


def _name(url: URL) -> str:
    port = f":{url.port}" if url.port else ""
    host = f"[{url.host}]" if ":" in (url.host or "") else url.host or ""
    return f"postgresql://{host}{port}/{url.database}"


def _make(connection: Connection) -> None:
    if connection.scalar(text("show server_encoding")) != "UTF8":
        raise DemurError("expected a database whose encoding is UTF8, for texts of any language")
    here = text("select 1 from pg_namespace where nspname = :schema")
    if connection.scalar(here, {"schema": SCHEMA}) is None:  # who may not make one may use one
        connection.execute(CreateSchema(SCHEMA))
    metadata.create_all(connection, checkfirst=False)
    _version.create(connection, checkfirst=False)
    connection.execute(insert(_version).values(version=VERSION))
