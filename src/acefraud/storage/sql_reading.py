"""What can be read from a ledger in a database, whichever it is."""

from __future__ import annotations

import json
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

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
from acefraud.errors import StoreError, StoreUnavailable
from acefraud.storage.driver import Dialect, Driver, SqlRows, chunked
from acefraud.storage.schema import (
    CaseRow,
    DecisionRow,
    EventRow,
    decision_event,
    event_of,
    known_case,
    remembered_case,
    selection,
)
from acefraud.support.timestamps import micros_of

WAIT_SECONDS: Final = 30.0
"""How long somebody waits for a lock, or for a connection."""
_EVENTS_PER_QUERY: Final = 1_000
"""Reading in parts keeps no lock open while the caller works, so that SQLite can tidy its log."""
_LOOK_UPS_AT_ONCE: Final = 4
"""So many connections are kept for short queries. More would crowd a server, and they are free again at once."""
MOST_PIECES = 2_000
LAST_EVENT: Final = "SELECT coalesce(max(seq), 0) FROM events"
LAST_SEQ: Final = (
    "SELECT coalesce(max(last), 0) FROM (SELECT max(seq) AS last FROM events "
    "UNION ALL SELECT max(seq) FROM decisions) AS numbered"
)
_REPORTS: Final = OUTCOME_KINDS | {OUTCOME_RECEIVED}
"""Outcomes, received or heard."""
_PART: Final = "seq > ? AND seq <= ? ORDER BY seq LIMIT ?"

Conditions = list[tuple[str, tuple[Any, ...]]]
"""What has to hold of a row, in SQL, each with its values."""
_Row = tuple[Any, ...]


class StoredEvent(NamedTuple):
    """An event as a database holds it."""

    seq: int
    content: bytes
    """All columns of its row, with the pieces that a decision has in common with others."""
    is_compact: bool
    """Whether it is a decision that can be computed again."""


