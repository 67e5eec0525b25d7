"""How much of everything a playbook holds, and how much room it takes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from acefraud.storage.schema import cases, decisions, events, history, metadata
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.support.timestamps import time_of


@dataclass(frozen=True, slots=True)
class Holdings:
    """How many decisions, cases and rows of history there are: what an export of the bullets leaves out."""

    decisions: int
    cases: int
    entity_rows: int


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """How much a playbook holds, and how much room it takes."""

    schema: str | None
    events: dict[str, int]
    """How many there are of each kind. Decisions are counted apart."""
    compact_decisions: int
    whole_decisions: int
    cases: int
    entity_rows: int
    oldest: datetime | None
    """When its first event or decision was written; None if there is none."""
    newest: datetime | None
    file_bytes: int
    free_bytes: int
    """Room inside the file that the next writes use first."""
    shrinks: bool
    """Whether `acefraud ledger archive` can give room back while others use the file."""
    bytes_by_table: dict[str, int]
    """With indexes; empty if SQLite was compiled without `dbstat`."""


@dataclass(frozen=True, slots=True)
class _Room:
    """The room that a playbook takes, as in its statistics."""

    file_bytes: int
    free_bytes: int
    shrinks: bool
    bytes_by_table: dict[str, int]


def holdings(ledger: SqlLedger) -> Holdings:
    """How many decisions, cases and rows of history a playbook holds."""
    with ledger.reading() as connection:
        counted = [connection.execute(select(func.count()).select_from(each)) for each in (decisions, cases, history)]
        return Holdings(*(count.scalar_one() for count in counted))


def file_statistics(ledger: SqlLedger) -> FileStatistics:
    """How much a playbook holds, all of it at one moment."""
    with ledger.reading() as connection:
        by_kind = select(events.c.kind, func.count()).group_by(events.c.kind)
        made = select(func.count(), func.count(decisions.c.setup)).select_from(decisions)
        all_decisions, compact = connection.execute(made).one()
        room = _room_of_file(connection) if connection.dialect.name == "sqlite" else _room_on_server(connection)
        return FileStatistics(
            schema=connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one(),
            events=dict(sorted((row[0], row[1]) for row in connection.execute(by_kind))),
            compact_decisions=compact,
            whole_decisions=all_decisions - compact,
            cases=connection.execute(select(func.count()).select_from(cases)).scalar_one(),
            entity_rows=connection.execute(select(func.count()).select_from(history)).scalar_one(),
            oldest=_time(connection, newest=False),
            newest=_time(connection, newest=True),
            file_bytes=room.file_bytes,
            free_bytes=room.free_bytes,
            shrinks=room.shrinks,
            bytes_by_table=room.bytes_by_table,
        )


def _time(connection: Connection, *, newest: bool) -> datetime | None:
    """When the event or decision with the lowest or highest number was written."""
    found: list[tuple[int, Any]] = []
    for table in (events, decisions):
        order = table.c.seq.desc() if newest else table.c.seq
        rows = connection.execute(select(table.c.seq, table.c.at).order_by(order).limit(1))
        found += [(row.seq, row.at) for row in rows]
    if not found:
        return None
    _, at = (max if newest else min)(found)
    return datetime.fromisoformat(at) if isinstance(at, str) else time_of(at)


def _room_of_file(connection: Connection) -> _Room:
    page = _pragma(connection, "page_size")
    return _Room(
        file_bytes=page * _pragma(connection, "page_count"),
        free_bytes=page * _pragma(connection, "freelist_count"),
        shrinks=_pragma(connection, "auto_vacuum") == 2,  # INCREMENTAL
        bytes_by_table=_bytes_by_table(connection),
    )


def _room_on_server(connection: Connection) -> _Room:
    """The room that the tables of the schema take. The server keeps what is free for what comes next."""
    rows = connection.exec_driver_sql(
        "SELECT relname, pg_total_relation_size(oid) FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY 2 DESC"
    )
    sizes = {row[0]: int(row[1]) for row in rows if row[0] in {*metadata.tables, "alembic_version"}}
    return _Room(sum(sizes.values()), 0, shrinks=False, bytes_by_table=sizes)


def _bytes_by_table(connection: Connection) -> dict[str, int]:
    if not connection.exec_driver_sql("SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')").scalar_one():
        return {}
    rows = connection.exec_driver_sql(
        "SELECT coalesce(tbl_name, pages.name), sum(pgsize) FROM dbstat('main', 1) AS pages "
        "LEFT JOIN sqlite_master ON sqlite_master.name = pages.name GROUP BY 1 ORDER BY 2 DESC"
    )
    return {row[0]: row[1] for row in rows}


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
