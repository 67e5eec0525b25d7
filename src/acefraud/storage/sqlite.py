"""A ledger in one SQLite file. What `append` has returned survives a killed process and, by default, a power cut."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, Engine

from acefraud.settings import Durability
from acefraud.storage.connection import WAIT_SECONDS, locking, open_engine
from acefraud.storage.driver import SQLITE, Driver, DriverConnection
from acefraud.storage.file_errors import translated
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sql_reading import LAST_SEQ


class SqliteLedger(SqlLedger):
    """Events, cases, rows and the checkpoint in one file. Threads and processes can share it."""

    def __init__(self, path: Path, engine: Engine, *, read_only: bool = False) -> None:
        super().__init__(str(path), SQLITE, engine, read_only=read_only)
        self.path = self.origin = path
        self._writer = locking(engine)
        self._kept: Connection | None = None
        """The connection of the thread that commits."""

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool = True,
        read_only: bool = False,
        durability: Durability = Durability.POWER,
        wait: float = WAIT_SECONDS,
    ) -> Self:
        """Open a file and migrate it to the newest schema; create it if it is missing, unless told not to.

        `wait` is how many seconds to wait for another process that holds the lock. Raises StoreSchema if the file
        is not a playbook or has a newer schema, StoreError if it cannot be opened.
        """
        with translated(path):
            engine = open_engine(path, create=create, read_only=read_only, durability=durability, wait=wait)
        return cls(path, engine, read_only=read_only)

    @contextmanager
    def claim(self, work: str) -> Iterator[bool]:
        """Try to be the only one who does some work: a lock on a file beside this one, which ends with the process.

        The file is an empty database, so that SQLite takes the lock, on every system and between threads too.
        """
        self._check_open()
        with translated(self.path):
            lock = sqlite3.connect(self._lock_of(work), timeout=0, isolation_level=None, check_same_thread=False)
        try:
            with translated(self.path):
                free = _try_lock(lock)
            yield free
        finally:
            lock.close()

    def _lock_of(self, work: str) -> Path:
        path = self.path.resolve()  # whatever the link that it was opened by
        return path.with_name(f"{path.name}-lock-{hashlib.sha256(work.encode()).hexdigest()[:8]}")

    def translated(self) -> AbstractContextManager[None]:
        """Raise StoreError for errors of SQLite."""
        return translated(self.path)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees the file as it is at one moment."""
        self._check_open()
        with translated(self.path), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection that holds the write lock. What it did is committed at the end, unless an exception ends it."""
        self._check_open()
        with translated(self.path), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def _writing_entries(self) -> Iterator[tuple[Driver, int]]:
        """A connection with the write lock for the thread that commits. It is kept: opening one takes longer."""
        self._check_open()
        if self._kept is None:
            self._kept = self._writer.connect()
        try:
            with self._kept.begin():
                driver = self._driver_of(self._kept)
                ((last,),) = driver.fetch(LAST_SEQ)
                yield driver, last
        except BaseException:
            self._give_back()
            raise

    def _give_back(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _connect(self) -> DriverConnection:
        return self._engine.raw_connection()

    def _is_alive(self, connection: DriverConnection) -> bool:  # noqa: ARG002 - a file does not go away
        return True

    def _driver_of(self, connection: Connection) -> Driver:
        return Driver(connection.connection, SQLITE)

    def _close_connections(self) -> None:
        self._give_back()


def _try_lock(lock: sqlite3.Connection) -> bool:
    try:
        lock.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
