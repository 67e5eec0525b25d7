"""A ledger in a database: what SQLite and PostgreSQL have in common. Threads and processes can share it.

What several threads append at the same time is written with one commit.
"""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Final, Self

from sqlalchemy import Connection, Engine, bindparam, delete, false, insert, select, update

from acefraud.core.decision import Common
from acefraud.core.events import DECISION_MADE, DecisionMade, Event
from acefraud.core.ledger import Entry, Precondition
from acefraud.core.playbook import Checkpoint
from acefraud.core.transaction import FactValue
from acefraud.errors import StoreError, StoreUnavailable
from acefraud.storage.changes import answered_already, conflict_with
from acefraud.storage.driver import Dialect, Driver, DriverCursor
from acefraud.storage.ledger_rows import (
    CASE_COLUMNS,
    DECISION_COLUMNS,
    EVENT_COLUMNS,
    PUT_COMMON,
    CaseRow,
    Run,
    case_row,
    rows_of,
)
from acefraud.storage.recent_pieces import RecentPieces
from acefraud.storage.schema import cases as cases_table
from acefraud.storage.schema import checkpoint_pages, checkpoints, events
from acefraud.storage.schema import decisions as decisions_table
from acefraud.storage.schema import requests as requests_table
from acefraud.storage.sql_reading import REQUEST_COLUMNS, SqlReading, quoted
from acefraud.storage.sql_rows import SqlRows

_LOOK_EVERY: Final = 0.2
"""How often, in seconds, somebody who waits for events looks."""
_PUT_CASE: Final = (
    f"INSERT INTO {cases_table.name} ({CASE_COLUMNS}) VALUES ({', '.join('?' * len(CaseRow._fields))}) "
    "ON CONFLICT (transaction_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in CaseRow._fields if name != "transaction_id")
)
_PUT_REQUEST: Final = f"INSERT INTO {requests_table.name} ({', '.join(REQUEST_COLUMNS)}, seq) VALUES (?, ?, ?, ?, ?)"


