"""The tables of a playbook, and how to recognise one before writing to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from acefraud.errors import StoreSchema

APPLICATION_ID: Final = 0x41434546
"""Marks our files in the SQLite header: "ACEF" in ASCII."""

NEWEST: Final = "0006"
"""The schema this version writes. It stands here so that opening a current file does not import alembic."""

metadata = sa.MetaData()
_WHOLE: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""A whole number of up to 64 bits: SQLite has them in any column, PostgreSQL only where it is told."""

events = sa.Table(
    "events",
    metadata,
    sa.Column("seq", _WHOLE, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("key", sa.Text),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Index("events_by_kind_and_subject", "kind", "subject"),
    sa.Index("events_by_key", "key"),
    sa.Index("events_by_kind", "kind", "seq"),
)

decisions = sa.Table(
    "decisions",
    metadata,
    sa.Column("seq", _WHOLE, primary_key=True, autoincrement=False),  # numbered together with the events
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("transaction_id", sa.Text, nullable=False),
    sa.Column("at", _WHOLE, nullable=False),  # microseconds since 1970
    sa.Column("who", sa.Text),  # NULL for the engine
    sa.Column("why", sa.Text),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("probability", sa.Float, nullable=False),
    sa.Column("revision", _WHOLE, nullable=False),
    sa.Column("setup", _WHOLE),  # these two name rows of `common`, or are NULL if the body is the whole decision
    sa.Column("names", _WHOLE),
    sa.Column("body", sa.Text, nullable=False),
    sa.Index("decisions_by_id", "id"),
    sa.Index("decisions_by_transaction", "transaction_id"),
    sa.Index("decisions_by_time", "at"),
)

requests = sa.Table(
    "requests",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("transaction_id", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("decision_id", sa.Text, nullable=False),
    sa.Column("seq", _WHOLE, nullable=False),  # the last event when it was written
    sa.Index("requests_by_transaction", "transaction_id"),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    sa.Column("scopes", sa.Text, nullable=False),  # separated by spaces
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("revoked_at", sa.Text),
    sa.Column("revoked_by", sa.Text),
)
_LIVE: Final = api_keys.c.revoked_at.is_(None)
sa.Index("api_keys_by_live_name", api_keys.c.name, unique=True, sqlite_where=_LIVE, postgresql_where=_LIVE)

common = sa.Table(
    "common",
    metadata,
    sa.Column("key", _WHOLE, primary_key=True, autoincrement=False),
    sa.Column("body", sa.Text, nullable=False),
)

cases = sa.Table(
    "cases",
    metadata,
    sa.Column("transaction_id", sa.Text, primary_key=True),
    sa.Column("seq", _WHOLE, nullable=False, unique=True),
    sa.Column("is_fraud", sa.Boolean, nullable=False),
    sa.Column("known_at", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("time", _WHOLE),
    sa.Column("has_text", sa.Boolean, nullable=False),
    sa.Column("facts", sa.Text),
    sa.Column("reader", sa.Text, nullable=False),
)

checkpoints = sa.Table(
    "checkpoints",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("seq", _WHOLE, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)

checkpoint_pages = sa.Table(
    "checkpoint_pages",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column(
        "table", sa.LargeBinary, nullable=False
    ),  # empty; files of earlier versions keep the bullets' columns here
    sa.Column("bullets", sa.LargeBinary, nullable=False),
)

history = sa.Table(
    "history", metadata, sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.LargeBinary, nullable=False)
)

meta = sa.Table(
    "meta", metadata, sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False)
)


@dataclass(frozen=True)
class FileState:
    """Whether a file is a playbook, and its schema."""

    ours: bool
    """True for a playbook, and for a blank file that can become one."""
    version: str | None = None
    """Its schema; None if it has none yet, as after a crash during creation."""


def file_state(connection: sa.Connection) -> FileState:
    """The state of the file behind a connection. Only reads."""
    tables = set(connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars())
    application_id = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
    user_version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if application_id != APPLICATION_ID:
        return FileState(ours=not tables and application_id == 0 and user_version == 0)
    if "alembic_version" not in tables:
        return FileState(ours=True)
    version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
    return FileState(ours=True, version=version)


def check_known(place: str, found: FileState) -> None:
    """Raise StoreSchema if a newer version of acefraud wrote a playbook."""
    from acefraud.storage.migrations import known_versions  # noqa: PLC0415

    if found.version is not None and found.version not in known_versions():
        raise StoreSchema(
            f"{place} has schema {found.version}, the newest this version of acefraud knows is {NEWEST}; "
            "use the version that wrote it, or a newer one"
        )