class SqlReading(ABC):
    """Reads events, cases, rows and the checkpoint."""

    def __init__(self, place: str, dialect: Dialect, connect: Callable[[], Any], *, most_readers: int) -> None:
        """`connect` makes a new connection of the driver, on which every statement is committed by itself."""
        self.place = place
        """Where it is, as messages name it."""
        self.dialect = dialect
        self._connect = connect
        self._closed = threading.Event()
        self._pieces: dict[int, Common] = {}
        """Pieces that are known to be in the database. Others may be too: writing them again changes nothing."""
        self._idle: list[Any] = []
        """Connections that nobody uses."""
        self._look_ups = threading.BoundedSemaphore(_LOOK_UPS_AT_ONCE)
        self._readers = threading.BoundedSemaphore(most_readers)

    @abstractmethod
    def translated(self) -> AbstractContextManager[None]:
        """Raise StoreError for errors of the database."""

    def _is_alive(self, connection: Any) -> bool:  # noqa: ARG002 - a file does not go away
        """Whether a connection that was idle can be used."""
        return True

    @contextmanager
    def reading(self) -> Iterator[Driver]:
        """A connection that sees the database as it is at one moment."""
        self._check_open()
        if not self._readers.acquire(timeout=WAIT_SECONDS):
            raise StoreUnavailable(f"playbook {self.place}: all connections are in use; try again later")
        try:
            with self._borrowed() as driver:
                driver.ask(self.dialect.begin_reading)
                yield driver
                driver.ask("COMMIT")
        finally:
            self._readers.release()

    @contextmanager
    def _looking_up(self) -> Iterator[Driver]:
        """A connection for short queries. Every decision asks some."""
        self._check_open()
        with self._look_ups, self._borrowed() as driver:
            yield driver

    @contextmanager
    def _borrowed(self) -> Iterator[Driver]:
        """A connection that nobody else uses. It is kept, because opening one takes longer than most queries."""
        with self.translated():
            connection = self._take_idle()
            if connection is not None and not self._is_alive(connection):
                connection.close()
                connection = None
            connection = connection or self._connect()
            try:
                yield Driver(connection, self.dialect)
            except BaseException:
                connection.close()
                raise
            if len(self._idle) < _LOOK_UPS_AT_ONCE:
                self._idle.append(connection)
            else:
                connection.close()
        if self._closed.is_set():
            self._close_idle()

    def _take_idle(self) -> Any:
        """A connection that nobody uses; None if there is none. Another thread may be first."""
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _close_idle(self) -> None:
        while (connection := self._take_idle()) is not None:
            connection.close()

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

    def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[Event]:
        """The events after one number up to and including another; none that are written after the first is read."""
        last = self.last_seq()
        end = last if until is None else min(until, last)
        while after < end:
            part, after = self._part(after, end, decisions=decisions)
            yield from part

    def _part(self, after: int, end: int, *, decisions: bool) -> tuple[list[Event], int]:
        """The next events and the number they reach to."""
        written, made, reached = self._rows(after, end, decisions=decisions)
        return sorted([*self._events(written), *self._decision_events(made)], key=attrgetter("seq")), reached

    def _rows(self, after: int, end: int, *, decisions: bool = True) -> tuple[list[_Row], list[_Row], int]:
        """The next rows of events and of decisions, and the number they reach to."""
        with self._looking_up() as driver:
            limits = after, end, _EVENTS_PER_QUERY
            written = driver.fetch(f"{selection('events')} {_PART}", limits)
            made = driver.fetch(f"{selection('decisions')} {_PART}", limits) if decisions else []
        reached = min([end, *(some[-1][0] for some in (written, made) if len(some) == _EVENTS_PER_QUERY)])
        return [row for row in written if row[0] <= reached], [row for row in made if row[0] <= reached], reached

    def stored(self, until: int) -> Iterator[StoredEvent]:
        """Every event up to one as it is written, in order. None is parsed, so no version reads it differently."""
        after = 0
        while after < until:
            written, made, after = self._rows(after, until)
            records = _made(self._decision_events(made))
            parts = [StoredEvent(row[0], json.dumps(row).encode(), is_compact=False) for row in written]
            for row, payload in zip(made, records, strict=True):
                pieces = [piece and piece.body for piece in (payload.record.setup, payload.record.names)]
                content = json.dumps([*row, *pieces]).encode()
                parts.append(StoredEvent(row[0], content, is_compact=payload.record.setup is not None))
            yield from sorted(parts)

    def decisions_numbered(self, seqs: Collection[int]) -> list[DecisionRecord]:
        """The records of the decisions that are these events, in order."""
        return [made.record for made in self._decisions_with("seq", seqs)]

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
        if not kinds:
            return []
        wanted = [self.dialect.among("kind", sorted(kinds)), *_between(after, before)]
        if subject is not None:
            wanted.append(("subject = ?", (subject,)))
        with self._looking_up() as driver:
            return self._events(_found(driver, "events", wanted, limit, newest_first=newest_first))

    def count_events(self, kinds: Collection[str], *, after: int = 0, limit: int) -> int:
        """How many events of these kinds there are after one."""
        if not kinds:
            return 0
        some = f"SELECT 1 FROM events WHERE kind IN ({quoted(kinds)}) AND seq > ? LIMIT ?"
        ((count,),) = self._look_up(f"SELECT count(*) FROM ({some}) AS found", (after, max(0, limit)))
        return int(count)

    def history(self, bullet_id: str) -> list[Event]:
        """The events about a bullet."""
        return self.find_events(BULLET_HISTORY_KINDS, subject=bullet_id, limit=sys.maxsize)

    def received_outcomes(self, keys: Collection[str]) -> dict[str, Event]:
        """The outcomes received or heard with these keys."""
        query = f"{selection('events')} kind IN ({quoted(_REPORTS)}) AND {{about}} ORDER BY seq DESC"
        rows = [EventRow._make(row) for row in self._look_up_about(query, "key", keys)]
        return {row.key: event_of(row, self.place) for row in rows if row.key is not None}

    def outcome_events(self, transaction_ids: Collection[str]) -> dict[str, list[Event]]:
        """The events of outcomes of these transactions. Every decision asks, and mostly there are none."""
        query = f"{selection('events')} kind IN ({quoted(_REPORTS)}) AND {{about}} ORDER BY seq"
        found: dict[str, list[Event]] = {}
        for event in self._events(self._look_up_about(query, "subject", transaction_ids)):
            found.setdefault(event.payload.subject, []).append(event)
        return found

    def _events(self, rows: Sequence[Sequence[Any]]) -> list[Event]:
        return [event_of(EventRow._make(row), self.place) for row in rows]

    # --- decisions and outcomes ---

    def decisions(self, decision_ids: Collection[str]) -> dict[str, Decision]:
        """The recorded decisions with these ids."""
        decided = self._decisions_with("id", decision_ids)
        return {made.record.id: made.record.decision for made in decided}

    def recorded(self, decision_ids: Collection[str]) -> set[str]:
        """Which of these decisions are recorded."""
        query = "SELECT id FROM decisions WHERE {about}"
        return {each for (each,) in self._look_up_about(query, "id", decision_ids)}

    def latest_decisions(self, limit: int) -> list[DecisionRecord]:
        """The records of the latest decisions, oldest first."""
        rows = self._look_up(f"{selection('decisions')} true ORDER BY seq DESC LIMIT ?", (max(0, limit),))
        return [made.record for made in _made(self._decision_events(rows[::-1]))]

    def reviews_since(self, at: datetime, after: int = 0) -> tuple[int, int]:
        """How many decisions sent a case to a person, and the last event."""
        last = self.last_seq()
        query = "SELECT count(*) FROM decisions WHERE seq > ? AND seq <= ? AND at >= ? AND verdict = ?"
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
        between = _between(after, before)
        with self.reading() as driver:
            rows = [
                DecisionRow._make(row)
                for part in _parts(wanted)
                for row in _found(driver, "decisions", self._wanted(part) + between, limit, newest_first=newest_first)
            ]
        return self._decision_events(sorted(rows, key=attrgetter("seq"), reverse=newest_first)[: max(0, limit)])

    def _wanted(self, wanted: DecisionFilter) -> Conditions:
        simple = (
            ("at >= ?", wanted.since and micros_of(wanted.since)),
            ("at < ?", wanted.until and micros_of(wanted.until)),
            ("verdict = ?", wanted.verdict and str(wanted.verdict)),
            ("probability >= ?", wanted.least_probability),
            ("probability <= ?", wanted.most_probability),
        )
        conditions: Conditions = [(condition, (value,)) for condition, value in simple if value is not None]
        for column, values in (("id", wanted.ids), ("transaction_id", wanted.transaction_ids)):
            if values is not None:
                conditions.append(self.dialect.among(column, list(values)))
        if wanted.without_outcome:
            conditions.append((f"NOT {self.has_outcome(_REPORTS)}", ()))
        return conditions

    def has_outcome(self, kinds: Collection[str] = OUTCOME_KINDS) -> str:
        """That an event of these kinds tells the truth about the transaction of a decision, which an opinion is not."""
        is_truth = f"coalesce({self.dialect.outcome_source}, '') <> '{OutcomeSource.JUDGE}'"
        about = "subject = decisions.transaction_id"
        return f"EXISTS (SELECT 1 FROM events WHERE kind IN ({quoted(kinds)}) AND {about} AND {is_truth})"

    def transaction_events(self, transaction_ids: Collection[str]) -> dict[str, TransactionEvents]:
        """The decisions on these transactions and their outcomes."""
        found = {transaction_id: TransactionEvents() for transaction_id in transaction_ids}
        for made in self._decisions_with("transaction_id", found):
            found[made.subject].records.append(made.record)
        heard = f"{selection('events')} kind IN ({quoted(OUTCOME_KINDS)}) AND {{about}} ORDER BY seq"
        for event in self._events(self._look_up_about(heard, "subject", found)):
            assert isinstance(event.payload, OutcomeHeard)
            found[event.payload.subject].outcomes.append(event.payload)
        return found

    def _decisions_with(self, column: str, values: Collection[Any]) -> list[DecisionMade]:
        """The decisions in which a column has one of many values, in order."""
        rows = self._look_up_about(f"{selection('decisions')} {{about}} ORDER BY seq", column, values)
        return _made(self._decision_events(rows))

    def _decision_events(self, rows: Sequence[Sequence[Any]]) -> list[Event]:
        made = [DecisionRow._make(row) for row in rows]
        wanted = {key for row in made for key in (row.setup, row.names) if key is not None}
        known = self._pieces  # those seen before are not read again: a piece never changes
        if missing := wanted - known.keys():
            found = self._look_up_about("SELECT key, body FROM common WHERE {about}", "key", missing)
            known = known | {key: Common(key, body) for key, body in found}
            self._remember(known[key] for key in wanted if key in known)
        return [decision_event(row, known) for row in made]

    def _remember(self, pieces: Iterable[Common]) -> None:
        """Remember pieces that are in the database. All others are forgotten now and then, so that they stay few."""
        if len(self._pieces) > MOST_PIECES:
            self._pieces = {}
        self._pieces.update((piece.key, piece) for piece in pieces)

    # --- requests ---

    def requests(self, keys: Collection[str]) -> dict[str, KeptRequest]:
        """The answered requests with these keys."""
        return {request.key: request for request in self._requests_with("key", keys)}

    def requests_about(self, transaction_ids: Collection[str]) -> dict[str, KeptRequest]:
        """The first answered request on each of these transactions."""
        return {request.transaction_id: request for request in self._requests_with("transaction_id", transaction_ids)}

    def _requests_with(self, column: str, values: Collection[str]) -> list[KeptRequest]:
        """The answered requests in which a column has one of many values, the latest first."""
        query = "SELECT key, transaction_id, digest, decision_id FROM requests WHERE {about} ORDER BY seq DESC"
        return [KeptRequest(*row) for row in self._look_up_about(query, column, values)]

    # --- cases, rows and the checkpoint ---

    def remembered(self, limit: int, after: int = 0) -> list[RememberedCase]:
        """The latest remembered cases after a position."""
        query = f"{selection('cases')} seq > ? ORDER BY seq DESC LIMIT ?"
        rows = self._look_up(query, (after, max(0, limit)))
        return [remembered_case(CaseRow._make(row)) for row in reversed(rows)]

    def known_cases(self, transaction_ids: Collection[str]) -> dict[str, KnownCase]:
        """The remembered cases of these transactions."""
        query = f"{selection('cases')} {{about}}"
        rows = [CaseRow._make(row) for row in self._look_up_about(query, "transaction_id", transaction_ids)]
        return {row.transaction_id: known_case(row, self.place) for row in rows}

    @contextmanager
    def rows(self) -> Iterator[RowStore]:
        """The row store as it is at one moment, for reading only."""
        with self.reading() as driver:
            yield SqlRows(driver)

    def checkpoint(self) -> Checkpoint | None:
        """The saved checkpoint. One of another version is ignored, since the events can be applied again."""
        with self.reading() as driver:
            body = driver.value("SELECT body FROM checkpoints")
            if body is None:
                return None
            try:
                header = CheckpointHeader.model_validate_json(body)
            except ValidationError:
                return None
            # Earlier versions wrote several pages.
            pages = driver.fetch("SELECT bullets FROM checkpoint_pages ORDER BY number")
            return Checkpoint(header, b"\n".join(bullets for (bullets,) in pages))


