"""A ledger in one SQLite file. What `append` has returned survives a killed process and, by default, a power cut."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Any, Final, Self
from uuid import uuid4

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, PoolProxiedConnection, Row, Select, bindparam, delete, select, update
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine.interfaces import DBAPICursor

from acefraud.core.decision import Decision
from acefraud.core.decision_record import Common, DecisionRecord
from acefraud.core.events import (
    BULLET_HISTORY_KINDS,
    DECISION_MADE,
    OUTCOME_KINDS,
    DecisionMade,
    Event,
    OutcomeHeard,
)
from acefraud.core.ledger import Entry, KnownCase, Precondition, RememberedCase, TransactionEvents
from acefraud.core.playbook import Checkpoint, CheckpointHeader
from acefraud.core.row_store import RowStore
from acefraud.core.timestamps import micros_of
from acefraud.core.transaction import FactValue, Verdict
from acefraud.errors import StoreError
from acefraud.settings import Durability
from acefraud.storage.changes import conflict_with
from acefraud.storage.connection import WAIT_SECONDS, locking, open_engine
from acefraud.storage.file_errors import translated
from acefraud.storage.ledger_rows import (
    PUT_COMMON,
    Run,
    case_of,
    case_row,
    decision_event,
    event_of,
    remembered_case,
    rows_of,
)
from acefraud.storage.schema import cases as cases_table
from acefraud.storage.schema import checkpoint_pages, checkpoints, common, events, meta
from acefraud.storage.schema import decisions as decisions_table
from acefraud.storage.sqlite_rows import SqliteRows, chunked

_EVENTS_PER_QUERY: Final = 1_000
"""Reading in parts keeps no lock open while the caller works, so that SQLite can tidy its log."""
_LAST_SEQ: Final = (
    f"SELECT max(coalesce((SELECT max(seq) FROM {events.name}), 0), "
    f"coalesce((SELECT max(seq) FROM {decisions_table.name}), 0))"
)
_PART: Final = "SELECT * FROM {table} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
_CASE_COLUMNS: Final = [column.name for column in cases_table.c]
_PUT_CASE: Final = (
    f"INSERT INTO {cases_table.name} ({', '.join(_CASE_COLUMNS)}) "
    f"VALUES ({', '.join(f':{name}' for name in _CASE_COLUMNS)}) ON CONFLICT (transaction_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _CASE_COLUMNS if name != "transaction_id")
)
_CLAIM_OF: Final = f"SELECT value FROM {meta.name} WHERE name = ?"


class SqliteLedger:
    """Events, cases, rows and the checkpoint in one file. Threads and processes can share it."""

    def __init__(self, path: Path, engine: Engine, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self._engine = engine
        self._writer = locking(engine)
        self._queue: list[_Waiting] = []
        self._queueing = Lock()
        self._committing = Lock()
        """Held by the thread that writes for all those in the queue."""
        self._kept: Connection | None = None
        """The connection of that thread."""
        self._looking_up = Lock()
        self._for_look_ups: PoolProxiedConnection | None = None
        """The connection of the thread that holds that lock."""
        self._stored: set[Common] = set()
        """Pieces that are known to be in the file."""
        self._read_pieces: dict[int, Common] = {}
        self._closed = False

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool = True,
        read_only: bool = False,
        durability: Durability = Durability.POWER,
        wait: float = WAIT_SECONDS,
    ) -> SqliteLedger:
        """Open a file and migrate it to the newest schema; create it if it is missing, unless told not to.

        `wait` is how many seconds to wait for another process that holds the lock. Raises StoreSchema if the file
        is not a playbook or has a newer schema, StoreError if it cannot be opened.
        """
        with translated(path):
            engine = open_engine(path, create=create, read_only=read_only, durability=durability, wait=wait)
        return cls(path, engine, read_only=read_only)

    def append(self, entry: Entry) -> list[Event]:
        """Write the events, the cases they bring and the row update: all of it, or nothing."""
        waiting = _Waiting(entry, *rows_of(entry), [case_row(case) for case in entry.cases])
        with self._queueing:
            self._queue.append(waiting)  # whoever commits next writes it too
        with self._committing:
            with self._queueing:
                together, self._queue = self._queue, []
            if len(together) > 1:
                with suppress(Exception):  # nothing was written then, and each learns its own fate alone
                    self._write(together)
            if not waiting.written:
                self._write([waiting])
        return waiting.events

    def _write(self, queue: Sequence[_Waiting]) -> None:
        """Write all entries of a queue with one commit, or none of them."""
        with self._writing_entries() as connection:
            cursor = connection.connection.cursor()  # of the driver, which takes a third of SQLAlchemy's time
            for waiting in queue:
                ((last,),) = cursor.execute(_LAST_SEQ)
                for each in waiting.entry.preconditions:
                    if last > each.seq:
                        self._check(each, connection)
                cursor.executemany(PUT_COMMON, [(one.key, one.body) for one in waiting.pieces - self._stored])
                for statement, rows in waiting.runs:
                    cursor.executemany(statement, [(last + place, *row) for place, row in rows])
                _put_cases(cursor, waiting.case_rows)
                if waiting.entry.rows is not None:
                    waiting.entry.rows(SqliteRows(connection))
                waiting.events = waiting.entry.events_after(last)
        for waiting in queue:
            waiting.written = True
            self._stored |= waiting.pieces

    def _check(self, precondition: Precondition, connection: Connection) -> None:
        since = f"SELECT * FROM {{table}} WHERE seq > {precondition.seq} {{more}} ORDER BY seq LIMIT 1"
        found: list[Event] = []
        if written := precondition.kinds - {DECISION_MADE}:
            query = since.format(table=events.name, more=f"AND kind IN ({_quoted(written)}) {{about}}")
            found += [self._event(row) for row in _about(connection, query, "subject", precondition.subjects)]
        if DECISION_MADE in precondition.kinds:
            query = since.format(table=decisions_table.name, more="{about}")
            made = _about(connection, query, "transaction_id", precondition.subjects)
            found += self.decision_events(made, connection)
        if found:
            raise conflict_with(found[0])

    def last_seq(self) -> int:
        """The number of the last event."""
        ((last,),) = self._look_up(_LAST_SEQ)
        return int(last)

    def _look_up(self, query: str, values: Sequence[str | int] = ()) -> list[tuple[Any, ...]]:
        """The rows of one query. Every decision asks some, so a connection of the driver is kept for them."""
        self._check_open()
        with translated(self.path), self._looking_up:
            if self._for_look_ups is None:
                self._for_look_ups = self._engine.raw_connection()
            with closing(self._for_look_ups.cursor()) as cursor:
                cursor.execute(query, values)
                return list(cursor.fetchall())

    def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[Event]:
        """The events after one number up to and including another; none that are written after the first is read."""
        last = self.last_seq()
        end = last if until is None else min(until, last)
        while after < end:
            part, after = self._part(after, end, decisions=decisions)
            yield from part

    def _part(self, after: int, end: int, *, decisions: bool) -> tuple[list[Event], int]:
        """The next events and the number they reach to."""
        tables = (events, decisions_table) if decisions else (events,)
        with self.reading() as connection:
            rows = [
                connection.exec_driver_sql(_PART.format(table=table.name), (after, end, _EVENTS_PER_QUERY)).all()
                for table in tables
            ]
            reached = min([end, *(some[-1].seq for some in rows if len(some) == _EVENTS_PER_QUERY)])
            found = [self._event(row) for row in rows[0]]
            if decisions:
                found += self.decision_events(rows[1], connection)
        return sorted((event for event in found if event.seq <= reached), key=attrgetter("seq")), reached

    def decisions(self, decision_ids: Collection[str]) -> dict[str, Decision]:
        """The recorded decisions with these ids."""
        made = self._decisions_with("id", decision_ids)
        return {one.record.id: one.record.decision for one in made}

    def recorded(self, decision_ids: Collection[str]) -> set[str]:
        """Which of these decisions are recorded."""
        query = f"SELECT id FROM {decisions_table.name} WHERE id IN ({{}})"
        found = [self._look_up(query.format(_marks(some)), some) for some in chunked(decision_ids)]
        return {one for part in found for (one,) in part}

    def latest_decisions(self, limit: int) -> list[DecisionRecord]:
        """The records of the latest decisions, oldest first."""
        query = select(decisions_table).order_by(decisions_table.c.seq.desc()).limit(max(0, limit))
        with self.reading() as connection:
            made = self.decision_events(connection.execute(query).all()[::-1], connection)
        return [event.payload.record for event in made if isinstance(event.payload, DecisionMade)]

    def reviews_since(self, at: datetime, after: int = 0) -> tuple[int, int]:
        """How many decisions sent a case to a person, and the last event."""
        last = self.last_seq()
        query = f"SELECT count(*) FROM {decisions_table.name} WHERE seq > ? AND seq <= ? AND at >= ? AND verdict = ?"
        ((count,),) = self._look_up(query, (after, last, micros_of(at), str(Verdict.REVIEW)))
        return count, last

    def transaction_events(self, transaction_ids: Collection[str]) -> dict[str, TransactionEvents]:
        """The decisions on these transactions and their outcomes."""
        found = {one: TransactionEvents() for one in transaction_ids}
        for made in self._decisions_with("transaction_id", found):
            found[made.subject].records.append(made.record)
        heard = f"SELECT * FROM {events.name} WHERE kind IN ({_quoted(OUTCOME_KINDS)}) {{about}} ORDER BY seq"
        with self.reading() as connection:
            rows = _about(connection, heard, "subject", found)
        for row in rows:
            payload = self._event(row).payload
            assert isinstance(payload, OutcomeHeard)
            found[payload.subject].outcomes.append(payload)
        return found

    def _decisions_with(self, column: str, values: Collection[str]) -> list[DecisionMade]:
        """The decisions in which a column has one of many values, in order."""
        query = f"SELECT * FROM {decisions_table.name} WHERE true {{about}} ORDER BY seq"
        with self.reading() as connection:
            made = self.decision_events(_about(connection, query, column, values), connection)
        return [event.payload for event in made if isinstance(event.payload, DecisionMade)]

    def decision_events(self, rows: Sequence[Row[Any]], connection: Connection) -> list[Event]:
        """Rows of decisions as events."""
        keys = {key for row in rows for key in (row.setup, row.names) if key is not None}
        pieces = self._pieces(keys, connection)
        return [decision_event(row, pieces) for row in rows]

    def _pieces(self, keys: set[int], connection: Connection) -> dict[int, Common]:
        """The pieces with these keys. Those seen before are not read again: a piece never changes."""
        missing = keys - self._read_pieces.keys()
        if missing:
            found = _about(connection, f"SELECT * FROM {common.name} WHERE true {{about}}", "key", missing)
            self._read_pieces |= {row.key: Common(row.key, row.body) for row in found}
        return self._read_pieces

    def history(self, bullet_id: str) -> list[Event]:
        """The events about a bullet."""
        about_bullets = events.c.kind.in_(BULLET_HISTORY_KINDS)
        return self._events(select(events).where(about_bullets, events.c.subject == bullet_id))

    def remembered(self, limit: int, after: int = 0) -> list[RememberedCase]:
        """The latest remembered cases after a position."""
        query = select(cases_table).where(cases_table.c.seq > after).order_by(cases_table.c.seq.desc())
        with self.reading() as connection:
            rows = connection.execute(query.limit(max(0, limit))).all()
        return [remembered_case(row) for row in reversed(rows)]

    def known_cases(self, transaction_ids: Collection[str]) -> dict[str, KnownCase]:
        """The remembered cases of these transactions."""
        query = f"SELECT * FROM {cases_table.name} WHERE true {{about}}"
        with self.reading() as connection:
            rows = _about(connection, query, "transaction_id", transaction_ids)
        return {
            row.transaction_id: KnownCase(case_of(row, self.path), remembered_case(row).facts, row.reader)
            for row in rows
        }

    def replace_facts(self, facts: Mapping[str, Mapping[str, FactValue]], reader: str) -> None:
        """Replace the facts of remembered cases. Does nothing on a read-only file: they are only a cache."""
        if self.read_only or not facts:
            return
        put = update(cases_table).where(cases_table.c.transaction_id == bindparam("id"))
        with self.writing() as connection:
            connection.execute(
                put.values(facts=bindparam("facts"), reader=reader),
                [{"id": one, "facts": json.dumps(dict(new))} for one, new in facts.items()],
            )

    @contextmanager
    def rows(self) -> Iterator[RowStore]:
        """The row store as it is at one moment, for reading only."""
        with self.reading() as connection:
            yield SqliteRows(connection)

    @contextmanager
    def claim(self, work: str, seconds: float) -> Iterator[bool]:
        """Try to be the only one who does some work: a row of `meta` says who is at it, and until when it counts."""
        name, mine = f"claim {work}", f"{time.time() + seconds} {uuid4()}"
        free = not self._is_claimed(self._look_up(_CLAIM_OF, (name,)))  # mostly no reason to take the lock
        if free:
            with self.writing() as connection:
                free = not self._is_claimed(connection.exec_driver_sql(_CLAIM_OF, (name,)).all())
                if free:
                    connection.exec_driver_sql(f"INSERT OR REPLACE INTO {meta.name} VALUES (?, ?)", (name, mine))
        try:
            yield free
        finally:
            if free:
                with self.writing() as connection:
                    connection.execute(delete(meta).where(meta.c.name == name, meta.c.value == mine))

    @staticmethod
    def _is_claimed(found: Sequence[Sequence[Any]]) -> bool:
        return any(float(value.partition(" ")[0]) > time.time() for (value,) in found)

    def checkpoint(self) -> Checkpoint | None:
        """The saved checkpoint. One of another version is ignored, since the events can be applied again."""
        with self.reading() as connection:
            body = connection.execute(select(checkpoints.c.body)).scalar_one_or_none()
            if body is None:
                return None
            try:
                header = CheckpointHeader.model_validate_json(body)
            except ValidationError:
                return None
            # Earlier versions wrote several pages.
            pages = connection.execute(select(checkpoint_pages.c.bullets).order_by(checkpoint_pages.c.number)).scalars()
            return Checkpoint(header, b"\n".join(pages))

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Replace the saved checkpoint. Does nothing on a read-only file: it is only a cache."""
        if self.read_only:
            return
        header = checkpoint.header.model_dump_json()
        with self.writing() as connection:
            kept = connection.execute(select(checkpoints.c.seq)).scalar_one_or_none()
            if kept is None or kept <= checkpoint.header.seq:
                connection.execute(delete(checkpoint_pages))
                connection.execute(delete(checkpoints))
                connection.execute(insert(checkpoint_pages).values(number=0, table=b"", bullets=checkpoint.bullets))
                connection.execute(insert(checkpoints).values(id=1, seq=checkpoint.header.seq, body=header))

    def close(self) -> None:
        """Close the file. Closing twice is harmless."""
        self._closed = True
        with self._committing, self._looking_up, translated(self.path):
            self._give_back()
            if self._for_look_ups is not None:
                self._for_look_ups.close()
            self._for_look_ups = None
            self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _events(self, query: Select[Any]) -> list[Event]:
        with self.reading() as connection:
            rows = connection.execute(query.order_by(events.c.seq)).all()
        return [self._event(row) for row in rows]

    def _event(self, row: Row[Any]) -> Event:
        return event_of(row, self.path)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees the file as it is at one moment."""
        self._check_open()
        with translated(self.path), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection that holds the write lock. What it did is committed at the end, unless an exception ends it."""
        self._check_open()
        with translated(self.path), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def _writing_entries(self) -> Iterator[Connection]:
        """The same for the thread that commits. Its connection is kept: fetching one takes longer than a write."""
        self._check_open()
        with translated(self.path):
            if self._kept is None:
                self._kept = self._writer.connect()
            try:
                with self._kept.begin():
                    yield self._kept
            except BaseException:
                self._give_back()
                raise

    def _give_back(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"playbook {self.path} was closed; open it again")


