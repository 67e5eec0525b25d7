"""Statements on a connection of the database driver, where they take a third of the time that SQLAlchemy needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol, TypeVar

_VALUES_PER_QUERY: Final = 10_000
"""SQLite limits how many values one query may name, to 32,766 unless it was built otherwise."""

K = TypeVar("K")


class DriverCursor(Protocol):
    """The part of a driver's cursor that is used here."""

    def execute(self, statement: Any, values: Any, /) -> object:
        """Run a statement."""

    def executemany(self, statement: Any, rows: Any, /) -> object:
        """Run a statement once for each row of values."""

    def fetchall(self) -> Sequence[Any]:
        """The rows it found."""


class DriverConnection(Protocol):
    """The part of a driver's connection that is used here."""

    def cursor(self) -> Any:
        """A new cursor."""

    def close(self) -> None:
        """Close the connection."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database wants its statements. Here they are written with a question mark for each value."""

    mark: str
    """What stands for a value."""
    has_arrays: bool
    """Whether many values can be handed over as one."""

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


SQLITE: Final = Dialect("?", has_arrays=False)
POSTGRESQL: Final = Dialect("%s", has_arrays=True)
_ROWS_AT_ONCE: Final = 64
"""Rows that one statement inserts."""


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

    def __init__(self, connection: DriverConnection, dialect: Dialect) -> None:
        self._connection = connection
        self.dialect = dialect

    def ask(self, query: str, values: Sequence[Any] = ()) -> DriverCursor:
        """Run a statement. Its rows can be fetched later, before the next change; errors may come only then."""
        cursor: DriverCursor = self._connection.cursor()
        cursor.execute(self.dialect.sql(query), values)
        return cursor

    def fetch(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return list(self.ask(query, values).fetchall())

    def fetch_about(self, query: str, column: str, values: Iterable[Any]) -> list[tuple[Any, ...]]:
        """The rows in which a column has one of many values. `{about}` stands for that condition in the query."""
        return [row for cursor in self.ask_about(query, column, values) for row in cursor.fetchall()]

    def ask_about(self, query: str, column: str, values: Iterable[Any]) -> list[DriverCursor]:
        """Cursors over the rows in which a column has one of many values, to be fetched later."""
        asked = []
        for some in chunked(values):
            about, given = self.dialect.among(column, some)
            asked.append(self.ask(query.format(about=about), given))
        return asked

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


def chunked(values: Iterable[K]) -> Iterator[list[K]]:
    """The values in lists short enough for one query."""
    wanted = list(values)
    for start in range(0, len(wanted), _VALUES_PER_QUERY):
        yield wanted[start : start + _VALUES_PER_QUERY]
