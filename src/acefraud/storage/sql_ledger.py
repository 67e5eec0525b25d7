"""A ledger in a database: what SQLite and PostgreSQL have in common. Threads and processes can share it.

What several threads append at the same time is written with one commit.
"""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Final, Self

from acefraud.core.decision import Common
from acefraud.core.events import DECISION_MADE, DecisionMade, Event
from acefraud.core.ledger import Entry, Precondition, answered_already, conflict_with
from acefraud.core.playbook import Checkpoint
from acefraud.core.transaction import FactValue
from acefraud.errors import StoreError, StoreUnavailable
from acefraud.storage.driver import Dialect, Driver, SqlRows
from acefraud.storage.schema import PUT_CASE, PUT_COMMON, Run, case_values, insertion, rows_of, selection
from acefraud.storage.sql_reading import LAST_EVENT, LAST_SEQ, SqlReading, quoted

_LOOK_EVERY: Final = 0.2
"""How often, in seconds, somebody who waits for events looks."""

_Question = tuple[Any, Callable[[Sequence[Any]], StoreError]]
"""What was asked, and the error if there is an answer."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """An entry that waits to be written, and what became of it."""

    entry: Entry
    runs: list[Run]
    pieces: set[Common]
    case_rows: list[tuple[Any, ...]]
    events: list[Event] = field(default_factory=list)
    written: bool = False
    lost: StoreUnavailable | None = None
    """The database went away, and nobody knows whether it was written."""


class SqlLedger(SqlReading):
    """Events, cases, rows and the checkpoint in one database."""

    origin: str | Path
    """What opens it again: a path, or an address, which may have a password. `place` is what may be shown."""

    def __init__(
        self, place: str, dialect: Dialect, connect: Callable[[], Any], *, most_readers: int, read_only: bool = False
    ) -> None:
        super().__init__(place, dialect, connect, most_readers=most_readers)
        self.read_only = read_only
        self._queue: list[_Waiting] = []
        self._queueing = Lock()
        self._committing = Lock()
        """Held by the thread that writes, for itself or for all those in the queue."""

    @abstractmethod
    def claim(self, work: str) -> AbstractContextManager[bool]:
        """Try to be the only one, in any process, who does some work."""

    @abstractmethod
    def _locked(self) -> AbstractContextManager[Driver]:
        """The connection that writes, with the write lock of the database. The caller holds that of the threads."""

    @abstractmethod
    def _close_connections(self) -> None:
        """Close all connections that are not idle readers. The caller holds the lock of the thread that commits."""

    def _announce(self, driver: Driver, last: int) -> None:
        """Tell those who wait that there are new events other than decisions. By default they look for themselves."""

    @contextmanager
    def writing(self) -> Iterator[Driver]:
        """A connection that holds the write lock. What it did is committed at the end, unless an exception ends it."""
        with self._committing, self._locked() as driver:
            yield driver

    def check_writable(self) -> None:
        """Raise a StoreError if nothing can be written now, as to a file that may only be read or to a standby."""
        with self.writing() as driver:
            driver.ask("DELETE FROM requests WHERE false")

    # --- writing ---

    def append(self, entry: Entry) -> list[Event]:
        """Write the events, the cases they bring and the row update: all of it, or nothing."""
        waiting = _Waiting(entry, *rows_of(entry), [case_values(case) for case in entry.cases])
        with self._queueing:
            self._queue.append(waiting)  # whoever commits next writes it too
        with self._committing:
            with self._queueing:
                together, self._queue = self._queue, []
            if len(together) > 1:
                try:
                    self._write(together)
                except StoreUnavailable as problem:
                    for other in together:
                        other.lost = problem
                except Exception:  # noqa: BLE001  # nothing was written, and each learns its own fate alone
                    pass
            if waiting.lost is not None:
                raise waiting.lost
            if not waiting.written:
                self._write_alone(waiting)
        return waiting.events

    def _write_alone(self, waiting: _Waiting) -> None:
        try:
            self._write([waiting])
        except StoreUnavailable:
            raise
        except StoreError as problem:  # the key of a request that is there already, or something else
            for answered in self.requests([request.key for request in waiting.entry.requests]).values():
                raise answered_already(answered) from problem
            raise

    def _write(self, queue: Sequence[_Waiting]) -> None:
        """Write all entries of a queue with one commit, or none of them."""
        with self._locked() as driver:
            first = self._put_first(queue, driver)
            last = first - 1 if first else int(driver.value(LAST_SEQ))
            asked = [question for waiting in queue for question in self._ask(waiting.entry, last, driver)]
            for cursor, conflict in asked:  # asked first and read then, so that a server gets all questions at once
                if rows := cursor.fetchall():
                    raise conflict(rows)
            written: list[Event] = []
            keys: set[str] = set()
            for waiting in queue:
                _check_among(waiting.entry, written, keys)
                self._put(waiting, last, first, driver)
                written += waiting.events
                last += len(waiting.events)
            if any(not isinstance(event.payload, DecisionMade) for event in written):
                self._announce(driver, last)
        for waiting in queue:
            waiting.written = True
            self._remember(waiting.pieces)

    def _put_first(self, queue: Sequence[_Waiting], driver: Driver) -> int:
        """Write the first event of a queue, which the database numbers. Returns its number; 0 if there are no events.

        This comes before the questions, to save one. If something is in the way, it is taken back with all the rest.
        """
        for waiting in queue:
            for statement, ((_, row), *_) in waiting.runs:
                return driver.insert_next(statement, LAST_SEQ, row)
        return 0

    def _put(self, waiting: _Waiting, last: int, first: int, driver: Driver) -> None:
        """Write one entry after the last event, without the first event of all, which is there already."""
        entry = waiting.entry
        new = [(piece.key, piece.body) for piece in waiting.pieces if piece.key not in self._pieces]
        driver.run_many(PUT_COMMON, new)
        for statement, rows in waiting.runs:
            driver.run_many(statement, [(last + number, *row) for number, row in rows if last + number != first])
        driver.run_many(PUT_CASE, waiting.case_rows)
        driver.run_many(
            insertion("requests"),
            [(kept.key, kept.transaction_id, kept.digest, kept.decision_id, last) for kept in entry.requests],
        )
        if entry.rows is not None:
            entry.rows(SqlRows(driver))
        waiting.events = entry.events_after(last)

    def _ask(self, entry: Entry, last: int, driver: Driver) -> list[_Question]:
        """Ask for what may be in the way of an entry."""
        asked: list[_Question] = []
        for precondition in entry.preconditions:
            if last <= precondition.seq:
                continue
            if written := precondition.kinds - {DECISION_MADE}:
                since = f"{selection('events')} kind IN ({quoted(written)}) AND"
                found = _first_since(precondition, last, since, "subject", driver)
                asked += [(cursor, lambda rows: conflict_with(self._events(rows)[0])) for cursor in found]
            if DECISION_MADE in precondition.kinds:
                found = _first_since(precondition, last, selection("decisions"), "transaction_id", driver)
                asked += [(cursor, lambda rows: conflict_with(self._decision_events(rows)[0])) for cursor in found]
        return asked

    def replace_facts(self, facts: Mapping[str, Mapping[str, FactValue]], reader: str) -> None:
        """Replace the facts of remembered cases. Does nothing if it may only be read: they are only a cache."""
        if self.read_only or not facts:
            return
        put = "UPDATE cases SET facts = ?, reader = ? WHERE transaction_id = ?"
        with self.writing() as driver:
            driver.run_many(
                put, [(json.dumps(dict(new)), reader, transaction_id) for transaction_id, new in facts.items()]
            )

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Replace the saved checkpoint. Does nothing if it may only be read: it is only a cache."""
        if self.read_only:
            return
        header = checkpoint.header
        with self.writing() as driver:
            kept = driver.value("SELECT seq FROM checkpoints")
            if kept is None or kept <= header.seq:
                driver.ask("DELETE FROM checkpoint_pages")
                driver.ask("DELETE FROM checkpoints")
                driver.ask(insertion("checkpoint_pages"), (0, b"", checkpoint.bullets))
                driver.ask(insertion("checkpoints"), (1, header.seq, header.model_dump_json()))

    # --- waiting and closing ---

    def wait_for_events(self, after: int, timeout: float) -> bool:
        """Wait until there are events other than decisions after a number. False if the time is up before.

        Raises StoreError as soon as the playbook is closed.
        """
        deadline = time.monotonic() + timeout
        while self._look_up(LAST_EVENT)[0][0] <= after:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _first_since(precondition: Precondition, last: int, since: str, column: str, driver: Driver) -> list[Any]:
    """Ask for the first of some events after a number and up to the last, of any subject or of some."""
    after = f"{since} seq > {precondition.seq} AND seq <= {last}"
    values = precondition.subjects if precondition.keys is None else precondition.keys
    if values is None:
        return [driver.ask(f"{after} ORDER BY seq LIMIT 1")]
    named = column if precondition.keys is None else "key"
    return driver.ask_about(f"{after} AND {{about}} ORDER BY seq LIMIT 1", named, values)


def _check_among(entry: Entry, written: Sequence[Event], keys: set[str]) -> None:
    """Raise StoreConflict if what is written with the same commit is in the way of an entry."""
    for condition in entry.preconditions:
        if (violation := next(filter(condition.violated_by, written), None)) is not None:
            raise conflict_with(violation)
    for request in entry.requests:
        if request.key in keys:
            raise answered_already(request)
        keys.add(request.key)