def _put_cases(cursor: DBAPICursor, rows: Sequence[dict[str, Any]]) -> None:
    """Insert or replace cases. One that arrives again moves to the end."""
    if rows:
        cursor.execute(f"SELECT coalesce(max(seq), 0) FROM {cases_table.name}")
        ((last,),) = cursor.fetchall()
        cursor.executemany(_PUT_CASE, [{**row, "seq": seq} for seq, row in enumerate(rows, last + 1)])


@dataclass(slots=True, eq=False)
class _Waiting:
    """An entry that waits to be written, and what became of it."""

    entry: Entry
    runs: list[Run]
    pieces: set[Common]
    case_rows: list[dict[str, Any]]
    events: list[Event] = field(default_factory=list)
    written: bool = False


def _about(connection: Connection, query: str, column: str, values: Collection[Any] | None) -> list[Row[Any]]:
    """The rows of a query in which a column has one of many values, or any value for None.

    The query is plain SQL, since building one takes longer than running it; `{about}` stands for the values.
    """
    if values is None:
        return list(connection.exec_driver_sql(query.format(about="")).all())
    found: list[Row[Any]] = []
    for some in chunked(values):
        about = f"AND {column} IN ({_marks(some)})"
        found += connection.exec_driver_sql(query.format(about=about), tuple(some)).all()
    return found


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _quoted(kinds: Collection[str]) -> str:
    return ", ".join(f"'{kind}'" for kind in sorted(kinds))
