"""Opening a playbook in PostgreSQL: recognise it, migrate it, and set up its connections.

Errors are translated into ours with advice on what to do, and without passwords.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, QueuePool, create_engine, event, select
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from acefraud.errors import AcefraudError, InputError, StoreError, StoreSchema, StoreUnavailable
from acefraud.settings import Durability
from acefraud.storage.database_address import has_bare_signs, without_password
from acefraud.storage.schema import NEWEST, FileState, check_known, meta, metadata

logging.getLogger("psycopg").addHandler(logging.NullHandler())
"""Without a handler the driver writes to standard error what is raised anyway."""

_STARTED_BY: Final = "`acefraud train`, `acefraud serve` and other commands that write start a playbook there"
_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "acefraud",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds; keepalives do not cover what was sent and not acknowledged
}
"""For what the address does not say."""
_POOLED, _BEYOND = 2, 4
"""Connections that are kept, and how many more there may be for a while. Threads wait a moment if all are in use.

A server has a hundred connections, unless it is told otherwise, for all processes together.
"""
_UNAVAILABLE: Final[Mapping[str, str]] = {
    "08": "the connection broke; try again",
    "40": "others were writing the same; try again",
    "53300": "the server has no connection to spare; try again later, or raise its max_connections",
    "55P03": "others have held the write lock for too long; try again when they are done",
    "57": "the server is stopping or starting; try again when it is up",
}
"""By the beginning of the SQLSTATE."""
_ADVICE: Final[Mapping[str, str]] = {
    "25006": "it may only be read; open it without read-only access, on a server that is not a standby",
    "42501": "access was denied; ask for the rights to read and write the tables of this schema",
    "42P01": "a table is missing; restore the playbook from a copy",
    "53100": "the disk of the server is full and nothing was written; free some space and try again",
    "28": "the server does not let this user in; check the name, the password and the database",
    "3D": "there is no such database; create it first",
    "3F": "there is no such schema; create it first",
}
_INPUT: Final[Mapping[str, str]] = {
    "22": "PostgreSQL cannot hold this text",
    "54000": "an id is too long for PostgreSQL; expected at most 2,000 bytes",
}
_NO_DATABASE: Final = re.compile(r'database ".*" does not exist')
_REFUSED: Final = re.compile(r"authentication failed|does not exist|no pg_hba\.conf entry|no password supplied|invalid")
"""Connections that would fail again. The driver does not hand over the SQLSTATE of these two."""


@dataclass(frozen=True, slots=True)
class Server:
    """How to connect to the schema of one playbook."""

    place: str
    """The address without its password."""
    schema: str
    database: str
    parameters: dict[str, Any] = field(repr=False)

    def connect(self, *, autocommit: bool = False) -> psycopg.Connection[tuple[Any, ...]]:
        """A new connection. Errors of the driver pass through unchanged."""
        return psycopg.connect(**self.parameters, autocommit=autocommit)

    def key(self, purpose: str) -> int:
        """The key of an advisory lock. Each schema has its own."""
        name = f"acefraud\x00{self.database}\x00{self.schema}\x00{purpose}"
        return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)

    @property
    def channel(self) -> str:
        """The channel on which new events are announced."""
        return f"acefraud_{self.key('events') & 0xFFFFFFFFFFFFFFFF:016x}"


def find_server(address: str, *, create: bool, read_only: bool, durability: Durability, wait: float) -> Server:
    """Ask a server which schema an address means; create that if it is named and missing, unless told not to."""
    place = without_password(address)
    try:
        if has_bare_signs(address):
            raise psycopg.ProgrammingError
        given = conninfo_to_dict(address)
    except psycopg.Error:  # what it says may quote the password
        raise StoreError(
            f"{place} cannot be understood; expected postgresql://user:password@host:port/database, with signs such as "
            "@ and / in the password written as %40 and %2F"
        ) from None
    parameters = {**_DEFAULTS, **given, "client_encoding": "utf-8"}
    with psycopg.connect(**parameters, autocommit=True) as connection:
        asked = "SELECT current_database(), current_schema(), current_setting('synchronous_commit')"
        database, schema, synchronous = connection.execute(asked).fetchone() or ("", None, "on")
        if schema is None:
            schema = _create_schema(connection, place, create=create and not read_only)
    # Only the tables of this schema may be found, even if the search path names others.
    # Under another isolation level, what is read after waiting for the lock would be as it was before.
    options = {
        "search_path": f'"{schema}"',
        "lock_timeout": str(round(1000 * wait)),
        "default_transaction_isolation": "read committed",
    }
    if durability is Durability.PROCESS:
        options["synchronous_commit"] = "off"
    elif synchronous == "off":
        options["synchronous_commit"] = "on"
    if read_only:
        options["default_transaction_read_only"] = "on"
    said = " ".join([str(given.get("options", "")), *(f"-c{name}={_escaped(one)}" for name, one in options.items())])
    return Server(place, schema, database, {**parameters, "options": said.strip()})


def _create_schema(connection: psycopg.Connection[Any], place: str, *, create: bool) -> str:
    row = connection.execute("SELECT trim(split_part(current_setting('search_path'), ',', 1), ' \"')").fetchone()
    name = str(row[0]) if row else ""
    if not name or name.startswith("$"):
        raise StoreError(
            f"there is no schema {name or 'at all'} in {place}; name one with ?options=-csearch_path%3DNAME"
        )
    if not create:
        raise StoreError(f"there is no schema {name} in {place}; check the address. {_STARTED_BY}")
    connection.execute(psycopg.sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(psycopg.sql.Identifier(name)))
    return name


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def open_engine(server: Server, *, create: bool, read_only: bool) -> Engine:
    """An engine on a playbook at the newest schema. Errors of the driver pass through unchanged."""
    # The dialect would otherwise look for types that are not used here.
    engine = create_engine(
        "postgresql+psycopg://",
        hide_parameters=True,
        creator=server.connect,
        use_native_hstore=False,
        poolclass=QueuePool,
        pool_size=_POOLED,
        max_overflow=_BEYOND,
        pool_use_lifo=True,
        isolation_level="READ COMMITTED",
    )
    event.listen(engine, "checkout", _check_alive)
    try:
        with engine.connect() as connection:
            found = _state(connection, server)
        if found.version != NEWEST:
            _bring_up(engine, server, found, create=create, read_only=read_only)
    except BaseException:
        engine.dispose()
        raise
    return engine


def is_alive(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server has not closed an idle connection. Asks only the operating system, so it takes no time."""
    try:
        for _ in range(2):  # the reason may have been sent before the end
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return not connection.closed


