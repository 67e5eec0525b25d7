"""Which SQL statements SQLite executes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

UNCOUNTED = ("BEGIN", "COMMIT", "ROLLBACK", "PRAGMA")
"""First words of statements that are not told."""


@contextmanager
def traced_statements(hear: Callable[[str], Any]) -> Iterator[None]:
    """Tell each statement on connections made from now on, apart from the ends of transactions and pragmas.

    >>> heard = []
    >>> with traced_statements(heard.append):
    ...     sqlite3.connect(":memory:").execute("SELECT 1").fetchone()
    (1,)
    >>> heard
    ['SELECT 1']
    """
    connect = sqlite3.connect
    sqlite3.connect = _tracing(hear)  # type: ignore[assignment]
    try:
        yield
    finally:
        sqlite3.connect = connect


def log_statements(file: str) -> None:
    """Write each statement of this process to a file from now on."""
    lines = Path(file).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115
    sqlite3.connect = _tracing(lambda statement: lines.write(f"{statement}\n"))  # type: ignore[assignment]


def _tracing(hear: Callable[[str], Any]) -> Callable[..., sqlite3.Connection]:
    connect = sqlite3.connect

    def traced(*given: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **named)
        connection.set_trace_callback(told)
        return connection

    last = ""

    def told(statement: str) -> None:
        nonlocal last
        # The driver tells the statement that fires a trigger once more in place of what the trigger executes.
        fires_trigger = statement == last and statement.startswith("INSERT")
        last = statement
        if not fires_trigger and not statement.upper().startswith(UNCOUNTED):
            hear(" ".join(statement.split()))

    return traced
