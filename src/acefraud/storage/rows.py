"""Rows of bytes beside the ledger: in a table, and as changes that are not made yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sqlalchemy import Connection, delete
from sqlalchemy.dialects.sqlite import insert

from acefraud.core.ledger import RowStore
from acefraud.storage.schema import history

_AT_ONCE: Final = 500
"""Keys that one query names: SQLite allows only so many."""


class SqliteRows:
    """Rows in the table of a file, inside the transaction of a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows of these keys. Asked for many times in each decision, so the query is not built anew each time."""
        found: dict[str, bytes] = {}
        for some in some_at_a_time(keys):
            places = ", ".join("?" * len(some))
            query = f"SELECT key, value FROM {history.name} WHERE key IN ({places})"
            found |= {row.key: row.value for row in self._connection.exec_driver_sql(query, tuple(some))}
        return found

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Keep these rows."""
        if rows:
            put = insert(history)
            self._connection.execute(
                put.on_conflict_do_update(["key"], set_={"value": put.excluded.value}),
                [{"key": key, "value": value} for key, value in rows.items()],
            )

    def forget_many(self, keys: Iterable[str]) -> None:
        """Drop the rows of these keys."""
        for some in some_at_a_time(keys):
            self._connection.execute(delete(history).where(history.c.key.in_(some)))

    def clear(self) -> None:
        """Drop all rows."""
        self._connection.execute(delete(history))


def some_at_a_time(keys: Iterable[str]) -> Iterator[list[str]]:
    """As many as one query may name."""
    wanted = list(keys)
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]


class DraftRows:
    """Changes to rows that are made only when that is said; seen through it, they are made already.

    >>> from acefraud.history import MemoryRows
    >>> kept = MemoryRows()
    >>> kept.put_many({"a": b"1"})
    >>> draft = DraftRows(kept)
    >>> draft.put_many({"a": b"2"})
    >>> kept.get_many(["a"]), draft.get_many(["a"])
    ({'a': b'1'}, {'a': b'2'})
    >>> draft.make(kept)
    >>> kept.get_many(["a"])
    {'a': b'2'}
    """

    def __init__(self, below: RowStore) -> None:
        self._below = below
        self._changed: dict[str, bytes | None] = {}
        self._cleared = False

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows of these keys."""
        wanted = list(keys)
        unchanged = [] if self._cleared else [key for key in wanted if key not in self._changed]
        changed = {key: self._changed.get(key) for key in wanted}
        found = self._below.get_many(unchanged)
        return found | {key: value for key, value in changed.items() if value is not None}

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Keep these rows."""
        self._changed.update(rows)

    def forget_many(self, keys: Iterable[str]) -> None:
        """Drop the rows of these keys."""
        self._changed.update(dict.fromkeys(keys))

    def clear(self) -> None:
        """Drop all rows."""
        self._changed.clear()
        self._cleared = True

    def make(self, rows: RowStore) -> None:
        """Make the changes."""
        if self._cleared:
            rows.clear()
        rows.forget_many(key for key, value in self._changed.items() if value is None)
        rows.put_many({key: value for key, value in self._changed.items() if value is not None})
