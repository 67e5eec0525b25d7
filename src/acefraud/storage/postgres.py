"""A ledger in a schema of PostgreSQL, for several processes on several machines.

What `append` has returned survives a crash of the server, unless that is told otherwise. Appends of all processes take
turns, so that events are numbered without gaps in the order of their commits: who has seen one has seen all before it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Lock
from typing import Any, Final, Self

import psycopg
from sqlalchemy import Connection, Engine

from acefraud.errors import StoreUnavailable
from acefraud.settings import Durability
from acefraud.storage.connection import WAIT_SECONDS
from acefraud.storage.driver import POSTGRESQL, Driver, DriverConnection
from acefraud.storage.postgres_connection import Server, find_server, is_alive, open_engine, translated
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sql_reading import LAST_EVENT, LAST_SEQ

_LOOK_EVERY: Final = 0.5
"""Seconds after which somebody who waits for events looks whether the ledger was closed."""
_LOCK: Final = "SELECT pg_advisory_xact_lock(?)"
_DriverConnection = psycopg.Connection[tuple[Any, ...]]


class PostgresLedger(SqlLedger):
    """Events, cases, rows and the checkpoint in one schema. Threads and processes can share it."""

    def __init__(self, address: str, server: Server, engine: Engine, *, read_only: bool = False) -> None:
        super().__init__(server.place, POSTGRESQL, engine, read_only=read_only)
        self.origin = address
        self._server = server
        self._at_one_moment = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._kept: _DriverConnection | None = None
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
        from acefraud.storage.database_address import without_password  # noqa: PLC0415

        with translated(without_password(address)):
            server = find_server(address, create=create, read_only=read_only, durability=durability, wait=wait)
            engine = open_engine(server, create=create, read_only=read_only)
        return cls(address, server, engine, read_only=read_only)

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
    def reading(self) -> Iterator[Connection]:
        """A connection that sees the database as it is at one moment."""
        self._check_open()
        with self.translated(), self._at_one_moment.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection that holds the write lock. What it did is committed at the end, unless an exception ends it."""
        self._check_open()
        with self.translated(), self._engine.begin() as connection:
            connection.exec_driver_sql(POSTGRESQL.sql(_LOCK), (self._server.key("append"),))
            yield connection

    @contextmanager
    def _writing_entries(self) -> Iterator[tuple[Driver, int]]:
        """A connection of the driver that holds the write lock, for the thread that commits.

        Statements are sent without waiting for the answers of those before, so that the server is waited for three
        times: to have the lock, to know what is in the way, and to have committed.
        """
        self._check_open()
        if self._kept is None or not is_alive(self._kept):
            self._kept = self._server.connect()
            self._stored.clear()  # a server that came back may have lost the last commits, if it was told it may
        kept = self._kept
        try:
            with kept.pipeline():
                driver = Driver(kept, POSTGRESQL)
                driver.ask(_LOCK, (self._server.key("append"),))
                ((last,),) = driver.fetch(LAST_SEQ)
                yield driver, last
                kept.commit()
        except BaseException:
            with suppress(psycopg.Error):
                kept.rollback()
            if kept.closed:
                self._kept = None
            raise

    def _connect(self) -> DriverConnection:
        return self._server.connect(autocommit=True)

    def _is_alive(self, connection: DriverConnection) -> bool:
        assert isinstance(connection, psycopg.Connection)
        return is_alive(connection)

    def _driver_of(self, connection: Connection) -> Driver:
        return Driver(connection.connection, POSTGRESQL)

    def _close_connections(self) -> None:
        for one in (self._kept, self._claims, *self._listeners):
            if one is not None:
                one.close()
        self._kept = self._claims = None
        self._listeners.clear()
