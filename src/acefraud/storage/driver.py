"""Statements in SQL on a connection of the database driver, whichever database it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

_VALUES_PER_QUERY: Final = 10_000
"""SQLite limits how many values one query may name, to 32,766 unless it was built otherwise."""
_ROWS_AT_ONCE: Final = 64
"""Rows that one statement inserts."""

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database wants its statements. Here they are written with a question mark for each value."""

    mark: str
    """What stands for a value."""
    has_arrays: bool
    """Whether many values can be handed over as one."""
    begin_reading: str
    """What begins a transaction that sees the database as it is at one moment."""
    outcome_source: str
    """Who told an outcome, in the body of its event."""

    def sql(self, statement: str) -> str:
        """A statement as the database wants it.

        >>> POSTGRESQL.sql("SELECT body FROM events WHERE seq > ? AND seq <= ?")
        'SELECT body FROM events WHERE seq > %s AND seq <= %s'
        """
        return statement if self.mark == "?" else _marked(statement, self.mark)

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
        """The condition that a column has one of many values, and the values to hand over.

        >>> SQLITE.among("id", ["a", "b"]), POSTGRESQL.among("id", ["a", "b"])
        (('id IN (?, ?)', ('a', 'b')), ('id = ANY(?)', (['a', 'b'],)))
        """
        if self.has_arrays:
            return f"{column} = ANY(?)", (list(values),)
        return f"{column} IN ({', '.join('?' * len(values))})", tuple(values)


SQLITE: Final = Dialect(
    mark="?",
    has_arrays=False,
    begin_reading="BEGIN",
    outcome_source="json_extract(body, '$.outcome.source')",
)
POSTGRESQL: Final = Dialect(
    mark="%s",
    has_arrays=True,
    begin_reading="BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    # It does not parse JSON with a null character in a text.
    outcome_source=r"json_extract_path_text(replace(body, '\u0000', '\ufffd')::json, 'outcome', 'source')",
)


@cache
def _marked(statement: str, mark: str) -> str:
    return statement.replace("?", mark)


@cache
def _for_rows(statement: str, count: int) -> str:
    """An INSERT of one row as one of several."""
    before, _, rest = statement.partition("VALUES (")
    marks, _, after = rest.partition(")")
    return f"{before}VALUES {', '.join([f'({marks})'] * count)}{after}"


class Driver:
    """One connection of the driver. Each statement has a cursor of its own, so that several can be under way."""

    __slots__ = ("_connection", "dialect")

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self._connection = connection
        self.dialect = dialect

    def ask(self, query: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement. Its rows can be fetched later, before the next change; errors may come only then."""
        cursor = self._connection.cursor()
        cursor.execute(self.dialect.sql(query), values)
        return cursor

    def fetch(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return list(self.ask(query, values).fetchall())

    def value(self, query: str, values: Sequence[Any] = ()) -> Any:
        """The first value of the first row of a query; None if it has no rows."""
        return next((row[0] for row in self.fetch(query, values)), None)

    def fetch_about(self, query: str, column: str, values: Iterable[Any]) -> list[tuple[Any, ...]]:
        """The rows in which a column has one of many values. `{about}` stands for that condition in the query."""
        return [row for cursor in self.ask_about(query, column, values) for row in cursor.fetchall()]

    def ask_about(self, query: str, column: str, values: Iterable[Any]) -> list[Any]:
        """Cursors over the rows in which a column has one of many values, to be fetched later."""
        asked = []
        for some in chunked(values):
            about, given = self.dialect.among(column, some)
            asked.append(self.ask(query.format(about=about), given))
        return asked

    def insert_next(self, statement: str, last: str, row: Sequence[Any]) -> int:
        """Insert a row whose first column is a number, the next one after what a query says. Returns the number."""
        numbered = statement.replace("VALUES (?", f"VALUES (1 + ({last})")
        if not self.dialect.has_arrays:
            return int(self.ask(numbered, row).lastrowid)
        return int(self.value(f"{numbered} RETURNING seq", row))

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement that changes something, once for each row of values."""
        if not rows:
            return
        cursor = self._connection.cursor()
        if not (self.dialect.has_arrays and statement.startswith("INSERT") and "DO UPDATE" not in statement):
            cursor.executemany(self.dialect.sql(statement), rows)
            return
        for start in range(0, len(rows), _ROWS_AT_ONCE):  # a server that has to be asked is asked less often
            some = rows[start : start + _ROWS_AT_ONCE]
            cursor.execute(self.dialect.sql(_for_rows(statement, len(some))), [cell for row in some for cell in row])


class SqlRows:
    """The row store of a playbook in a database, on the connection of a unit of work."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows with these keys."""
        return dict(self._driver.fetch_about("SELECT key, value FROM history WHERE {about}", "key", keys))

    def get_all(self) -> dict[str, bytes]:
        """Every row."""
        return dict(self._driver.fetch("SELECT key, value FROM history"))

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Insert or replace rows."""
        put = "INSERT INTO history VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self._driver.run_many(put, list(rows.items()))

    def forget_many(self, keys: Iterable[str]) -> None:
        """Delete the rows with these keys."""
        self._driver.run_many("DELETE FROM history WHERE key = ?", [(key,) for key in keys])

    def clear(self) -> None:
        """Delete all rows."""
        self._driver.ask("DELETE FROM history")


def chunked(values: Iterable[K]) -> Iterator[list[K]]:
    """The values in lists short enough for one query."""
    wanted = list(values)
    for start in range(0, len(wanted), _VALUES_PER_QUERY):
        yield wanted[start : start + _VALUES_PER_QUERY]