def _check_alive(connection: psycopg.Connection[Any], _record: object, _proxy: object) -> None:
    if not is_alive(connection):
        raise DisconnectionError("the server has closed the connection")


def _bring_up(engine: Engine, server: Server, found: FileState, *, create: bool, read_only: bool) -> None:
    """Create the tables or migrate them in one transaction. Others who open it at the same time wait."""
    from acefraud.storage.migrations import upgrade  # noqa: PLC0415

    check_known(server.place, found)
    if found.version is None and (read_only or not create):
        raise StoreError(f"there is no playbook in {server.place}; check the address. {_STARTED_BY}")
    if read_only:
        raise StoreSchema(
            f"{server.place} has schema {found.version} and needs {NEWEST}; open it once for writing to bring it there"
        )
    with engine.begin() as connection:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (server.key("schema"),))
        found = _state(connection, server)  # another process may have been first
        check_known(server.place, found)
        upgrade(connection, found.version)


def _state(connection: Connection, server: Server) -> FileState:
    """What the schema holds. Only reads."""
    there = connection.exec_driver_sql("SELECT tablename FROM pg_tables WHERE schemaname = %s", (server.schema,))
    tables = set(there.scalars())
    if not tables & {*metadata.tables, "alembic_version"}:
        return FileState(ours=True)
    ours = meta.name in tables and "alembic_version" in tables
    marked = select(meta.c.value).where(meta.c.name == "application")
    if not ours or connection.execute(marked).scalar_one_or_none() != "acefraud":
        raise StoreSchema(
            f"the schema {server.schema} in {server.place} has tables of the same names that are not a playbook; "
            "it was left untouched, name another schema with ?options=-csearch_path%3DNAME"
        )
    version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
    return FileState(ours=True, version=version)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise StoreError for errors of PostgreSQL, and InputError for what it cannot hold."""
    try:
        yield
    except DBAPIError as error:
        raise _explained(place, error.orig or error) from error
    except psycopg.Error as error:
        raise _explained(place, error) from error
    except PoolTimeout as error:
        raise StoreUnavailable(f"playbook {place}: all connections are in use; try again later") from error
    except UnicodeEncodeError as error:
        raise InputError(f"PostgreSQL cannot hold this text: {error.reason}") from error


def _explained(place: str, error: BaseException) -> AcefraudError:
    state = getattr(error, "sqlstate", None)
    said = str(error).strip().partition("\n")[0]
    if isinstance(error, psycopg.DataError) or _found(_INPUT, state):
        return InputError(f"{_found(_INPUT, state) or _INPUT['22']} ({said})")
    if advice := _found(_UNAVAILABLE, state):
        return StoreUnavailable(f"playbook {place}: {advice} ({said})")
    if advice := _found(_ADVICE, state):
        return StoreError(f"playbook {place}: {advice} ({said})")
    if isinstance(error, psycopg.OperationalError) and state is None:
        if _REFUSED.search(said):
            advice = _ADVICE["3D" if _NO_DATABASE.search(said) else "28"]
            return StoreError(f"playbook {place}: {advice} ({said})")
        return StoreUnavailable(f"playbook {place}: the server cannot be reached; try again when it is up ({said})")
    return StoreError(f"playbook {place}: PostgreSQL refused ({said})")


def _found(advice: Mapping[str, str], state: str | None) -> str | None:
    return next((said for begins, said in advice.items() if state is not None and state.startswith(begins)), None)
