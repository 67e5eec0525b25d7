"""The tables of a playbook, and how to recognise one before writing to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

from acefraud.errors import StoreSchema

APPLICATION_ID: Final = 0x41434546
"""Marks our files in the SQLite header: "ACEF" in ASCII."""

NEWEST: Final = "0006"
"""The schema this version writes. It stands here so that opening a current file does not import alembic."""

metadata = MetaData()
_WHOLE: Final = BigInteger().with_variant(Integer, "sqlite")
"""A whole number of up to 64 bits: SQLite has them in any column, PostgreSQL only where it is told."""

events = Table(
    "events",
    metadata,
    Column("seq", _WHOLE, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("key", Text),
    Column("at", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("body", Text, nullable=False),
    Index("events_by_kind_and_subject", "kind", "subject"),
    Index("events_by_key", "key"),
    Index("events_by_kind", "kind", "seq"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("seq", _WHOLE, primary_key=True, autoincrement=False),  # numbered together with the events
    Column("id", Text, nullable=False),
    Column("transaction_id", Text, nullable=False),
    Column("at", _WHOLE, nullable=False),  # microseconds since 1970
    Column("who", Text),  # NULL for the engine
    Column("why", Text),
    Column("verdict", Text, nullable=False),
    Column("probability", Float, nullable=False),
    Column("revision", _WHOLE, nullable=False),
    Column("setup", _WHOLE),  # these two name rows of `common`, or are NULL if the body is the whole decision
    Column("names", _WHOLE),
    Column("body", Text, nullable=False),
    Index("decisions_by_id", "id"),
    Index("decisions_by_transaction", "transaction_id"),
    Index("decisions_by_time", "at"),
)

requests = Table(
    "requests",
    metadata,
    Column("key", Text, primary_key=True),
    Column("transaction_id", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("decision_id", Text, nullable=False),
    Column("seq", _WHOLE, nullable=False),  # the last event when it was written
    Index("requests_by_transaction", "transaction_id"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Column("scopes", Text, nullable=False),  # separated by spaces
    Column("created_at", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("revoked_at", Text),
    Column("revoked_by", Text),
)
_LIVE: Final = api_keys.c.revoked_at.is_(None)
Index("api_keys_by_live_name", api_keys.c.name, unique=True, sqlite_where=_LIVE, postgresql_where=_LIVE)

common = Table(
    "common",
    metadata,
    Column("key", _WHOLE, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
)

cases = Table(
    "cases",
    metadata,
    Column("transaction_id", Text, primary_key=True),
    Column("seq", _WHOLE, nullable=False, unique=True),
    Column("is_fraud", Boolean, nullable=False),
    Column("known_at", Text),
    Column("body", Text, nullable=False),
    Column("time", _WHOLE),
    Column("has_text", Boolean, nullable=False),
    Column("facts", Text),
    Column("reader", Text, nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", _WHOLE, nullable=False),
    Column("body", Text, nullable=False),
)

checkpoint_pages = Table(
    "checkpoint_pages",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("table", LargeBinary, nullable=False),  # empty; files of earlier versions keep the bullets' columns here
    Column("bullets", LargeBinary, nullable=False),
)

history = Table(
    "history",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

meta = Table(
    "meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)


@dataclass(frozen=True)
class FileState:
    """Whether a file is a playbook, and its schema."""

    ours: bool
    """True for a playbook, and for a blank file that can become one."""
    version: str | None = None
    """Its schema; None if it has none yet, as after a crash during creation."""


def file_state(connection: Connection) -> FileState:
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
