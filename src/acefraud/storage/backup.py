"""A complete copy of a playbook file, made while others use it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from acefraud.errors import StoreError
from acefraud.settings import Durability
from acefraud.storage.connection import WAIT_SECONDS, inspect_file, open_engine
from acefraud.storage.file_errors import not_a_playbook, translated

_BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a file. Left over beside another file of the same name, it would be taken for its own."""


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
            with closing(_connected(source, "ro")) as connection:
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
        with closing(_connected(source, "ro")) as connection:
            ((verdict,), *_) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if verdict != "ok":
        raise StoreError(f"playbook {source}: it is damaged and was not copied; use another copy ({verdict})")


def check_target(target: Path, *, force: bool) -> None:
    """Raise StoreError if there is something at a path that may not be replaced."""
    there = next((one for one in (target, *_companions(target)) if one.exists()), None)
    if there is not None and not force:
        raise StoreError(f"{there} exists already; give another path, or replace it with --force")


def _clear(target: Path) -> Sequence[Mapping[str, Any]]:
    """Make sure that nobody uses the file that is replaced, and remove what SQLite has left beside it.

    Returns the API keys in it; none if it is damaged or something else.
    """
    keys: Sequence[Mapping[str, Any]] = ()
    if target.exists():
        try:
            with closing(_connected(target, "rw")) as connection:
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
    for one in _companions(target):
        one.unlink(missing_ok=True)
    return keys


def _replace_keys(part: Path, keys: Sequence[Mapping[str, Any]]) -> None:
    if keys:  # a file of an earlier version has no table for them
        open_engine(part, create=False, read_only=False, durability=Durability.PROCESS, wait=WAIT_SECONDS).dispose()
    with closing(_connected(part, "rw")) as connection:
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


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=WAIT_SECONDS, isolation_level=None)
