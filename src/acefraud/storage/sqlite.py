"""A ledger in one SQLite file. What `append` has returned survives a killed process and, by default, a power cut."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Final, Self

from acefraud.errors import StoreError, StoreSchema, StoreUnavailable
from acefraud.settings import Durability
from acefraud.storage.driver import SQLITE, Driver
from acefraud.storage.schema import APPLICATION_ID, NEWEST, FileState
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sql_reading import WAIT_SECONDS

_SYNCHRONOUS: Final = {Durability.POWER: "FULL", Durability.PROCESS: "NORMAL"}
_MOST_READERS: Final = 10_000
"""Threads do not wait for each other to read, so the lock is the only thing that times out."""
_PAUSE_SECONDS: Final = 0.02
_TRY_EVERY: Final = 0.002
"""How often, in seconds, somebody who waits for the write lock tries to get it."""
_JITTER: Final = Random()
_FIRST_PAGE: Final = 4096
_ADVICE: Final[Mapping[int, str]] = {
    sqlite3.SQLITE_BUSY: "it is locked by another process; try again when that one is done",
    sqlite3.SQLITE_LOCKED: "it is locked by another connection; try again when that one is done",
    sqlite3.SQLITE_READONLY: (
        "it may only be read; allow writing to the file and its directory (where SQLite keeps its log, even for "
        "reading), work on a copy, or open it without read-only access"
    ),
    sqlite3.SQLITE_FULL: "the disk is full and nothing was written; free some space and try again",
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened; check that its directory exists and that files may be written there "
        "(also for reading: SQLite keeps its log beside the file)"
    ),
    sqlite3.SQLITE_PERM: "access was denied; check the permissions of the file and its directory",
    sqlite3.SQLITE_IOERR: "the disk failed while reading or writing; check the disk, then try again",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a copy",
}


def not_a_playbook(path: Path) -> StoreSchema:
    """The error for a file that is something else."""
    return StoreSchema(f"{path} is not an acefraud playbook; it was left untouched, give another path")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise StoreError for errors of SQLite and the file system."""
    try:
        yield
    except sqlite3.Error as error:
        # The lowest byte is the kind of error, the rest where in SQLite it arose.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            raise not_a_playbook(path) from error
        kind = StoreUnavailable if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else StoreError
        raise kind(f"playbook {path}: {_ADVICE.get(code, 'SQLite refused')} ({error})") from error
    except OSError as error:
        raise StoreError(f"playbook {path}: {_ADVICE[sqlite3.SQLITE_CANTOPEN]} ({error.strerror})") from error


