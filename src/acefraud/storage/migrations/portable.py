"""What migrations need to run on SQLite and on PostgreSQL. Data of earlier schemas are only ever in SQLite files."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

WHOLE: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""A whole number of up to 64 bits."""


def on_sqlite() -> bool:
    """Whether the database that is migrated is a SQLite file."""
    return op.get_bind().dialect.name == "sqlite"


def refuse(table: str, act: str) -> None:
    """Refuse to UPDATE, DELETE or TRUNCATE rows of a table. SQLite has no TRUNCATE."""
    if on_sqlite():
        op.execute(
            f"CREATE TRIGGER {table}_refuse_{act.lower()} BEFORE {act} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} are only ever appended'); END"
        )
        return
    each = "STATEMENT" if act == "TRUNCATE" else "ROW"
    op.execute(
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '% are only ever appended', TG_TABLE_NAME; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {table}_refuse_{act.lower()} BEFORE {act} ON {table} "
        f"FOR EACH {each} EXECUTE FUNCTION refuse_change()"
    )
