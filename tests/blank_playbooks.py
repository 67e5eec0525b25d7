"""New playbooks for tests: what the migrations do to an empty database is recorded once and then repeated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, event

from acefraud.storage import migrations

_Statement = tuple[str, Any]
_MIGRATE = migrations.upgrade


@contextmanager
def migrated_once() -> Iterator[None]:
    """Run the migrations from nothing to the newest schema once for each kind of database in this process."""
    recorded: dict[str, list[_Statement]] = {}

    def upgrade(connection: Connection, version: str | None, target: str = "head") -> None:
        kind = connection.dialect.name
        if version is not None or target != "head":
            _MIGRATE(connection, version, target)
        elif kind in recorded:
            for statement, values in recorded[kind]:
                connection.exec_driver_sql(statement, values)
        else:
            with _recording(connection) as statements:
                _MIGRATE(connection, version)
            recorded[kind] = statements

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "upgrade", upgrade)
        yield


@contextmanager
def each_migrated() -> Iterator[None]:
    """Run the migrations for every playbook again, for tests of the migrations themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "upgrade", _MIGRATE)
        yield


@contextmanager
def _recording(connection: Connection) -> Iterator[list[_Statement]]:
    statements: list[_Statement] = []

    def note(_connection: object, _cursor: object, statement: str, values: Any, *_: object) -> None:
        if not statement.lstrip().upper().startswith("SELECT"):
            statements.append((statement, values))

    event.listen(connection, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(connection, "before_cursor_execute", note)