class SqliteLedger(SqlLedger):
    """Events, cases, rows and the checkpoint in one file. Threads and processes can share it."""

    def __init__(
        self, path: Path, connect: Callable[[], sqlite3.Connection], *, wait: float, read_only: bool = False
    ) -> None:
        super().__init__(str(path), SQLITE, connect, most_readers=_MOST_READERS, read_only=read_only)
        self.path = self.origin = path
        self._wait = wait
        self._writer: sqlite3.Connection | None = None
        """The connection of the thread that commits. It is kept: opening one takes longer."""

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
            exists = path.exists()
            if not exists and (read_only or not create):
                raise StoreError(f"there is no playbook at {path}; check the path, or create one there first")
            if exists and not path.is_file():
                raise StoreError(f"{path} is not a file; give the path of a playbook file")
            found = inspect_file(path, wait) if exists else FileState(ours=True)
            if not found.ours:
                raise not_a_playbook(path)
            if found.version != NEWEST:
                found.check_known(str(path))
            if read_only and found.version != NEWEST:
                raise StoreSchema(
                    f"{path} has schema {found.version or 'none'} and needs {NEWEST}; "
                    "open it once for writing to bring it there"
                )
            mode = "ro" if read_only else "rw" if exists else "rwc"
            connect = partial(connection_to, path, mode, wait, durability)
            ledger = cls(path, connect, wait=wait, read_only=read_only)
            if not read_only:
                with ledger._borrowed() as driver:
                    _use_wal(driver, path, wait, new=found.version is None)
                    if found.version != NEWEST:
                        _upgrade(connect, path, wait)
        return ledger

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
    def _locked(self) -> Iterator[Driver]:
        self._check_open()
        with translated(self.path):
            if self._writer is None:
                self._writer = self._connect()
            writer = self._writer
            _begin_writing(writer, self._wait)
            try:
                yield Driver(writer, SQLITE)
                writer.commit()
            except BaseException:
                with suppress(sqlite3.Error):
                    writer.rollback()
                raise

    def _close_connections(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _try_lock(lock: sqlite3.Connection) -> bool:
    try:
        lock.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def connection_to(
    path: Path, mode: str, wait: float = WAIT_SECONDS, durability: Durability = Durability.POWER
) -> sqlite3.Connection:
    """A connection to a file, to read ("ro") or write it ("rw"), or to create it too ("rwc")."""
    # Without an isolation level the driver never begins or commits by itself, so that schema changes can be rolled
    # back.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _begin_writing(connection: sqlite3.Connection, wait: float) -> None:
    """Begin a transaction with the write lock, so that what it reads stays true until it writes.

    SQLite's own waits grow with every try, so that whoever has waited longest tries least often. Here all who wait try
    equally often, so nobody starves.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        _retry_while_busy(lambda: connection.execute("BEGIN IMMEDIATE"), wait, _TRY_EVERY)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(1000 * wait)}")


def _retry_while_busy(attempt: Callable[[], object], wait: float, every: float) -> None:
    deadline = time.monotonic() + wait
    while True:
        try:
            attempt()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_JITTER.uniform(0.5, 1.5) * every)
        else:
            return


def inspect_file(path: Path, wait: float) -> FileState:
    """What the file is, read through a connection that cannot write.

    SQLite must do the reading: closing an ordinary file handle would drop the locks that other connections of this
    process hold on the file. A crash while SQLite wrote the first page leaves a journal that only a writing
    connection can roll back. Such a file is blank, and `_upgrade` looks at it again before writing.
    """
    if path.stat().st_size == 1:  # SQLite takes a single byte for an empty file and would overwrite it
        return FileState(ours=False)
    try:
        with closing(connection_to(path, "ro", wait)) as connection:
            return _file_state(connection)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_READONLY_ROLLBACK and path.stat().st_size <= _FIRST_PAGE:
            return FileState(ours=True)
        raise


def _file_state(connection: sqlite3.Connection) -> FileState:
    """The state of the file behind a connection. Only reads."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    ((application_id,),) = connection.execute("PRAGMA application_id").fetchall()
    ((user_version,),) = connection.execute("PRAGMA user_version").fetchall()
    if application_id != APPLICATION_ID:
        return FileState(ours=not tables and application_id == 0 and user_version == 0)
    if "alembic_version" not in tables:
        return FileState(ours=True)
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return FileState(ours=True, version=row and row[0])


def _use_wal(driver: Driver, path: Path, wait: float, *, new: bool) -> None:
    """Switch to write-ahead logging, so that readers and writers do not block each other.

    A new file is set up so that it can shrink while it is in use: later that would need a copy. SQLite does not wait
    for locks here, so this does.
    """
    modes: list[str] = []

    def switch() -> None:
        if new:
            driver.ask("PRAGMA auto_vacuum = INCREMENTAL")
        modes.append(driver.value("PRAGMA journal_mode = WAL"))

    _retry_while_busy(switch, wait, _PAUSE_SECONDS)
    if modes != ["wal"]:
        raise StoreError(f"playbook {path}: its disk cannot hold a write-ahead log; put it on a local disk")


def _upgrade(connect: Callable[[], sqlite3.Connection], path: Path, wait: float) -> None:
    """Migrate the file in one unit of work, so that a crash leaves the schema it had."""
    from acefraud.storage.migrations import migrating, upgrade  # noqa: PLC0415

    with migrating("sqlite://", connect) as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        _begin_writing(driver, wait)
        found = _file_state(driver)  # another process may have been first
        if not found.ours:
            raise not_a_playbook(path)
        found.check_known(str(path))
        upgrade(connection, found.version)
        driver.commit()
