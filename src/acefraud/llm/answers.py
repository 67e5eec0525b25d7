"""The file that replies are kept in."""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

from pydantic import ValidationError

from acefraud.errors import StoreError
from acefraud.llm.calling import Reply

_OURS: Final = 0x41434641  # "ACFA", in the place of the header that SQLite leaves to applications
_VERSION: Final = 1
_WAIT_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.02
_AT_ONCE: Final = 500  # SQLite takes so many variables in one statement, and rather more


class AnswerFile:
    """Replies under the keys of their calls. Several processes may use the same file at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                # What is asked of a model is nobody else's business; SQLite gives its log the same permissions.
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            self._connection = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def get(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The replies that are there."""
        rows: list[tuple[str, bytes]] = []
        with self._lock, self._explained():
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows += self._connection.execute(f"SELECT key, body FROM answer WHERE key IN ({marks})", some)
        with self._explained():
            return {key: Reply.model_validate_json(zlib.decompress(body)) for key, body in rows}

    def put(self, replies: Mapping[str, Reply]) -> None:
        """File replies; they are on their way to the disk, and visible to everybody, when this returns."""
        rows = [(key, zlib.compress(reply.model_dump_json().encode(), 1)) for key, reply in replies.items()]
        with self._lock, self._explained(), self._transaction():
            self._connection.executemany("INSERT OR REPLACE INTO answer (key, body) VALUES (?, ?)", rows)

    def forget(self, *keys: str) -> None:
        """Drop the replies under these keys, where there are any."""
        with self._lock, self._explained(), self._transaction():
            self._connection.executemany("DELETE FROM answer WHERE key = ?", [(key,) for key in keys])

    def begin(self, keys: Sequence[str], process: int, seconds: float) -> None:
        """Note that a process has these calls under way, for so many seconds at most."""
        with self._lock, self._explained(), self._transaction():
            rows = [(key, process, time.time() + seconds) for key in keys]
            self._connection.executemany("INSERT OR REPLACE INTO under_way VALUES (?, ?, ?)", rows)

    def end(self, keys: Sequence[str]) -> None:
        """Note that they are under way no longer."""
        with self._lock, self._explained(), self._transaction():
            self._connection.executemany("DELETE FROM under_way WHERE key = ?", [(key,) for key in keys])

    def under_way(self, keys: Sequence[str]) -> bool:
        """Whether any of these calls is under way in a process that lives."""
        rows: list[tuple[int]] = []
        with self._lock, self._explained():
            if self._connection.execute("SELECT 1 FROM under_way LIMIT 1").fetchone() is None:
                return False
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                query = f"SELECT process FROM under_way WHERE until > ? AND key IN ({marks})"
                rows += self._connection.execute(query, (time.time(), *some))
        return any(_lives(process) for (process,) in rows)

    def close(self) -> None:
        """Close the file. Closing twice is harmless."""
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        self._check()
        self._use_log()
        self._connection.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the last replies, no more
        with self._transaction():
            self._check()  # another process may have come first
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS answer (key TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID"
            )
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS under_way (key TEXT PRIMARY KEY, process INTEGER NOT NULL, "
                "until REAL NOT NULL) WITHOUT ROWID"
            )
            self._connection.execute(f"PRAGMA application_id = {_OURS}")
            self._connection.execute(f"PRAGMA user_version = {_VERSION}")

    def _check(self) -> None:
        """Leave alone what is not ours."""
        (kind,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if kind != _OURS and (kind or version or tables):
            raise StoreError(f"{self._path} is no file of replies; it was left untouched, give another path")
        if kind == _OURS and version > _VERSION:
            raise StoreError(f"{self._path} was written by a newer version of acefraud; use that, or another path")

    def _use_log(self) -> None:
        """The log lets one process read while another writes. SQLite does not wait at this step, so this does."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"the file of replies {self._path} cannot be used ({error}); check it and its folder, delete it if it "
                "is damaged, or give another path"
            ) from error
        except (zlib.error, ValidationError) as error:
            raise StoreError(
                f"the file of replies {self._path} is damaged ({type(error).__name__}); delete it, or give another path"
            ) from error


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's, and alive
        return True
    return True
