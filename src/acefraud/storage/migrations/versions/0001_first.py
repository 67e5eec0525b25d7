"""The first schema: events, cases, the checkpoint."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from acefraud.storage.migrations.portable import WHOLE, on_sqlite, refuse

revision = "0001"
down_revision = None


def upgrade() -> None:
    """From a blank file, or a schema of PostgreSQL without tables of these names."""
    if on_sqlite():
        op.execute("PRAGMA application_id = 1094927686")
    meta = op.create_table(
        "meta",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.bulk_insert(meta, [{"name": "application", "value": "acefraud"}])
    op.create_table(
        "events",
        sa.Column("seq", WHOLE, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("events_by_kind_and_subject", "events", ["kind", "subject"])
    op.create_index("events_by_key", "events", ["key"])
    op.create_table(
        "cases",
        sa.Column("transaction_id", sa.Text, primary_key=True),
        sa.Column("seq", WHOLE, nullable=False, unique=True),
        sa.Column("is_fraud", sa.Boolean, nullable=False),
        sa.Column("known_at", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "checkpoints",
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
        sa.Column("seq", WHOLE, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    if on_sqlite():
        # REPLACE removes rows without firing a trigger on DELETE, so what comes in is watched as well.
        op.execute(
            "CREATE TRIGGER events_refuse_gaps BEFORE INSERT ON events "
            "WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM events) "
            "BEGIN SELECT RAISE(ABORT, 'events are only ever appended, without gaps'); END"
        )
    for act in ("UPDATE", "DELETE") if on_sqlite() else ("UPDATE", "DELETE", "TRUNCATE"):
        refuse("events", act)
