"""Opening a playbook file: recognise it, migrate it, and set up its connections."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError

from acefraud.errors import StoreError, StoreSchema
from acefraud.settings import Durability
from acefraud.storage.file_errors import not_a_playbook
from acefraud.storage.schema import NEWEST, FileState, check_known, file_state

WAIT_SECONDS: Final = 30.0
"""How long a connection waits for the lock."""

_SYNCHRONOUS: Final = {Durability.POWER: "FULL", Durability.PROCESS: "NORMAL"}
_LOCKS: Final = "acefraud_locks"
_PAUSE_SECONDS: Final = 0.02
_TRY_EVERY: Final = 0.002
"""How often, in seconds, somebody who waits for the write lock tries to get it."""
_JITTER: Final = Random()
_FIRST_PAGE: Final = 4096


def open_engine(path: Path, *, create: bool, read_only: bool, durability: Durability, wait: float) -> Engine:
    """An engine on a playbook file at the newest schema. Errors of SQLite pass through unchanged."""
    exists = path.exists()
    if not exists and (read_only or not create):
        raise StoreError(f"there is no playbook at {path}; check the path, or create one there first")
    if exists and not path.is_file():
        raise StoreError(f"{path} is not a file; give the path of a playbook file")
    found = inspect_file(path, wait) if exists else FileState(ours=True)
    if not found.ours:
        raise not_a_playbook(path)
    if found.version != NEWEST:
        check_known(str(path), found)
    if read_only:
        if found.version != NEWEST:
            raise StoreSchema(
                f"{path} has schema {found.version or 'none'} and needs {NEWEST}; "
                "open it once for writing to bring it there"
            )
        return _engine(path, "ro", wait)
    engine = _engine(path, "rw" if exists else "rwc", wait, durability)
    try:
        _use_wal(engine, path, wait, new=found.version is None)
        if found.version != NEWEST:
            _upgrade(engine, path)
    except BaseException:
        engine.dispose()
        raise
    return engine


def locking(engine: Engine) -> Engine:
    """An engine that takes the write lock before it reads, so that what it reads stays true until it writes."""
    return engine.execution_options(**{_LOCKS: True})


def _engine(path: Path, mode: str, wait: float, durability: Durability = Durability.POWER) -> Engine:
    address = f"{path.absolute().as_uri()}?mode={mode}"

    def connect() -> sqlite3.Connection:
        # Without an isolation level the driver never begins or commits by itself, so that only `_begin` does and
        # schema changes can be rolled back.
        return sqlite3.connect(address, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)

    def set_up(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        connection.execute("PRAGMA foreign_keys = ON")

    # Without an overflow limit threads never wait for the pool, so the lock is the only thing that times out.
    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, max_overflow=-1, hide_parameters=True)
    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", partial(_begin, wait=wait))
    return engine


def _begin(connection: Connection, wait: float) -> None:
    locks: Any = connection.get_execution_options().get(_LOCKS, False)
    if not locks:
        connection.exec_driver_sql("BEGIN")
        return
    # SQLite's own waits grow with every try, so that whoever has waited longest tries least often. Here all who wait
    # try equally often, so nobody starves.
    cursor = connection.connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 0")
    deadline = time.monotonic() + wait
    try:
        while True:
            try:
                cursor.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_JITTER.uniform(0.5, 1.5) * _TRY_EVERY)
    finally:
        cursor.execute(f"PRAGMA busy_timeout = {round(1000 * wait)}")
        cursor.close()


def inspect_file(path: Path, wait: float) -> FileState:
    """What the file is, read through a connection that cannot write.

    SQLite must do the reading: closing an ordinary file handle would drop the locks that other connections of this
    process hold on the file. A crash while SQLite wrote the first page leaves a journal that only a writing
    connection can roll back. Such a file is blank, and `_upgrade` looks at it again before writing.
    """
    if path.stat().st_size == 1:  # SQLite takes a single byte for an empty file and would overwrite it
        return FileState(ours=False)
    engine = _engine(path, "ro", wait)
    try:
        with engine.connect() as connection:
            return file_state(connection)
    except DBAPIError as error:
        code = getattr(error.orig, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_READONLY_ROLLBACK and path.stat().st_size <= _FIRST_PAGE:
            return FileState(ours=True)
        raise
    finally:
        engine.dispose()


def _use_wal(engine: Engine, path: Path, wait: float, *, new: bool) -> None:
    """Switch to write-ahead logging, so that readers and writers do not block each other.

    A new file is set up so that it can shrink while it is in use: later that would need a copy. SQLite does not wait
    for locks here, so this does.
    """
    deadline = time.monotonic() + wait
    with closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        while True:
            try:
                if new:
                    cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")
                (mode,) = cursor.execute("PRAGMA journal_mode = WAL").fetchone()
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)
    if mode != "wal":
        raise StoreError(f"playbook {path}: its disk cannot hold a write-ahead log; put it on a local disk")


def _upgrade(engine: Engine, path: Path) -> None:
    """Migrate the file in one unit of work, so that a crash leaves the schema it had."""
    from acefraud.storage.migrations import upgrade  # noqa: PLC0415

    with locking(engine).begin() as connection:
        found = file_state(connection)  # another process may have been first
        if not found.ours:
            raise not_a_playbook(path)
        check_known(str(path), found)
        upgrade(connection, found.version)
