"""Requests that were answered, keys of the service, and indices for events by kind and decisions by time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from acefraud.storage.migrations.portable import WHOLE

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """From 0005."""
    op.create_table(
        "requests",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("transaction_id", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("decision_id", sa.Text, nullable=False),
        sa.Column("seq", WHOLE, nullable=False),
    )
    op.create_index("requests_by_transaction", "requests", ["transaction_id"])
    op.create_index("decisions_by_time", "decisions", ["at"])
    op.create_index("events_by_kind", "events", ["kind", "seq"])
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("revoked_at", sa.Text),
        sa.Column("revoked_by", sa.Text),
    )
    live = sa.text("revoked_at IS NULL")
    op.create_index(
        "api_keys_by_live_name", "api_keys", ["name"], unique=True, sqlite_where=live, postgresql_where=live
    )
