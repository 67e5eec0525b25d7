"""A ledger in a schema of PostgreSQL, for several processes on several machines.

What `append` has returned survives a crash of the server, unless that is told otherwise. Appends of all processes take
turns, so that events are numbered without gaps in the order of their commits: who has seen one has seen all before it.
Errors are translated into ours with advice on what to do, and without passwords.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Final, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict

from acefraud.errors import AcefraudError, InputError, StoreError, StoreSchema, StoreUnavailable
from acefraud.settings import Durability
from acefraud.storage.driver import POSTGRESQL, Driver
from acefraud.storage.schema import NEWEST, TABLES, FileState
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sql_reading import LAST_EVENT, WAIT_SECONDS
from acefraud.support.database_address import has_bare_signs, without_password

logging.getLogger("psycopg").addHandler(logging.NullHandler())
"""Without a handler the driver writes to standard error what is raised anyway."""

_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "acefraud",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds; keepalives do not cover what was sent and not acknowledged
}
"""For what the address does not say."""
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
_LOOK_EVERY: Final = 0.5
"""Seconds after which somebody who waits for events looks whether the ledger was closed."""
_LOCK: Final = "SELECT pg_advisory_xact_lock(%s)"
_MOST_READERS: Final = 6
"""Threads wait a moment if so many read. A server has a hundred connections, unless it is told otherwise, for all
processes together."""
_DriverConnection = psycopg.Connection[tuple[Any, ...]]


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
    settings = [f"-c{name}={_escaped(value)}" for name, value in options.items()]
    said = " ".join([str(given.get("options", "")), *settings])
    return Server(place, schema, database, {**parameters, "options": said.strip()})


def _create_schema(connection: psycopg.Connection[Any], place: str, *, create: bool) -> str:
    row = connection.execute("SELECT trim(split_part(current_setting('search_path'), ',', 1), ' \"')").fetchone()
    name = str(row[0]) if row else ""
    if not name or name.startswith("$"):
        raise StoreError(
            f"there is no schema {name or 'at all'} in {place}; name one with ?options=-csearch_path%3DNAME"
        )
    if not create:
        raise StoreError(f"there is no schema {name} in {place}; check the address").helped_by("start a playbook")
    connection.execute(psycopg.sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(psycopg.sql.Identifier(name)))
    return name


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


class PostgresLedger(SqlLedger):
    """Events, cases, rows and the checkpoint in one schema. Threads and processes can share it."""

    def __init__(self, address: str, server: Server, *, read_only: bool = False) -> None:
        connect = partial(server.connect, autocommit=True)
        super().__init__(server.place, POSTGRESQL, connect, most_readers=_MOST_READERS, read_only=read_only)
        self.origin = address
        self._server = server
        self._writer: _DriverConnection | None = None
        """The connection of the thread that commits."""
        self._claiming = Lock()
        self._claims: _DriverConnection | None = None
        """The connection that holds the locks of all claims."""
        self._claimed: set[str] = set()
        self._listeners: list[_DriverConnection] = []
        """Connections that listen, and that nobody waits on."""

    @classmethod
    def open(
        cls,
        address: str,
        *,
        create: bool = True,
        read_only: bool = False,
        durability: Durability = Durability.POWER,
        wait: float = WAIT_SECONDS,
    ) -> Self:
        """Open a playbook in a database and migrate it; create its tables if they are missing, unless told not to.

        `wait` is how many seconds to wait for another process that holds the lock. Raises StoreSchema if the schema
        has other tables or a newer playbook, StoreUnavailable if the server cannot be reached, StoreError otherwise.
        """
        with translated(without_password(address)):
            server = find_server(address, create=create, read_only=read_only, durability=durability, wait=wait)
            with server.connect(autocommit=True) as connection:
                found = _state(connection, server)
            if found.version != NEWEST:
                _bring_up(server, found, create=create, read_only=read_only)
        return cls(address, server, read_only=read_only)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r})"

    # --- claims ---

    @contextmanager
    def claim(self, work: str) -> Iterator[bool]:
        """Try to be the only one who does some work: a lock of the server, which ends with the process."""
        self._check_open()
        with self.translated(), self._claiming:
            free = work not in self._claimed and self._try_lock(work)
            if free:
                self._claimed.add(work)
        try:
            yield free
        finally:
            if free:
                with self._claiming:
                    self._claimed.discard(work)
                    self._unlock(work)

    def _try_lock(self, work: str) -> bool:
        if self._claims is None or not is_alive(self._claims):
            self._claims = self._server.connect(autocommit=True)
        key = self._server.key(f"claim {work}")
        row = self._claims.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()
        return row is not None and bool(row[0])

    def _unlock(self, work: str) -> None:
        """Give a lock back. If that fails the connection is closed, which gives back all of its locks."""
        if self._claims is None:
            return
        try:
            self._claims.execute("SELECT pg_advisory_unlock(%s)", (self._server.key(f"claim {work}"),))
        except psycopg.Error:
            self._claims.close()
            self._claims = None

    # --- waiting ---

    def wait_for_events(self, after: int, timeout: float) -> bool:
        """Wait until there are events other than decisions after a number. False if the time is up before.

        A connection that breaks is replaced. Raises StoreUnavailable if there is none when the time is up.
        """
        deadline = time.monotonic() + timeout
        while True:
            self._check_open()
            try:
                with self.translated(), self._listening() as connection:
                    return self._wait_on(connection, after, deadline)
            except StoreUnavailable:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(max(0.0, min(_LOOK_EVERY, deadline - time.monotonic())))

    def _wait_on(self, connection: _DriverConnection, after: int, deadline: float) -> bool:
        row = connection.execute(LAST_EVENT).fetchone()
        while row is None or int(row[0]) <= after:
            self._check_open()
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for told in connection.notifies(timeout=min(left, _LOOK_EVERY), stop_after=1):
                row = (told.payload,)
        return True

    @contextmanager
    def _listening(self) -> Iterator[_DriverConnection]:
        connection = self._listeners.pop() if self._listeners else None
        if connection is None or not is_alive(connection):
            connection = self._server.connect(autocommit=True)
        try:
            connection.execute(f"LISTEN {self._server.channel}")
            yield connection
        except BaseException:
            connection.close()
            raise
        self._listeners.append(connection)

    def _announce(self, driver: Driver, last: int) -> None:
        driver.ask("SELECT pg_notify(?, ?)", (self._server.channel, str(last)))

    # --- connections ---

    def translated(self) -> AbstractContextManager[None]:
        """Raise StoreError for errors of PostgreSQL."""
        return translated(self.place)

    @contextmanager
    def _locked(self) -> Iterator[Driver]:
        """The connection that writes, with the write lock.

        Statements are sent without waiting for the answers of those before, so that the server is waited for three
        times to append: to have the lock, to know what is in the way, and to have committed.
        """
        self._check_open()
        with self.translated():
            if self._writer is None or not is_alive(self._writer):
                self._writer = self._server.connect()
                self._pieces = {}  # a server that came back may have lost the last commits, if it was told it may
            writer = self._writer
            try:
                with writer.pipeline():
                    writer.execute(_LOCK, (self._server.key("append"),))
                    yield Driver(writer, POSTGRESQL)
                    writer.commit()
            except BaseException:
                with suppress(psycopg.Error):
                    writer.rollback()
                if writer.closed:
                    self._writer = None
                raise

    def _is_alive(self, connection: Any) -> bool:
        return is_alive(connection)

    def _close_connections(self) -> None:
        for connection in (self._writer, self._claims, *self._listeners):
            if connection is not None:
                connection.close()
        self._writer = self._claims = None
        self._listeners.clear()


def is_alive(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server has not closed an idle connection. Asks only the operating system, so it takes no time."""
    try:
        for _ in range(2):  # the reason may have been sent before the end
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return not connection.closed


