"""Pages for the bullets of a checkpoint, so that saving one writes only those that changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """From 0002."""
    op.create_table(
        "checkpoint_pages",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("table", sa.LargeBinary, nullable=False),
        sa.Column("bullets", sa.LargeBinary, nullable=False),
    )
