"""Where the memory of entities is kept: one row of bytes per key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol


class EntityStore(Protocol):
    """A place for rows of bytes. A key that is not there is left out of an answer."""

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows of these keys."""
        ...

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Keep these rows, in place of those with the same keys."""
        ...

    def forget_many(self, keys: Iterable[str]) -> None:
        """Drop the rows of these keys, as far as they are there."""
        ...


class EntitiesInMemory:
    """Rows in a dictionary.

    >>> store = EntitiesInMemory()
    >>> store.put_many({"a": b"1"})
    >>> store.get_many(["a", "b"])
    {'a': b'1'}
    """

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        return {key: self.rows[key] for key in keys if key in self.rows}

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        self.rows.update(rows)

    def forget_many(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.rows.pop(key, None)
