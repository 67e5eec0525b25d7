"""What a playbook holds: how much of everything, the room that takes, and the decisions that rest on a bullet.

A record names the bullets that it rests on, but a ledger has no index of them: decisions are looked through from the
newest on, up to a stated number, and a page says how far that was.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from acefraud.core.events import DecisionMade, Event
from acefraud.core.ledger import DecisionFilter, Ledger
from acefraud.display.short_repr import ShortRepr
from acefraud.storage.driver import Driver
from acefraud.storage.schema import TABLES
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.support.timestamps import time_of

SCAN_LIMIT = 10_000
"""How many decisions are looked at for one page."""
_CHUNK = 1_000


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
    """Whether archiving can give room back while others use the file."""
    bytes_by_table: dict[str, int]
    """With indexes; empty if SQLite was compiled without `dbstat`."""


def holdings(ledger: SqlLedger) -> Holdings:
    """How many decisions, cases and rows of history a playbook holds."""
    with ledger.reading() as driver:
        return Holdings(*(_count(driver, table) for table in ("decisions", "cases", "history")))


def file_statistics(ledger: SqlLedger) -> FileStatistics:
    """How much a playbook holds, all of it at one moment."""
    with ledger.reading() as driver:
        ((made, compact),) = driver.fetch("SELECT count(*), count(setup) FROM decisions")
        return FileStatistics(
            schema=driver.value("SELECT version_num FROM alembic_version"),
            events=dict(sorted(driver.fetch("SELECT kind, count(*) FROM events GROUP BY kind"))),
            compact_decisions=compact,
            whole_decisions=made - compact,
            cases=_count(driver, "cases"),
            entity_rows=_count(driver, "history"),
            oldest=_time(driver, newest=False),
            newest=_time(driver, newest=True),
            **(_room_on_server(driver) if driver.dialect.has_arrays else _room_of_file(driver)),
        )


def _count(driver: Driver, table: str) -> int:
    return int(driver.value(f"SELECT count(*) FROM {table}"))


def _time(driver: Driver, *, newest: bool) -> datetime | None:
    """When the event or decision with the lowest or highest number was written."""
    order = "seq DESC" if newest else "seq"
    queries = [f"SELECT seq, at FROM {table} ORDER BY {order} LIMIT 1" for table in ("events", "decisions")]
    found = [row for query in queries for row in driver.fetch(query)]
    if not found:
        return None
    _, at = (max if newest else min)(found)
    return datetime.fromisoformat(at) if isinstance(at, str) else time_of(at)


def _room_of_file(driver: Driver) -> dict[str, Any]:
    page = driver.value("PRAGMA page_size")
    by_table = (
        "SELECT coalesce(tbl_name, pages.name), sum(pgsize) FROM dbstat('main', 1) AS pages "
        "LEFT JOIN sqlite_master ON sqlite_master.name = pages.name GROUP BY 1 ORDER BY 2 DESC"
    )
    can_tell = driver.value("SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')")
    return {
        "file_bytes": page * driver.value("PRAGMA page_count"),
        "free_bytes": page * driver.value("PRAGMA freelist_count"),
        "shrinks": driver.value("PRAGMA auto_vacuum") == 2,  # INCREMENTAL
        "bytes_by_table": dict(driver.fetch(by_table)) if can_tell else {},
    }


def _room_on_server(driver: Driver) -> dict[str, Any]:
    """The room that the tables of the schema take. The server keeps what is free for what comes next."""
    rows = driver.fetch(
        "SELECT relname, pg_total_relation_size(oid) FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY 2 DESC"
    )
    sizes = {name: int(size) for name, size in rows if name in {*TABLES, "alembic_version"}}
    return {"file_bytes": sum(sizes.values()), "free_bytes": 0, "shrinks": False, "bytes_by_table": sizes}


@dataclass(frozen=True, slots=True, repr=False)
class CitingPage(ShortRepr):
    """Some decisions that rest on a bullet, newest first, and where to go on."""

    events: tuple[Event, ...]
    next_before: int | None
    """Pass it as `before` to go on; None if there are no earlier decisions to look at."""
    looked_at: int
    """How many decisions were looked at."""


def decisions_citing(
    ledger: Ledger,
    wanted: DecisionFilter,
    bullet_id: str,
    *,
    before: int | None = None,
    limit: int,
    scan_limit: int = SCAN_LIMIT,
) -> CitingPage:
    """Up to `limit` of the wanted decisions that rest on a bullet, before an event if one is given.

    At most `scan_limit` decisions are looked at, so a page may have fewer, even none, and still have a next one.
    Decisions from before the bullet was added are not looked at.

    >>> from acefraud import BulletPlaybook, Learner, Transaction
    >>> playbook = BulletPlaybook()
    >>> vpn = playbook.add_bullet("VPN: decline")
    >>> orders = [Transaction(id=f"t{number}", facts={"vpn": number % 2 == 0}) for number in range(6)]
    >>> _ = Learner(playbook).decide_all_sync(orders)
    >>> page = decisions_citing(playbook.ledger, DecisionFilter(), vpn, limit=2)
    >>> [event.payload.subject for event in page.events], page.looked_at
    (['t4', 't2'], 4)
    """
    found: list[Event] = []
    looked_at = 0
    added = ledger.find_events({"bullet_added"}, subject=bullet_id, limit=1)
    while added and looked_at < scan_limit:
        most = min(_CHUNK, scan_limit - looked_at)
        chunk = ledger.find_decisions(wanted, after=added[0].seq, before=before, limit=most)
        for event in chunk:
            looked_at, before = looked_at + 1, event.seq
            if isinstance(event.payload, DecisionMade) and event.payload.record.cites(bullet_id):
                found.append(event)
                if len(found) == limit:
                    return CitingPage(tuple(found), before, looked_at)
        if len(chunk) < most:
            break
    return CitingPage(tuple(found), None if looked_at < scan_limit else before, looked_at)


def last_firings(ledger: Ledger, bullet_id: str, limit: int, *, scan_limit: int = SCAN_LIMIT) -> CitingPage:
    """The latest decisions that rest on a bullet, and how many decisions were looked at to find them."""
    return decisions_citing(ledger, DecisionFilter(), bullet_id, limit=limit, scan_limit=scan_limit)
