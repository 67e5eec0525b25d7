"""Rows of a store as objects: read when they are asked for, written back when that is said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Generic, TypeVar

from acefraud.core.ledger import RowStore

T = TypeVar("T")


class Rows(Generic[T]):
    """A cache of one kind of rows. What was changed stays in it until it is written back."""

    def __init__(self, store: RowStore, load: Callable[[bytes], T], dump: Callable[[T], bytes], *, most: int) -> None:
        self._store, self._load, self._dump, self._most = store, load, dump, most
        self._rows: dict[str, T] = {}
        self._changed: set[str] = set()
        self._gone: set[str] = set()

    def get_many(self, keys: Iterable[str]) -> dict[str, T]:
        """The rows that are there."""
        wanted = list(keys)
        missing = [key for key in wanted if key not in self._rows and key not in self._gone]
        if missing:
            self._rows |= {key: self._load(kept) for key, kept in self._store.get_many(missing).items()}
        return {key: self._rows[key] for key in wanted if key in self._rows}

    def get(self, key: str) -> T | None:
        """One row, if it is there."""
        row = self._rows.get(key)
        return self.get_many([key]).get(key) if row is None else row

    def put(self, key: str, row: T) -> None:
        """Keep a row that is new or was changed."""
        self._rows[key] = row
        self._changed.add(key)
        self._gone.discard(key)

    def forget(self, keys: Iterable[str]) -> None:
        """Drop rows."""
        for key in keys:
            self._rows.pop(key, None)
            self._changed.discard(key)
            self._gone.add(key)

    def changed(self) -> dict[str, bytes]:
        """What has to be written back."""
        return {key: self._dump(self._rows[key]) for key in sorted(self._changed)}

    def gone(self) -> list[str]:
        """What has to be dropped from the store."""
        return sorted(self._gone)

    def settled(self) -> None:
        """All has been written; the cache may shrink again."""
        self._changed.clear()
        self._gone.clear()
        for key in list(islice(self._rows, max(0, len(self._rows) - self._most))):
            del self._rows[key]
