"""The first schema: events, cases, the checkpoint."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """From a blank file."""
    op.execute("PRAGMA application_id = 1094927686")
    meta = op.create_table(
        "meta",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.bulk_insert(meta, [{"name": "application", "value": "acefraud"}])
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer, primary_key=True),
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
        sa.Column("seq", sa.Integer, nullable=False, unique=True),
        sa.Column("is_fraud", sa.Boolean, nullable=False),
        sa.Column("known_at", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "checkpoints",
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    # REPLACE removes rows without firing a trigger on DELETE, so what comes in is watched as well.
    op.execute(
        "CREATE TRIGGER events_refuse_gaps BEFORE INSERT ON events "
        "WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM events) "
        "BEGIN SELECT RAISE(ABORT, 'events are only ever appended, without gaps'); END"
    )
    for act in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER events_refuse_{act.lower()} BEFORE {act} ON events "
            "BEGIN SELECT RAISE(ABORT, 'events are only ever appended'); END"
        )
