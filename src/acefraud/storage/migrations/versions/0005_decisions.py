"""Decisions get a table of their own, with what many of them have in common kept once. Earlier ones stay whole."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_REFUSING = (
    "CREATE TRIGGER {table}_refuse_{what} BEFORE {doing} ON {table} "
    "BEGIN SELECT RAISE(ABORT, '{table} are only ever appended'); END"
)


def upgrade() -> None:
    """From 0004. The numbers of events stay, so that revisions mean what they meant.

    Events and decisions are numbered together. Decisions may be deleted: those that were archived are.
    """
    op.create_table(
        "common",
        sa.Column("key", sa.Integer, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "decisions",
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("transaction_id", sa.Text, nullable=False),
        sa.Column("at", sa.Integer, nullable=False),
        sa.Column("who", sa.Text),
        sa.Column("why", sa.Text),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("probability", sa.Float, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("setup", sa.Integer),
        sa.Column("names", sa.Integer),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.execute(
        "INSERT INTO decisions "
        "SELECT seq, coalesce(key, json_extract(body, '$.decision.id')), subject, "
        "strftime('%s', substr(at, 1, 19) || substr(at, -6)) * 1000000 "
        "+ CASE WHEN substr(at, 20, 1) = '.' THEN CAST(substr(at, 21, 6) AS INTEGER) ELSE 0 END, who, why, "
        "json_extract(body, '$.decision.verdict'), json_extract(body, '$.decision.probability'), "
        "json_extract(body, '$.decision.revision'), NULL, NULL, json_extract(body, '$.decision') "
        "FROM events WHERE kind = 'decision_made'"
    )
    op.execute("DROP TRIGGER events_refuse_delete")
    op.execute("DELETE FROM events WHERE kind = 'decision_made'")
    op.execute(_REFUSING.format(table="events", what="delete", doing="DELETE"))
    op.execute("DROP TRIGGER events_refuse_gaps")
    op.execute(_REFUSING.format(table="decisions", what="update", doing="UPDATE"))
    for table in ("events", "decisions"):
        op.execute(
            f"CREATE TRIGGER {table}_refuse_gaps BEFORE INSERT ON {table} "
            "WHEN NEW.seq IS NOT 1 + max(coalesce((SELECT max(seq) FROM events), 0), "
            "coalesce((SELECT max(seq) FROM decisions), 0)) "
            f"BEGIN SELECT RAISE(ABORT, '{table} are only ever appended, without gaps'); END"
        )
    op.create_index("decisions_by_id", "decisions", ["id"])
    op.create_index("decisions_by_transaction", "decisions", ["transaction_id"])
