"""Opening a playbook file: what it is, whether it may be ours, and connections that keep their promises."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError

from acefraud.errors import StoreError, StoreSchema
from acefraud.storage.faults import not_a_playbook
from acefraud.storage.schema import NEWEST, Standing, standing

WAIT_SECONDS: Final = 30.0
"""How long a connection waits for another one that holds the lock."""

_WRITES: Final = "acefraud_writes"
_PAUSE_SECONDS: Final = 0.02
_FIRST_PAGE: Final = 4096


def open_engine(path: Path, *, create: bool, read_only: bool, wait: float) -> Engine:
    """An engine on a file that is ours and at the newest schema. Errors of SQLite pass through as they are."""
    exists = path.exists()
    if not exists and (read_only or not create):
        raise StoreError(f"there is no playbook at {path}; check the path, or create one there first")
    if exists and not path.is_file():
        raise StoreError(f"{path} is not a file; give the path of a playbook file")
    found = _look_at(path, wait) if exists else Standing(ours=True)
    if not found.ours:
        raise not_a_playbook(path)
    if read_only:
        if found.version != NEWEST:
            _refuse_unknown(path, found)
            raise StoreSchema(
                f"{path} has schema {found.version or 'none'} and needs {NEWEST}; "
                "open it once for writing to bring it there"
            )
        return _engine(path, "ro", wait)
    if found.version != NEWEST:
        _refuse_unknown(path, found)
    engine = _engine(path, "rw" if exists else "rwc", wait)
    try:
        _use_wal(engine, path, wait)
        if found.version != NEWEST:
            _upgrade(engine, path)
    except BaseException:
        engine.dispose()
        raise
    return engine


def writing(engine: Engine) -> Engine:
    """The same engine, taking the write lock at the start of a transaction: what is read in it stays true."""
    return engine.execution_options(**{_WRITES: True})


def _engine(path: Path, mode: str, wait: float) -> Engine:
    address = f"{path.absolute().as_uri()}?mode={mode}"

    def connect() -> sqlite3.Connection:
        # Without an isolation level the driver leaves transactions alone; `begin` below is then the only one to
        # start them, which makes schema changes part of them too.
        return sqlite3.connect(address, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)

    # Threads beyond the pool's size get a connection of their own rather than a second kind of time-out.
    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, max_overflow=-1)
    event.listen(engine, "connect", _promise)
    event.listen(engine, "begin", _begin)
    return engine


def _promise(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    writes: Any = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _look_at(path: Path, wait: float) -> Standing:
    """What the file is, through a connection that cannot write.

    SQLite has to do this: reading the header with an ordinary file handle would, when that is closed, drop the
    locks that other connections of this process hold on the file. A creation that was cut short while SQLite wrote
    the very first page leaves a journal to roll back, which takes a connection that may write; such a file is
    blank, and is looked at again before anything is made in it.
    """
    if path.stat().st_size == 1:  # SQLite takes a single byte for nothing and would write over it
        return Standing(ours=False)
    engine = _engine(path, "ro", wait)
    try:
        with engine.connect() as connection:
            return standing(connection)
    except DBAPIError as error:
        code = getattr(error.orig, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_READONLY_ROLLBACK and path.stat().st_size <= _FIRST_PAGE:
            return Standing(ours=True)
        raise
    finally:
        engine.dispose()


def _refuse_unknown(path: Path, found: Standing) -> None:
    from acefraud.storage.migrations import known_versions  # noqa: PLC0415

    if found.version is not None and found.version not in known_versions():
        raise StoreSchema(
            f"{path} has schema {found.version}, the newest this version of acefraud knows is {NEWEST}; "
            "use the version that wrote it, or a newer one"
        )


def _use_wal(engine: Engine, path: Path, wait: float) -> None:
    """The log makes readers independent of writers. SQLite does not wait for locks at this step, so this does."""
    deadline = time.monotonic() + wait
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        while True:
            try:
                (mode,) = cursor.execute("PRAGMA journal_mode = WAL").fetchone()
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)
    finally:
        connection.close()
    if mode != "wal":
        raise StoreError(f"playbook {path}: its disk cannot hold a write-ahead log; put it on a local disk")


def _upgrade(engine: Engine, path: Path) -> None:
    """Bring the file to the newest schema in one transaction, so that a crash leaves the one before."""
    from acefraud.storage.migrations import upgrade  # noqa: PLC0415

    with writing(engine).begin() as connection:
        found = standing(connection)  # another process may have come first
        if not found.ours:
            raise not_a_playbook(path)
        _refuse_unknown(path, found)
        upgrade(connection, found.version)
