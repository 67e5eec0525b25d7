"""The reply cache: a call that was answered once is not sent again, by this process or another."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from pydantic import ValidationError

from acefraud.errors import StoreError
from acefraud.llm.call import Call, Reply, Role

_APPLICATION_ID: Final = 0x41434641  # "ACFA", in the header field that SQLite reserves for applications
_VERSION: Final = 1
_BUSY_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.02


class ReplyCache:
    """Replies in an SQLite file, by the key of their call. Several processes may use one file at once.

    Vectors are stored one per text, so only texts never seen before are sent, in one call.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._in_flight: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]] = (
            WeakKeyDictionary()
        )
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                # Readable by its owner only: prompts are private. SQLite gives its log the same permissions.
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    async def answer(self, call: Call, send: Callable[[Call], Awaitable[Reply]]) -> Reply:
        """The cached reply, or a new one, which is stored. An equal call in flight is waited for, not paid twice."""
        locks = self._in_flight.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        async with locks.setdefault(call.key, asyncio.Lock()):
            if call.role is Role.EMBEDDING:
                return await self._embed(call, send)
            known = self.get([call.key])
            if known:
                return known[call.key].paid_before()
            reply = await send(call)
            self.put({call.key: reply})
            return reply

    async def _embed(self, call: Call, send: Callable[[Call], Awaitable[Reply]]) -> Reply:
        keys = dict(zip(call.texts, _keys(call), strict=True))
        # In a thread: thousands of vectors take long enough to hold up the event loop.
        known = await asyncio.to_thread(self.get, list(keys.values()))
        unseen = tuple(text for text, key in keys.items() if key not in known)
        reply = Reply().paid_before()
        if unseen:
            reply = await send(call.model_copy(update={"texts": unseen}))
            fresh = {keys[text]: Reply(vectors=(row,)) for text, row in zip(unseen, reply.vectors, strict=True)}
            await asyncio.to_thread(self.put, fresh)
            known |= fresh
        return reply.model_copy(update={"vectors": tuple(known[keys[text]].vectors[0] for text in call.texts)})

    def forget(self, call: Call) -> None:
        """Drop an unusable reply, so that the call is sent again the next time."""
        with self._writing() as connection:
            connection.executemany("DELETE FROM answer WHERE key = ?", [(key,) for key in _keys(call)])

    def get(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The replies that are stored under these keys."""
        query = "SELECT key, body FROM answer WHERE key IN (SELECT value FROM json_each(?))"
        with self._explained():
            with self._lock:
                rows = self._connection.execute(query, (json.dumps(keys),)).fetchall()
            return {key: Reply.model_validate_json(zlib.decompress(body)) for key, body in rows}

    def put(self, replies: Mapping[str, Reply]) -> None:
        """Store replies. Other processes see them once this returns."""
        rows = [(key, zlib.compress(reply.model_dump_json().encode(), 1)) for key, reply in replies.items()]
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO answer (key, body) VALUES (?, ?)", rows)

    def close(self) -> None:
        """Close the file. Closing twice is harmless."""
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        self._check()
        self._enable_wal()
        self._connection.execute("PRAGMA synchronous = NORMAL")  # a power cut may lose the last replies, no more
        with self._writing() as connection:
            self._check()  # another process may have created the file meanwhile
            connection.execute(
                "CREATE TABLE IF NOT EXISTS answer (key TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID"
            )
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")

    def _check(self) -> None:
        """Refuse a file that is not a reply cache."""
        (kind,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if kind != _APPLICATION_ID and (kind or version or tables):
            raise StoreError(f"{self._path} is not a reply cache; it was left unchanged, give another path")
        if kind == _APPLICATION_ID and version > _VERSION:
            raise StoreError(f"{self._path} was written by a newer version of acefraud; use that, or another path")

    def _enable_wal(self) -> None:
        """Let one process read while another writes. SQLite's busy timeout does not cover this step, so poll."""
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_SECONDS)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The connection in a transaction, which is rolled back after an error."""
        with self._lock, self._explained(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"the reply cache {self._path} cannot be used ({error}); check the file and its folder, delete it if "
                "it is damaged, or give another path"
            ) from error
        except (zlib.error, ValidationError) as error:
            raise StoreError(
                f"the reply cache {self._path} is damaged ({type(error).__name__}); delete it, or give another path"
            ) from error


def _keys(call: Call) -> list[str]:
    """The keys that the reply is stored under: one for each text to embed."""
    if call.role is not Role.EMBEDDING:
        return [call.key]
    return [call.model_copy(update={"texts": (text,)}).key for text in call.texts]
