"""Errors of SQLite and the file system, translated into ours with advice on what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy.exc import DBAPIError

from acefraud.errors import StoreError, StoreSchema, StoreUnavailable

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
    except DBAPIError as error:
        raise _explained(path, error.orig or error) from error
    except sqlite3.Error as error:
        raise _explained(path, error) from error
    except OSError as error:
        raise StoreError(f"playbook {path}: {_ADVICE[sqlite3.SQLITE_CANTOPEN]} ({error.strerror})") from error


def _explained(path: Path, error: BaseException) -> StoreError:
    # The lowest byte is the kind of error, the rest where in SQLite it arose.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return not_a_playbook(path)
    kind = StoreUnavailable if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else StoreError
    return kind(f"playbook {path}: {_ADVICE.get(code, 'SQLite refused')} ({error})")
