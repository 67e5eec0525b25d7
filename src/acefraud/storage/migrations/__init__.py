"""Schema changes, in order, each in `versions`. They ship with the package and run when a file is opened.

A released migration is never edited: a change to the schema is a new file there, a new `NEWEST` in the schema
module and, in the tests, a dump of the file as that release writes it.
"""

from __future__ import annotations

import threading
from pathlib import Path

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

_ONE_AT_A_TIME = threading.Lock()
"""Migrations speak through `alembic.op`, which stands for one connection of the whole process."""


def known_versions() -> frozenset[str]:
    """Every schema this version can read or upgrade from."""
    return frozenset(script.revision for script in _scripts().walk_revisions())


def upgrade(connection: Connection, version: str | None, target: str = "head") -> None:
    """Run what lies between a version and the target inside the transaction of the connection."""
    scripts = _scripts()
    steps = reversed(list(scripts.iterate_revisions(target, version or "base")))
    context = MigrationContext.configure(connection, opts={"transactional_ddl": True})
    with _ONE_AT_A_TIME, Operations.context(context):
        for step in steps:
            step.module.upgrade()
            context.stamp(scripts, step.revision)


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(Path(__file__).parent))
