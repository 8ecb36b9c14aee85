"""Keep a log in PostgreSQL, in a schema of its own, beside other schemas of the database."""

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

from demur._secrets import learn
from demur._system import leave, renewed
from demur._text import one_line
from demur.errors import DemurError, MissingExtraError
from demur.observe.places import SinkError, URLError
from demur.observe.tables import VERSION, metadata

SCHEMA = "demur"
"""The schema that holds the tables."""
_LOCK = 0x64656D75
"""The advisory lock that is held while the tables are made."""
_SETTINGS = {
    "application_name": "demur",
    "client_encoding": "utf8",
    "connect_timeout": "5",
    # In milliseconds. Without it, TCP waits a quarter of an hour for a server that vanished.
    "tcp_user_timeout": "30000",
}
"""The parameters of a connection, unless the URL sets others."""
_DATA = "22"
"""The class of PostgreSQL errors whose messages may quote a value."""

_version = Table("demur_log", MetaData(), Column("version", Integer, nullable=False))


class Server:
    """Hold a few connections to a database on a server. Safe in threads and forks.

    Args:
        url: `postgresql://user:password@host:port/database`, with the parameters of libpq.

    Raises:
        URLError: `url` is not such a URL.
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
        """The URL without user, password and parameters, for messages."""
        self._made: Engine | None = None
        self._ready = False
        _ = self._engine  # so that a missing package raises at once
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
                # A pooler in between may run each transaction on another connection.
                connect_args={"prepare_threshold": None},
            )
        except ModuleNotFoundError as error:
            raise MissingExtraError("psycopg", "postgres", "a log in PostgreSQL") from error

    def _begin_anew(self) -> None:
        leave(self._made)  # its connections belong to the parent process
        self._made = None

    def open(self) -> None:
        """Make the tables, unless they exist.

        Raises:
            ValueError: The schema holds tables of another program or of another version of demur.
            SinkError: The server cannot be reached, or does not allow this user to make tables.
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
        """Return the version of the tables, or None if the schema is empty or missing.

        Raises:
            ValueError: The schema holds tables of another program.
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
        """Yield a connection; commit its work at the end, or roll it back after an error.

        Raises:
            ValueError: As `open`, if the tables had to be looked for again.
            SinkError: The server cannot be reached, or reports an error.
        """
        if not self._ready:
            self.open()
        try:
            with self._in_words("does not accept a record"), self._engine.begin() as connection:
                yield connection
        except BaseException:
            self._ready = False  # the next one may find another server, or an empty database
            raise

    @contextlib.contextmanager
    def moment(self) -> Iterator[Connection]:
        """Yield a read-only connection that sees the database as it was at one moment.

        Raises:
            ValueError: The database has no log, or a log of another version of demur.
            SinkError: The server cannot be reached, or does not allow this user to read.
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
        """Close the connections; a later use opens new ones."""
        self._engine.dispose()

    @contextlib.contextmanager
    def _in_words(self, what: str) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise SinkError(f"{self.name} {what}: {told(error, *self._secrets)}") from None


def told(error: Exception, *secrets: str) -> str:
    """Return PostgreSQL's message for an error, without secrets and without values of a record."""
    original = getattr(error, "orig", None)
    if original is None:
        return type(error).__name__
    state = getattr(original, "sqlstate", None)
    if state is None:  # a message of libpq, not of the server
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
    # With an unescaped @ or :, a part of the password is read as the host, which messages show.
    if parsed is None or "@" in host or not parsed.database:
        raise URLError(
            "the URL of the database is not valid: expected "
            "postgresql://user:password@host:port/database, with %40 for @, %3A for :, "
            "%2F for / and %25 for % in the password"
        ) from None
    return parsed.set(drivername="postgresql+psycopg", query={**_SETTINGS, **parsed.query})


def _name(url: URL) -> str:
    port = f":{url.port}" if url.port else ""
    host = f"[{url.host}]" if ":" in (url.host or "") else url.host or ""
    return f"postgresql://{host}{port}/{url.database}"


def _make(connection: Connection) -> None:
    if connection.scalar(text("show server_encoding")) != "UTF8":
        raise DemurError(
            "expected a database whose encoding is UTF8, which holds texts of any language: give "
            "another database"
        )
    here = text("select 1 from pg_namespace where nspname = :schema")
    # A user who may not create a schema may still use an existing one.
    if connection.scalar(here, {"schema": SCHEMA}) is None:
        connection.execute(CreateSchema(SCHEMA))
    metadata.create_all(connection, checkfirst=False)
    _version.create(connection, checkfirst=False)
    connection.execute(insert(_version).values(version=VERSION))
