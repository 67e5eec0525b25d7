"""A key-value store of bytes that a ledger keeps beside its events: what it is asked, and two in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol


class RowStore(Protocol):
    """Rows of bytes by key. Answers leave out keys that are not there."""

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows with these keys."""

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Insert or replace rows."""

    def forget_many(self, keys: Iterable[str]) -> None:
        """Delete the rows with these keys. Missing keys are ignored."""

    def clear(self) -> None:
        """Delete all rows."""


RowUpdate = Callable[[RowStore], None]
"""A function that changes the rows when its events are written."""


class MemoryRows:
    """Rows that live as long as the process.

    >>> store = MemoryRows()
    >>> store.put_many({"a": b"1"})
    >>> store.get_many(["a", "b"])
    {'a': b'1'}
    """

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows with these keys."""
        return {key: self.rows[key] for key in keys if key in self.rows}

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Insert or replace rows."""
        self.rows.update(rows)

    def forget_many(self, keys: Iterable[str]) -> None:
        """Delete the rows with these keys."""
        for key in keys:
            self.rows.pop(key, None)

    def clear(self) -> None:
        """Delete all rows."""
        self.rows.clear()


class BufferedRows:
    """Changes to another store that are only made by `write_to`. Reads see them at once.

    >>> store = MemoryRows()
    >>> store.put_many({"a": b"1"})
    >>> buffer = BufferedRows(store)
    >>> buffer.put_many({"a": b"2"})
    >>> store.get_many(["a"]), buffer.get_many(["a"])
    ({'a': b'1'}, {'a': b'2'})
    >>> buffer.write_to(store)
    >>> store.get_many(["a"])
    {'a': b'2'}
    """

    def __init__(self, store: RowStore) -> None:
        self._store = store
        self._changed: dict[str, bytes | None] = {}
        self._cleared = False

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows with these keys."""
        wanted = list(keys)
        unchanged = [] if self._cleared else [key for key in wanted if key not in self._changed]
        changed = {key: self._changed.get(key) for key in wanted}
        return self._store.get_many(unchanged) | {key: row for key, row in changed.items() if row is not None}

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Insert or replace rows."""
        self._changed.update(rows)

    def forget_many(self, keys: Iterable[str]) -> None:
        """Delete the rows with these keys."""
        self._changed.update(dict.fromkeys(keys))

    def clear(self) -> None:
        """Delete all rows."""
        self._changed.clear()
        self._cleared = True

    def write_to(self, store: RowStore) -> None:
        """Make the changes in a store."""
        if self._cleared:
            store.clear()
        store.forget_many(key for key, row in self._changed.items() if row is None)
        store.put_many({key: row for key, row in self._changed.items() if row is not None})
