"""Remembered cases keep the facts that were known of them, and the version of the reader that made these."""

from __future__ import annotations

import json
from datetime import datetime

import sqlalchemy as sa
from alembic import op

from acefraud.storage.migrations.portable import WHOLE
from acefraud.support.timestamps import micros_of

revision = "0004"
down_revision = "0003"

_WITH_A_DECISION = "0"
"""The reader of facts that were kept with a decision, when readers had no version yet."""


def upgrade() -> None:
    """From 0003. Facts come from the latest decision on a case; those of cases that nobody decided are read later."""
    op.add_column("cases", sa.Column("time", WHOLE))
    op.add_column("cases", sa.Column("has_text", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("cases", sa.Column("facts", sa.Text))
    op.add_column("cases", sa.Column("reader", sa.Text, nullable=False, server_default=""))
    connection = op.get_bind()
    decided = sa.text(
        "SELECT json_extract(body, '$.decision.facts') FROM events "
        "WHERE kind = 'decision_made' AND subject = :id ORDER BY seq DESC LIMIT 1"
    )
    change = sa.text(
        "UPDATE cases SET time = :time, has_text = :has_text, facts = :facts, reader = :reader "
        "WHERE transaction_id = :id"
    )
    for row in connection.execute(sa.text("SELECT transaction_id, body FROM cases")).all():
        transaction = json.loads(row.body)["transaction"]
        time = transaction.get("time")
        facts = connection.execute(decided, {"id": row.transaction_id}).scalar()
        connection.execute(
            change,
            {
                "id": row.transaction_id,
                "time": micros_of(datetime.fromisoformat(time)) if time else None,
                "has_text": bool(transaction.get("text")),
                "facts": facts,
                "reader": "" if facts is None else _WITH_A_DECISION,
            },
        )
