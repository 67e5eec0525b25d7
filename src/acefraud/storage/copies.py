"""Complete copies of playbooks, made while others use them: of files, and from a database to a file and back.

This is also how a team moves to a database. API keys are not copied: they belong to the place, and only there can they
be revoked.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from acefraud.core.ledger import Ledger
from acefraud.errors import StoreError
from acefraud.settings import Durability
from acefraud.storage.driver import Driver
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.schema import TABLES, CaseRow, insertion
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sql_reading import WAIT_SECONDS
from acefraud.storage.sqlite import SqliteLedger, connection_to, inspect_file, not_a_playbook, translated

_BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a file. Left over beside another file of the same name, it would be taken for its own."""
_ROWS_AT_ONCE: Final = 1_000
_CONTENT: Final = ("events", "decisions", "cases", "history", "requests")
"""Tables that are empty in a new playbook."""
_OF_THE_PLACE: Final = ("meta", "api_keys")
"""What the database is, and who may call the service that uses it."""


def copy_playbook(source: Path, target: Path, *, force: bool = False) -> int:
    """Copy a playbook as it is at one moment, without free pages. Returns the size of the copy in bytes.

    Others may write meanwhile. The copy has its name only once it is complete and on the disk. With `force` it replaces
    what is there, but for its API keys: they belong to the place, so no key of the source is copied. Raises StoreError
    if the target is in use or `force` is not given, or if the source is damaged; StoreSchema if the source is not a
    playbook.
    """
    _check_source(source)
    if target.exists() and source.samefile(target):
        raise StoreError(f"{target} is the playbook that is to be copied; give another path")
    check_target(target, force=force)
    with translated(target):
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        os.close(handle)
        part = Path(name)
        try:
            with closing(connection_to(source, "ro")) as connection:
                if connection.execute("PRAGMA auto_vacuum").fetchone() == (0,):  # a file of an earlier version
                    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of the copy
                # Unlike the backup API of SQLite, this does not start again when another process writes.
                connection.execute("VACUUM INTO ?", (name,))
            shutil.copymode(source, part)
            _replace_keys(part, _clear(target))
            sync(part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        sync(target.parent)
        return target.stat().st_size


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check_source(source: Path) -> None:
    if not source.is_file():
        raise StoreError(f"there is no playbook at {source}; check the path")
    with translated(source):
        found = inspect_file(source, WAIT_SECONDS)
        if not found.ours or found.version is None:
            raise not_a_playbook(source)
        with closing(connection_to(source, "ro")) as connection:
            ((verdict,), *_) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if verdict != "ok":
        raise StoreError(f"playbook {source}: it is damaged and was not copied; use another copy ({verdict})")


def check_target(target: Path, *, force: bool) -> None:
    """Raise StoreError if there is something at a path that may not be replaced."""
    there = next((path for path in (target, *_companions(target)) if path.exists()), None)
    if there is not None and not force:
        raise StoreError(f"{there} exists already; give another path").helped_by("replace the file")


def _clear(target: Path) -> Sequence[Mapping[str, Any]]:
    """Make sure that nobody uses the file that is replaced, and remove what SQLite has left beside it.

    Returns the API keys in it; none if it is damaged or something else.
    """
    keys: Sequence[Mapping[str, Any]] = ()
    if target.exists():
        try:
            with closing(connection_to(target, "rw")) as connection:
                connection.execute("PRAGMA busy_timeout = 0")
                # Refused while others have it open. Nothing is written to the file, which a kill might leave half-done.
                connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("COMMIT")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                keys = _keys_in(connection)
        except sqlite3.DatabaseError as error:  # one that is damaged, or no database, can be replaced as it is
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StoreError(f"{target} is in use; stop those who use it, then try again") from error
    for companion in _companions(target):
        companion.unlink(missing_ok=True)
    return keys


def _replace_keys(part: Path, keys: Sequence[Mapping[str, Any]]) -> None:
    if keys:  # a file of an earlier version has no table for them
        SqliteLedger.open(part, create=False, durability=Durability.PROCESS).close()
    with closing(connection_to(part, "rw")) as connection:
        if _keys_in(connection):
            connection.execute("PRAGMA secure_delete = ON").fetchall()
            connection.execute("DELETE FROM api_keys")
        for key in keys:
            columns, marks = ", ".join(key), ", ".join("?" * len(key))
            connection.execute(f"INSERT INTO api_keys ({columns}) VALUES ({marks})", tuple(key.values()))


def _keys_in(connection: sqlite3.Connection) -> Sequence[Mapping[str, Any]]:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'api_keys'").fetchall():
        return ()
    found = connection.execute("SELECT * FROM api_keys")
    names = [name for name, *_ in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def _companions(target: Path) -> list[Path]:
    return [target.with_name(target.name + ending) for ending in _BESIDE]


def write_to_file(ledger: SqlLedger, target: Path, *, force: bool = False) -> int:
    """Copy a playbook as it is at one moment to a file, which is a playbook itself. Returns its size in bytes.

    The file has its name only once it is complete and on the disk. With `force` it replaces what is there.
    """
    if isinstance(ledger, SqliteLedger):
        return copy_playbook(ledger.path, target, force=force)
    check_target(target, force=force)
    with draft_beside(target) as draft:
        opened = SqliteLedger.open(draft, durability=Durability.PROCESS)
        with opened as copy, ledger.reading() as source, copy.writing() as written:
            _copy_tables(source, written)
        return copy_playbook(draft, target, force=force)


def read_from_file(source: Path, ledger: SqlLedger) -> None:
    """Copy everything in a playbook file into a ledger, which must be empty. Either all of it is there, or nothing.

    API keys that the ledger has stay as they are. The file may have an earlier schema. Raises StoreError if it is
    damaged, or if the ledger is not empty.
    """
    with TemporaryDirectory(prefix="acefraud-") as folder:
        draft = Path(folder) / "playbook.db"
        copy_playbook(source, draft)  # which checks it; the copy is brought to the newest schema
        opened = SqliteLedger.open(draft, durability=Durability.PROCESS)
        with opened as copy, copy.reading() as read, ledger.writing() as written:
            if any(written.fetch(f"SELECT 1 FROM {table} LIMIT 1") for table in _CONTENT):
                raise StoreError(
                    f"playbook {ledger.place} is not empty and was left as it is; give a new database, or another "
                    "schema with ?options=-csearch_path%3DNAME"
                )
            _copy_tables(read, written)


@contextmanager
def draft_beside(target: Path) -> Iterator[Path]:
    """A place for a draft of a file, in a folder that is deleted afterwards."""
    if not target.parent.is_dir():
        raise StoreError(f"there is no folder {target.parent} to write {target.name} to")
    with translated(target), TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        yield Path(folder) / target.name


def _copy_tables(source: Driver, target: Driver) -> None:
    with _without_triggers(target):
        for table in TABLES:
            if table not in _OF_THE_PLACE:
                _copy(table, source, target)


def _copy(table: str, source: Driver, target: Driver) -> None:
    columns = TABLES[table]
    key, beyond, after = columns[0], "", ()
    while True:
        query = f"SELECT {', '.join(columns)} FROM {table} {beyond} ORDER BY {key} LIMIT {_ROWS_AT_ONCE}"
        rows = source.fetch(query, after)
        target.run_many(insertion(table), [_with_booleans(row) for row in rows] if table == "cases" else rows)
        if len(rows) < _ROWS_AT_ONCE:
            return
        beyond, after = f"WHERE {key} > ?", rows[-1][:1]


def _with_booleans(row: Sequence[Any]) -> CaseRow:
    """A row of a case for PostgreSQL, which takes no numbers for booleans. SQLite has only numbers."""
    case = CaseRow._make(row)
    return case._replace(is_fraud=bool(case.is_fraud), has_text=bool(case.has_text))


@contextmanager
def _without_triggers(driver: Driver) -> Iterator[None]:
    """Let rows in with the numbers they have. Archived decisions have left gaps."""
    if driver.dialect.has_arrays:
        for table in ("events", "decisions"):
            driver.ask(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield
        for table in ("events", "decisions"):
            driver.ask(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        return
    triggers = driver.fetch("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    for name, _ in triggers:
        driver.ask(f"DROP TRIGGER {name}")
    yield
    for _, sql in triggers:
        driver.ask(sql)


def save_ledger(ledger: Ledger, path: Path) -> None:
    """Write a whole ledger to a new file, which has its name only once it is complete."""
    if path.exists():
        raise StoreError(f"{path} exists already; give another path")
    if isinstance(ledger, SqlLedger):
        write_to_file(ledger, path)
        return
    if not isinstance(ledger, MemoryLedger):
        raise StoreError(f"a {type(ledger).__name__} cannot be written to a file")
    with draft_beside(path) as draft:
        with SqliteLedger.open(draft, durability=Durability.PROCESS) as copy:
            ledger.copy_to(copy)
        copy_playbook(draft, path)
