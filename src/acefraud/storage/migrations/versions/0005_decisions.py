"""Decisions get a table of their own, with what many of them have in common kept once. Earlier ones stay whole."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from acefraud.storage.migrations.portable import WHOLE, on_sqlite, refuse

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """From 0004. The numbers of events stay, so that revisions mean what they meant.

    Events and decisions are numbered together. Decisions may be deleted: those that were archived are.
    """
    op.create_table(
        "common",
        sa.Column("key", WHOLE, primary_key=True, autoincrement=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "decisions",
        sa.Column("seq", WHOLE, primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("transaction_id", sa.Text, nullable=False),
        sa.Column("at", WHOLE, nullable=False),
        sa.Column("who", sa.Text),
        sa.Column("why", sa.Text),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("probability", sa.Float, nullable=False),
        sa.Column("revision", WHOLE, nullable=False),
        sa.Column("setup", WHOLE),
        sa.Column("names", WHOLE),
        sa.Column("body", sa.Text, nullable=False),
    )
    if on_sqlite():
        _move_decisions()
        op.execute("DROP TRIGGER events_refuse_gaps")
    refuse("decisions", "UPDATE")
    _refuse_gaps()
    op.create_index("decisions_by_id", "decisions", ["id"])
    op.create_index("decisions_by_transaction", "decisions", ["transaction_id"])


def _move_decisions() -> None:
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
    refuse("events", "DELETE")


def _refuse_gaps() -> None:
    if not on_sqlite():
        op.execute(
            "CREATE FUNCTION refuse_gaps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF NEW.seq IS DISTINCT FROM "
            "1 + greatest((SELECT max(seq) FROM events), (SELECT max(seq) FROM decisions), 0) "
            "THEN RAISE EXCEPTION '% are only ever appended, without gaps', TG_TABLE_NAME; END IF; "
            "RETURN NEW; END $$"
        )
    for table in ("events", "decisions"):
        op.execute(
            f"CREATE TRIGGER {table}_refuse_gaps BEFORE INSERT ON {table} "
            + (
                "WHEN NEW.seq IS NOT 1 + max(coalesce((SELECT max(seq) FROM events), 0), "
                "coalesce((SELECT max(seq) FROM decisions), 0)) "
                f"BEGIN SELECT RAISE(ABORT, '{table} are only ever appended, without gaps'); END"
                if on_sqlite()
                else "FOR EACH ROW EXECUTE FUNCTION refuse_gaps()"
            )
        )
