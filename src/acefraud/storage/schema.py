"""The tables of a playbook file, and how a file is recognised as one before anything is written to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Boolean, Column, Connection, Index, Integer, LargeBinary, MetaData, Table, Text

APPLICATION_ID: Final = 0x41434546
"""What SQLite keeps in the header for us to recognise our own files by: "ACEF" in ASCII."""

NEWEST: Final = "0004"
"""The schema this version writes. Kept here so that opening a current file need not load the migrations."""

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
    Column("table", LargeBinary, nullable=False),
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
class Standing:
    """What a file turned out to be."""

    ours: bool
    """Ours, or blank and so free to become ours."""
    version: str | None = None
    """The schema it is at; None where it has none yet, as after a creation that was cut short."""


def standing(connection: Connection) -> Standing:
    """What the file behind a connection is. Only reads."""
    tables = set(connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars())
    application_id = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
    user_version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if application_id != APPLICATION_ID:
        return Standing(ours=not tables and application_id == 0 and user_version == 0)
    if "alembic_version" not in tables:
        return Standing(ours=True)
    version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
    return Standing(ours=True, version=version)