_Question = tuple[DriverCursor, Callable[[Sequence[Any]], StoreError]]
"""What was asked, and the error if there is an answer."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """An entry that waits to be written, and what became of it."""

    entry: Entry
    runs: list[Run]
    pieces: set[Common]
    case_rows: list[CaseRow]
    """Numbered from 1."""
    events: list[Event] = field(default_factory=list)
    written: bool = False
    lost: StoreUnavailable | None = None
    """The database went away, and nobody knows whether it was written."""


class SqlLedger(SqlReading):
    """Events, cases, rows and the checkpoint in one database."""

    origin: str | Path
    """What opens it again: a path, or an address, which may have a password. `place` is what may be shown."""

    def __init__(self, place: str, dialect: Dialect, engine: Engine, *, read_only: bool = False) -> None:
        super().__init__(place, dialect)
        self.read_only = read_only
        self._engine = engine
        self._queue: list[_Waiting] = []
        self._queueing = Lock()
        self._committing = Lock()
        """Held by the thread that writes for all those in the queue."""
        self._stored = RecentPieces()
        """Pieces that are known to be in the database. Others may be too: writing them again changes nothing."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Connection]:
        """A connection that holds the write lock. What it did is committed at the end, unless an exception ends it."""

    @abstractmethod
    def claim(self, work: str) -> AbstractContextManager[bool]:
        """Try to be the only one, in any process, who does some work."""

    @abstractmethod
    def _writing_entries(self) -> AbstractContextManager[tuple[Driver, int]]:
        """A kept connection with the write lock, for the thread that commits, and the number of the last event."""

    @abstractmethod
    def _close_connections(self) -> None:
        """Close all connections. The caller holds the lock of the thread that commits."""

    def _announce(self, driver: Driver, last: int) -> None:
        """Tell those who wait that there are new events other than decisions. By default they look for themselves."""

    def check_writable(self) -> None:
        """Raise a StoreError if nothing can be written now, as to a file that may only be read or to a standby."""
        with self.writing() as connection:
            connection.execute(delete(requests_table).where(false()))

    # --- writing ---

    def append(self, entry: Entry) -> list[Event]:
        """Write the events, the cases they bring and the row update: all of it, or nothing."""
        waiting = _Waiting(
            entry, *rows_of(entry), [case_row(case, place) for place, case in enumerate(entry.cases, start=1)]
        )
        with self._queueing:
            self._queue.append(waiting)  # whoever commits next writes it too
        with self._committing:
            with self._queueing:
                together, self._queue = self._queue, []
            if len(together) > 1:
                self._try_to_write(together)
            if waiting.lost is not None:
                raise waiting.lost
            if not waiting.written:
                self._write([waiting])
        return waiting.events

    def _try_to_write(self, together: Sequence[_Waiting]) -> None:
        try:
            self._write(together)
        except StoreUnavailable as problem:
            for waiting in together:
                waiting.lost = problem
        except Exception:  # noqa: BLE001  # nothing was written, and each learns its own fate alone
            return

    def _write(self, queue: Sequence[_Waiting]) -> None:
        """Write all entries of a queue with one commit, or none of them."""
        with self.translated(), self._writing_entries() as (driver, newest):
            last = newest
            asked = [each for waiting in queue for each in self._ask(waiting.entry, last, driver)]
            for cursor, conflict in asked:  # asked first and read then, so that a server gets all questions at once
                if rows := cursor.fetchall():
                    raise conflict(rows)
            written: list[Event] = []
            keys: set[str] = set()
            for waiting in queue:
                _check_among(waiting.entry, written, keys)
                self._put(waiting, last, driver)
                written += waiting.events
                last += len(waiting.events)
            if any(not isinstance(event.payload, DecisionMade) for event in written):
                self._announce(driver, last)
        for waiting in queue:
            waiting.written = True
            self._stored.put(waiting.pieces)

    def _put(self, waiting: _Waiting, last: int, driver: Driver) -> None:
        """Write one entry after the last event."""
        entry = waiting.entry
        stored = self._stored.get([one.key for one in waiting.pieces])
        driver.run_many(PUT_COMMON, [(one.key, one.body) for one in waiting.pieces if one.key not in stored])
        for statement, rows in waiting.runs:
            driver.run_many(statement, [(last + place, *row) for place, row in rows])
        if waiting.case_rows:
            ((cases,),) = driver.fetch(f"SELECT coalesce(max(seq), 0) FROM {cases_table.name}")
            driver.run_many(_PUT_CASE, [row._replace(seq=cases + row.seq) for row in waiting.case_rows])
        requests = [(one.key, one.transaction_id, one.digest, one.decision_id, last) for one in entry.requests]
        driver.run_many(_PUT_REQUEST, requests)
        if entry.rows is not None:
            entry.rows(SqlRows(driver))
        waiting.events = entry.events_after(last)

    def _ask(self, entry: Entry, last: int, driver: Driver) -> list[_Question]:
        """Ask for what may be in the way of an entry."""
        asked = [one for each in entry.preconditions if last > each.seq for one in self._ask_since(each, driver)]
        there = f"SELECT key FROM {requests_table.name} WHERE {{about}}"
        asked += [
            (cursor, lambda rows: answered_already(next(one for one in entry.requests if one.key == rows[0][0])))
            for cursor in driver.ask_about(there, "key", [one.key for one in entry.requests])
        ]
        return asked

    def _ask_since(self, precondition: Precondition, driver: Driver) -> list[_Question]:
        asked: list[_Question] = []
        if written := precondition.kinds - {DECISION_MADE}:
            since = f"SELECT {EVENT_COLUMNS} FROM {events.name} WHERE kind IN ({quoted(written)}) AND"
            found = _first_since(precondition, since, "subject", driver)
            asked += [(cursor, lambda rows: conflict_with(self._events(rows)[0])) for cursor in found]
        if DECISION_MADE in precondition.kinds:
            since = f"SELECT {DECISION_COLUMNS} FROM {decisions_table.name} WHERE"
            found = _first_since(precondition, since, "transaction_id", driver)
            asked += [(cursor, lambda rows: conflict_with(self._decision_events(rows)[0])) for cursor in found]
        return asked

    def replace_facts(self, facts: Mapping[str, Mapping[str, FactValue]], reader: str) -> None:
        """Replace the facts of remembered cases. Does nothing if it may only be read: they are only a cache."""
        if self.read_only or not facts:
            return
        put = update(cases_table).where(cases_table.c.transaction_id == bindparam("id"))
        with self.writing() as connection:
            connection.execute(
                put.values(facts=bindparam("facts"), reader=reader),
                [{"id": one, "facts": json.dumps(dict(new))} for one, new in facts.items()],
            )

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Replace the saved checkpoint. Does nothing if it may only be read: it is only a cache."""
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

    # --- waiting and closing ---

    def wait_for_events(self, after: int, timeout: float) -> bool:
        """Wait until there are events other than decisions after a number. False if the time is up before.

        Raises StoreError as soon as the playbook is closed.
        """
        deadline = time.monotonic() + timeout
        while self._last_event() <= after:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._closed.wait(min(left, _LOOK_EVERY))
        return True

    def close(self) -> None:
        """Close the playbook. Closing twice is harmless."""
        self._closed.set()
        with self._committing, self.translated():
            self._close_idle()
            self._close_connections()
            self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _first_since(precondition: Precondition, since: str, column: str, driver: Driver) -> list[DriverCursor]:
    """Ask for the first of some events after a number, of any subject or of some."""
    after = f"{since} seq > {precondition.seq}"
    if precondition.keys is not None:
        return driver.ask_about(f"{after} AND {{about}} ORDER BY seq LIMIT 1", "key", precondition.keys)
    if precondition.subjects is None:
        return [driver.ask(f"{after} ORDER BY seq LIMIT 1")]
    return driver.ask_about(f"{after} AND {{about}} ORDER BY seq LIMIT 1", column, precondition.subjects)


def _check_among(entry: Entry, written: Sequence[Event], keys: set[str]) -> None:
    """Raise StoreConflict if what is written with the same commit is in the way of an entry."""
    for each in entry.preconditions:
        if (violation := next(filter(each.violated_by, written), None)) is not None:
            raise conflict_with(violation)
    for one in entry.requests:
        if one.key in keys:
            raise answered_already(one)
        keys.add(one.key)
