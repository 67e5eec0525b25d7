"""What can be read from a ledger in a database, whichever it is."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, Table, or_, select

from acefraud.core.decision import Common, Decision, DecisionRecord
from acefraud.core.events import (
    BULLET_HISTORY_KINDS,
    OUTCOME_KINDS,
    OUTCOME_RECEIVED,
    DecisionMade,
    Event,
    OutcomeHeard,
)
from acefraud.core.ledger import DecisionFilter, KeptRequest, KnownCase, RememberedCase, RowStore, TransactionEvents
from acefraud.core.outcome import OutcomeSource
from acefraud.core.playbook import Checkpoint, CheckpointHeader
from acefraud.core.transaction import Verdict
from acefraud.errors import StoreError
from acefraud.storage import ledger_rows
from acefraud.storage.driver import Dialect, Driver, DriverConnection, chunked
from acefraud.storage.recent_pieces import RecentPieces
from acefraud.storage.schema import cases as cases_table
from acefraud.storage.schema import checkpoint_pages, checkpoints, common, events
from acefraud.storage.schema import decisions as decisions_table
from acefraud.storage.schema import requests as requests_table
from acefraud.storage.sql_rows import SqlRows
from acefraud.support.timestamps import micros_of

_EVENTS_PER_QUERY: Final = 1_000
"""Reading in parts keeps no lock open while the caller works, so that SQLite can tidy its log."""
_LOOK_UPS_AT_ONCE: Final = 4
"""So many connections are kept for short queries. More would crowd a server, and they are free again at once."""
LAST_SEQ: Final = (
    f"SELECT coalesce(max(last), 0) FROM (SELECT max(seq) AS last FROM {events.name} "
    f"UNION ALL SELECT max(seq) FROM {decisions_table.name}) AS numbered"
)
LAST_EVENT: Final = f"SELECT coalesce(max(seq), 0) FROM {events.name}"
_REPORTS: Final = OUTCOME_KINDS | {OUTCOME_RECEIVED}
"""Outcomes, received or heard."""
_SOME_EVENTS: Final = f"SELECT {ledger_rows.EVENT_COLUMNS} FROM {events.name} WHERE"
_SOME_DECISIONS: Final = f"SELECT {ledger_rows.DECISION_COLUMNS} FROM {decisions_table.name} WHERE"
_PART: Final = "seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
REQUEST_COLUMNS: Final = ("key", "transaction_id", "digest", "decision_id")


class SqlReading(ABC):
    """Reads events, cases, rows and the checkpoint."""

    def __init__(self, place: str, dialect: Dialect) -> None:
        self.place = place
        """Where it is, as messages name it."""
        self.dialect = dialect
        self._closed = threading.Event()
        self._read_pieces = RecentPieces()
        self._idle: list[DriverConnection] = []
        """Connections for short queries that nobody uses."""
        self._look_ups = threading.BoundedSemaphore(_LOOK_UPS_AT_ONCE)

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that sees the database as it is at one moment."""

    @abstractmethod
    def translated(self) -> AbstractContextManager[None]:
        """Raise StoreError for errors of the database."""

    @abstractmethod
    def _connect(self) -> DriverConnection:
        """A new connection of the driver, on which every statement is committed by itself."""

    @abstractmethod
    def _is_alive(self, connection: DriverConnection) -> bool:
        """Whether a connection that was idle can be used."""

    @abstractmethod
    def _driver_of(self, connection: Connection) -> Driver:
        """The driver's connection behind one of SQLAlchemy."""

    @contextmanager
    def _looking_up(self) -> Iterator[Driver]:
        """A connection for short queries. Every decision asks some, so it is kept."""
        self._check_open()
        with self.translated(), self._look_ups:
            connection = self._idle.pop() if self._idle else None
            if connection is not None and not self._is_alive(connection):
                connection.close()
                connection = None
            connection = connection or self._connect()
            try:
                yield Driver(connection, self.dialect)
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)
        if self._closed.is_set():
            self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _look_up(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._looking_up() as driver:
            return driver.fetch(query, values)

    def _look_up_about(self, query: str, column: str, values: Collection[Any]) -> list[tuple[Any, ...]]:
        if not values:
            return []
        with self._looking_up() as driver:
            return driver.fetch_about(query, column, values)

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise StoreError(f"playbook {self.place} was closed; open it again")

    # --- events ---

    def last_seq(self) -> int:
        """The number of the last event."""
        ((last,),) = self._look_up(LAST_SEQ)
        return int(last)

    def _last_event(self) -> int:
        """The number of the last event that is not a decision."""
        ((last,),) = self._look_up(LAST_EVENT)
        return int(last)

    def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[Event]:
        """The events after one number up to and including another; none that are written after the first is read."""
        last = self.last_seq()
        end = last if until is None else min(until, last)
        while after < end:
            part, after = self._part(after, end, decisions=decisions)
            yield from part

    def _part(self, after: int, end: int, *, decisions: bool) -> tuple[list[Event], int]:
        """The next events and the number they reach to."""
        with self._looking_up() as driver:
            written = driver.fetch(f"{_SOME_EVENTS} {_PART}", (after, end, _EVENTS_PER_QUERY))
            made = driver.fetch(f"{_SOME_DECISIONS} {_PART}", (after, end, _EVENTS_PER_QUERY)) if decisions else []
        reached = min([end, *(some[-1][0] for some in (written, made) if len(some) == _EVENTS_PER_QUERY)])
        found = [*self._events(written), *self._decision_events(made)]
        return sorted((event for event in found if event.seq <= reached), key=attrgetter("seq")), reached

    def find_events(
        self,
        kinds: Collection[str],
        *,
        subject: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int,
        newest_first: bool = False,
    ) -> list[Event]:
        """The events of these kinds."""
        query = select(events).where(events.c.kind.in_(sorted(kinds)), *_between(events, after, before))
        if subject is not None:
            query = query.where(events.c.subject == subject)
        order = events.c.seq.desc() if newest_first else events.c.seq
        with self.reading() as connection:
            rows = connection.execute(query.order_by(order).limit(max(0, limit))).all()
        return self._events(rows)

    def count_events(self, kinds: Collection[str], *, after: int = 0, limit: int) -> int:
        """How many events of these kinds there are after one."""
        if not kinds:
            return 0
        some = f"SELECT 1 FROM {events.name} WHERE kind IN ({quoted(kinds)}) AND seq > ? LIMIT ?"
        ((count,),) = self._look_up(f"SELECT count(*) FROM ({some}) AS found", (after, max(0, limit)))
        return int(count)

    def history(self, bullet_id: str) -> list[Event]:
        """The events about a bullet."""
        query = f"{_SOME_EVENTS} kind IN ({quoted(BULLET_HISTORY_KINDS)}) AND subject = ? ORDER BY seq"
        return self._events(self._look_up(query, (bullet_id,)))

    def received_outcomes(self, keys: Collection[str]) -> dict[str, Event]:
        """The outcomes received or heard with these keys."""
        query = f"{_SOME_EVENTS} kind IN ({quoted(_REPORTS)}) AND {{about}} ORDER BY seq DESC"
        rows = [ledger_rows.EventRow._make(row) for row in self._look_up_about(query, "key", keys)]
        return {row.key: ledger_rows.event_of(row, self.place) for row in rows if row.key is not None}

    def outcome_events(self, transaction_ids: Collection[str]) -> dict[str, list[Event]]:
        """The events of outcomes of these transactions. Every decision asks, and mostly there are none."""
        query = f"{_SOME_EVENTS} kind IN ({quoted(_REPORTS)}) AND {{about}} ORDER BY seq"
        found: dict[str, list[Event]] = {}
        for event in self._events(self._look_up_about(query, "subject", transaction_ids)):
            found.setdefault(event.payload.subject, []).append(event)
        return found

    def _events(self, rows: Sequence[Sequence[Any]]) -> list[Event]:
        return [ledger_rows.event_of(ledger_rows.EventRow._make(row), self.place) for row in rows]

    # --- decisions and outcomes ---

    def decisions(self, decision_ids: Collection[str]) -> dict[str, Decision]:
        """The recorded decisions with these ids."""
        made = self._decisions_with("id", decision_ids)
        return {one.record.id: one.record.decision for one in made}

    def recorded(self, decision_ids: Collection[str]) -> set[str]:
        """Which of these decisions are recorded."""
        query = f"SELECT id FROM {decisions_table.name} WHERE {{about}}"
        return {one for (one,) in self._look_up_about(query, "id", decision_ids)}

    def latest_decisions(self, limit: int) -> list[DecisionRecord]:
        """The records of the latest decisions, oldest first."""
        made = self._look_up(f"{_SOME_DECISIONS} true ORDER BY seq DESC LIMIT ?", (max(0, limit),))
        return [one.record for one in _made(self._decision_events(made[::-1]))]

    def reviews_since(self, at: datetime, after: int = 0) -> tuple[int, int]:
        """How many decisions sent a case to a person, and the last event."""
        last = self.last_seq()
        query = f"SELECT count(*) FROM {decisions_table.name} WHERE seq > ? AND seq <= ? AND at >= ? AND verdict = ?"
        ((count,),) = self._look_up(query, (after, last, micros_of(at), str(Verdict.REVIEW)))
        return count, last

    def find_decisions(
        self,
        wanted: DecisionFilter,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int,
        newest_first: bool = True,
    ) -> list[Event]:
        """The recorded decisions that are wanted."""
        order, most = decisions_table.c.seq.desc() if newest_first else decisions_table.c.seq, max(0, limit)
        between = _between(decisions_table, after, before)
        with self.reading() as connection:
            rows = [
                row
                for part in _parts(wanted)
                for row in connection.execute(
                    select(decisions_table).where(*_wanted(part), *between).order_by(order).limit(most)
                )
            ]
        return self._decision_events(sorted(rows, key=attrgetter("seq"), reverse=newest_first)[:most])

    def transaction_events(self, transaction_ids: Collection[str]) -> dict[str, TransactionEvents]:
        """The decisions on these transactions and their outcomes."""
        found = {one: TransactionEvents() for one in transaction_ids}
        for made in self._decisions_with("transaction_id", found):
            found[made.subject].records.append(made.record)
        heard = f"{_SOME_EVENTS} kind IN ({quoted(OUTCOME_KINDS)}) AND {{about}} ORDER BY seq"
        for event in self._events(self._look_up_about(heard, "subject", found)):
            assert isinstance(event.payload, OutcomeHeard)
            found[event.payload.subject].outcomes.append(event.payload)
        return found

    def _decisions_with(self, column: str, values: Collection[str]) -> list[DecisionMade]:
        """The decisions in which a column has one of many values, in order."""
        rows = self._look_up_about(f"{_SOME_DECISIONS} {{about}} ORDER BY seq", column, values)
        return _made(self._decision_events(rows))

    def _decision_events(self, rows: Sequence[Sequence[Any]]) -> list[Event]:
        made = [ledger_rows.DecisionRow._make(row) for row in rows]
        pieces = self._pieces({key for row in made for key in (row.setup, row.names) if key is not None})
        return [ledger_rows.decision_event(row, pieces) for row in made]

    def _pieces(self, keys: set[int]) -> dict[int, Common]:
        """The pieces with these keys. Those seen before are not read again: a piece never changes."""
        pieces = self._read_pieces.get(keys)
        if missing := keys - pieces.keys():
            found = self._look_up_about(f"SELECT key, body FROM {common.name} WHERE {{about}}", "key", missing)
            read = {key: Common(key, body) for key, body in found}
            self._read_pieces.put(read.values())
            pieces |= read
        return pieces

    # --- requests ---

    def requests(self, keys: Collection[str]) -> dict[str, KeptRequest]:
        """The answered requests with these keys."""
        return {one.key: one for one in self._requests_with("key", keys)}

    def requests_about(self, transaction_ids: Collection[str]) -> dict[str, KeptRequest]:
        """The first answered request on each of these transactions."""
        return {one.transaction_id: one for one in self._requests_with("transaction_id", transaction_ids)}

    def _requests_with(self, column: str, values: Collection[str]) -> list[KeptRequest]:
        """The answered requests in which a column has one of many values, the latest first."""
        query = f"SELECT {', '.join(REQUEST_COLUMNS)} FROM {requests_table.name} WHERE {{about}} ORDER BY seq DESC"
        return [KeptRequest(*row) for row in self._look_up_about(query, column, values)]

    # --- cases, rows and the checkpoint ---

    def remembered(self, limit: int, after: int = 0) -> list[RememberedCase]:
        """The latest remembered cases after a position."""
        query = f"SELECT {ledger_rows.CASE_COLUMNS} FROM {cases_table.name} WHERE seq > ? ORDER BY seq DESC LIMIT ?"
        rows = self._look_up(query, (after, max(0, limit)))
        return [ledger_rows.remembered_case(ledger_rows.CaseRow._make(row)) for row in reversed(rows)]

    def known_cases(self, transaction_ids: Collection[str]) -> dict[str, KnownCase]:
        """The remembered cases of these transactions."""
        query = f"SELECT {ledger_rows.CASE_COLUMNS} FROM {cases_table.name} WHERE {{about}}"
        rows = [ledger_rows.CaseRow._make(row) for row in self._look_up_about(query, "transaction_id", transaction_ids)]
        return {row.transaction_id: ledger_rows.known_case(row, self.place) for row in rows}

    @contextmanager
    def rows(self) -> Iterator[RowStore]:
        """The row store as it is at one moment, for reading only."""
        with self.reading() as connection:
            yield SqlRows(self._driver_of(connection))

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


def quoted(kinds: Collection[str]) -> str:
    """Kinds of events as SQL lists them."""
    return ", ".join(f"'{kind}'" for kind in sorted(kinds))


def _made(found: Sequence[Event]) -> list[DecisionMade]:
    return [event.payload for event in found if isinstance(event.payload, DecisionMade)]


def _between(table: Table, after: int, before: int | None) -> list[ColumnElement[bool]]:
    return [table.c.seq > after, *([] if before is None else [table.c.seq < before])]


def _parts(wanted: DecisionFilter) -> Iterator[DecisionFilter]:
    """Filters that together let through what one does, each with few enough values for one query."""
    for ids in _chunked_ids(wanted.ids):
        for transaction_ids in _chunked_ids(wanted.transaction_ids):
            yield replace(wanted, ids=ids, transaction_ids=transaction_ids)


def _chunked_ids(ids: Collection[str] | None) -> Iterable[list[str] | None]:
    return [None] if ids is None else chunked(dict.fromkeys(ids))


def _wanted(wanted: DecisionFilter) -> list[ColumnElement[bool]]:
    columns = decisions_table.c
    conditions: list[ColumnElement[bool]] = []
    for column, values in ((columns.id, wanted.ids), (columns.transaction_id, wanted.transaction_ids)):
        if values is not None:
            conditions.append(column.in_(list(values)))
    if wanted.since is not None:
        conditions.append(columns.at >= micros_of(wanted.since))
    if wanted.until is not None:
        conditions.append(columns.at < micros_of(wanted.until))
    if wanted.verdict is not None:
        conditions.append(columns.verdict == str(wanted.verdict))
    if wanted.least_probability is not None:
        conditions.append(columns.probability >= wanted.least_probability)
    if wanted.most_probability is not None:
        conditions.append(columns.probability <= wanted.most_probability)
    if wanted.without_outcome:
        conditions.append(~has_outcome(_REPORTS))
    return conditions


def has_outcome(kinds: Collection[str] = OUTCOME_KINDS) -> ColumnElement[bool]:
    """That an event of these kinds tells the truth about the transaction of a decision. An opinion is not the truth."""
    # Quotation marks inside a text are escaped, so that no text reads like this. PostgreSQL does not parse JSON with a
    # null character in a text.
    opinions = [f'"is_fraud":{flag},"source":"{OutcomeSource.JUDGE}"' for flag in ("true", "false")]
    is_opinion = or_(*(events.c.body.contains(opinion, autoescape=True) for opinion in opinions))
    about = events.c.subject == decisions_table.c.transaction_id
    return select(1).where(events.c.kind.in_(sorted(kinds)), about, ~is_opinion).exists()
