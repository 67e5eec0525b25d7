"""Stored rows as objects: a cache of them, and their JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Generic, TypeVar

from acefraud.core.ledger import RowStore

T = TypeVar("T")


class RowCache(Generic[T]):
    """One kind of rows as objects. Changed rows stay in the cache until they are written back."""

    def __init__(self, store: RowStore, load: Callable[[bytes], T], dump: Callable[[T], bytes], *, most: int) -> None:
        self._store, self._load, self._dump, self._most = store, load, dump, most
        self._rows: dict[str, T] = {}
        self._changed: set[str] = set()
        self._dropped: set[str] = set()

    def get_many(self, keys: Iterable[str]) -> dict[str, T]:
        """The rows that exist."""
        wanted = list(keys)
        missing = [key for key in wanted if key not in self._rows and key not in self._dropped]
        if missing:
            self._rows |= {key: self._load(row) for key, row in self._store.get_many(missing).items()}
        return {key: self._rows[key] for key in wanted if key in self._rows}

    def get(self, key: str) -> T | None:
        """One row, if it exists."""
        row = self._rows.get(key)
        return self.get_many([key]).get(key) if row is None else row

    def put(self, key: str, row: T) -> None:
        """Keep a new or changed row."""
        self._rows[key] = row
        self._changed.add(key)
        self._dropped.discard(key)

    def forget(self, keys: Iterable[str]) -> None:
        """Drop rows."""
        for key in keys:
            self._rows.pop(key, None)
            self._changed.discard(key)
            self._dropped.add(key)

    def drain(self) -> tuple[dict[str, bytes], list[str]]:
        """The rows to write to the store and the keys to drop from it. The cache may shrink after that."""
        changed, dropped = {key: self._dump(self._rows[key]) for key in sorted(self._changed)}, sorted(self._dropped)
        self._changed.clear()
        self._dropped.clear()
        for key in list(islice(self._rows, max(0, len(self._rows) - self._most))):
            del self._rows[key]
        return changed, dropped


def to_json(content: Any) -> bytes:
    """Compact JSON."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def from_json(row: bytes) -> Any:
    """The content of `to_json`."""
    return json.loads(row.decode("utf-8", "surrogatepass"))
