"""Schema migrations. They ship with the package and run when a file is opened.

Never edit a released migration. To change the schema, add a file in `versions`, raise `NEWEST` in `schema.py`, and
add a dump of a file with the new schema to `tests/storage/released`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

_ONE_AT_A_TIME = threading.Lock()
"""Migrations use `alembic.op`, which holds one connection for the whole process."""


@contextmanager
def migrating(database: str, connect: Callable[[], Any], **options: Any) -> Iterator[Connection]:
    """A connection for `upgrade`, made by the driver. Errors of the driver pass through unchanged."""
    engine = create_engine(database, creator=connect, poolclass=NullPool, hide_parameters=True, **options)
    try:
        with engine.connect() as connection:
            yield connection
    except DBAPIError as error:
        raise (error.orig or error) from error


def known_versions() -> frozenset[str]:
    """Every schema this version can migrate from."""
    return frozenset(script.revision for script in _scripts().walk_revisions())


def upgrade(connection: Connection, version: str | None, target: str = "head") -> None:
    """Run the migrations from a version to the target on a connection. The caller commits."""
    context = MigrationContext.configure(connection, opts={"transactional_ddl": True})
    with _ONE_AT_A_TIME, Operations.context(context):
        scripts = _scripts()
        for step in reversed(list(scripts.iterate_revisions(target, version or "base"))):
            step.module.upgrade()
        context.stamp(scripts, target)


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(Path(__file__).parent))
