"""Rows of bytes in memory: where what is remembered of entities is kept unless another place is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


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
        """The rows of these keys."""
        return {key: self.rows[key] for key in keys if key in self.rows}

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Keep these rows."""
        self.rows.update(rows)

    def forget_many(self, keys: Iterable[str]) -> None:
        """Drop the rows of these keys."""
        for key in keys:
            self.rows.pop(key, None)

    def clear(self) -> None:
        """Drop all rows."""
        self.rows.clear()
