"""The row store of a playbook file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from sqlalchemy import Connection, delete
from sqlalchemy.dialects.sqlite import insert

from acefraud.storage.schema import history

_KEYS_PER_QUERY: Final = 10_000
"""SQLite limits how many values one query may name, to 32,766 unless it was built otherwise."""

K = TypeVar("K")


class SqliteRows:
    """Rows in a table, read and written on the connection of a unit of work."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows with these keys."""
        found: dict[str, bytes] = {}
        for some in chunked(keys):
            # Plain SQL: every decision asks many times, and building the query would take longer than running it.
            query = f"SELECT key, value FROM {history.name} WHERE key IN ({', '.join('?' * len(some))})"
            found |= {row.key: row.value for row in self._connection.exec_driver_sql(query, tuple(some))}
        return found

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Insert or replace rows."""
        if rows:
            put = insert(history)
            self._connection.execute(
                put.on_conflict_do_update(["key"], set_={"value": put.excluded.value}),
                [{"key": key, "value": value} for key, value in rows.items()],
            )

    def forget_many(self, keys: Iterable[str]) -> None:
        """Delete the rows with these keys."""
        for some in chunked(keys):
            self._connection.execute(delete(history).where(history.c.key.in_(some)))

    def clear(self) -> None:
        """Delete all rows."""
        self._connection.execute(delete(history))


def chunked(keys: Iterable[K]) -> Iterator[list[K]]:
    """The keys in lists short enough for one query."""
    wanted = list(keys)
    for start in range(0, len(wanted), _KEYS_PER_QUERY):
        yield wanted[start : start + _KEYS_PER_QUERY]
