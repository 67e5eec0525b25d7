"""The tables of a playbook file, and how to recognise such a file before writing to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Boolean, Column, Connection, Float, Index, Integer, LargeBinary, MetaData, Table, Text

APPLICATION_ID: Final = 0x41434546
"""Marks our files in the SQLite header: "ACEF" in ASCII."""

NEWEST: Final = "0005"
"""The schema this version writes. It stands here so that opening a current file does not import alembic."""

metadata = MetaData()

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("key", Text),
    Column("at", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("body", Text, nullable=False),
    Index("events_by_kind_and_subject", "kind", "subject"),
    Index("events_by_key", "key"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("seq", Integer, primary_key=True),  # numbered together with the events
    Column("id", Text, nullable=False),
    Column("transaction_id", Text, nullable=False),
    Column("at", Integer, nullable=False),  # microseconds since 1970
    Column("who", Text),  # NULL for the engine
    Column("why", Text),
    Column("verdict", Text, nullable=False),
    Column("probability", Float, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("setup", Integer),  # these two name rows of `common`, or are NULL if the body is the whole decision
    Column("names", Integer),
    Column("body", Text, nullable=False),
    Index("decisions_by_id", "id"),
    Index("decisions_by_transaction", "transaction_id"),
)

common = Table(
    "common",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("body", Text, nullable=False),
)

cases = Table(
    "cases",
    metadata,
    Column("transaction_id", Text, primary_key=True),
    Column("seq", Integer, nullable=False, unique=True),
    Column("is_fraud", Boolean, nullable=False),
    Column("known_at", Text),
    Column("body", Text, nullable=False),
    Column("time", Integer),
    Column("has_text", Boolean, nullable=False),
    Column("facts", Text),
    Column("reader", Text, nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("body", Text, nullable=False),
)

checkpoint_pages = Table(
    "checkpoint_pages",
    metadata,
    Column("number", Integer, primary_key=True),
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