def quoted(kinds: Collection[str]) -> str:
    """Kinds of events as SQL lists them."""
    return ", ".join(f"'{kind}'" for kind in sorted(kinds))


def _made(found: Sequence[Event]) -> list[DecisionMade]:
    return [event.payload for event in found if isinstance(event.payload, DecisionMade)]


def _between(after: int, before: int | None) -> Conditions:
    return [("seq > ?", (after,)), *([] if before is None else [("seq < ?", (before,))])]


def _found(
    driver: Driver, table: str, conditions: Conditions, limit: int, *, newest_first: bool
) -> list[tuple[Any, ...]]:
    """The rows for which the conditions hold, in the order of their numbers."""
    where = " AND ".join(condition for condition, _ in conditions)
    values = [value for _, given in conditions for value in given]
    order = "seq DESC" if newest_first else "seq"
    return driver.fetch(f"{selection(table)} {where} ORDER BY {order} LIMIT ?", (*values, max(0, limit)))


def _parts(wanted: DecisionFilter) -> Iterator[DecisionFilter]:
    """Filters that together let through what one does, each with few enough values for one query."""
    for ids in _chunked_ids(wanted.ids):
        for transaction_ids in _chunked_ids(wanted.transaction_ids):
            yield replace(wanted, ids=ids, transaction_ids=transaction_ids)


def _chunked_ids(ids: Collection[str] | None) -> Iterable[list[str] | None]:
    return [None] if ids is None else chunked(dict.fromkeys(ids))