def _bring_up(server: Server, found: FileState, *, create: bool, read_only: bool) -> None:
    """Create the tables or migrate them in one transaction. Others who open it at the same time wait."""
    from acefraud.storage.migrations import migrating, upgrade  # noqa: PLC0415

    found.check_known(server.place)
    if found.version is None and (read_only or not create):
        raise StoreError(f"there is no playbook in {server.place}; check the address").helped_by("start a playbook")
    if read_only:
        raise StoreSchema(
            f"{server.place} has schema {found.version} and needs {NEWEST}; open it once for writing to bring it there"
        )
    # The dialect would otherwise look for types that are not used here.
    with migrating("postgresql+psycopg://", server.connect, use_native_hstore=False) as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        driver.execute(_LOCK, (server.key("schema"),))
        found = _state(driver, server)  # another process may have been first
        found.check_known(server.place)
        upgrade(connection, found.version)
        driver.commit()


def _state(connection: psycopg.Connection[Any], server: Server) -> FileState:
    """What the schema holds. Only reads."""
    there = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (server.schema,))
    tables = {name for (name,) in there}
    if not tables & {*TABLES, "alembic_version"}:
        return FileState(ours=True)
    marked = "SELECT value FROM meta WHERE name = 'application'"
    if not tables >= {"meta", "alembic_version"} or connection.execute(marked).fetchone() != ("acefraud",):
        raise StoreSchema(
            f"the schema {server.schema} in {server.place} has tables of the same names that are not a playbook; "
            "it was left untouched, name another schema with ?options=-csearch_path%3DNAME"
        )
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return FileState(ours=True, version=row and row[0])


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise StoreError for errors of PostgreSQL, and InputError for what it cannot hold."""
    try:
        yield
    except psycopg.Error as error:
        raise _explained(place, error) from error
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
