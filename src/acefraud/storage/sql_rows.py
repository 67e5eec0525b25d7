"""The row store of a playbook in a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from acefraud.storage.driver import Driver
from acefraud.storage.schema import history

_GET: Final = f"SELECT key, value FROM {history.name} WHERE {{about}}"
_PUT: Final = (
    f"INSERT INTO {history.name} (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


class SqlRows:
    """Rows in a table, read and written on the connection of a unit of work."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows with these keys."""
        return dict(self._driver.fetch_about(_GET, "key", keys))

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Insert or replace rows."""
        self._driver.run_many(_PUT, list(rows.items()))

    def forget_many(self, keys: Iterable[str]) -> None:
        """Delete the rows with these keys."""
        self._driver.run_many(f"DELETE FROM {history.name} WHERE key = ?", [(key,) for key in keys])

    def clear(self) -> None:
        """Delete all rows."""
        self._driver.ask(f"DELETE FROM {history.name}")
