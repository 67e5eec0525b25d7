"""The protocol of a store: an append-only ledger of events, with labelled cases and a row store beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from acefraud.core.decision import Decision, DecisionRecord
from acefraud.core.events import (
    BULLET_KINDS,
    DECISION_MADE,
    EDIT_KINDS,
    OUTCOME_KINDS,
    OUTCOME_RECEIVED,
    OUTCOMES_TAKEN_IN,
    Event,
    EventPayload,
    OutcomeHeard,
    OutcomeReceived,
)
from acefraud.core.playbook import Checkpoint
from acefraud.core.transaction import Case, FactValue, Verdict
from acefraud.display.short_repr import ShortRepr, quoted
from acefraud.errors import AlreadyAnswered, StoreConflict


class RowStore(Protocol):
    """Rows of bytes by key. Answers leave out keys that are not there."""

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows with these keys."""

    def get_all(self) -> dict[str, bytes]:
        """Every row."""

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Insert or replace rows."""

    def forget_many(self, keys: Iterable[str]) -> None:
        """Delete the rows with these keys. Missing keys are ignored."""

    def clear(self) -> None:
        """Delete all rows."""


RowUpdate = Callable[[RowStore], None]
"""A function that changes the rows when its events are written."""


class MemoryRows:
    """Rows that live as long as the process.

    >>> store = MemoryRows()
    >>> store.put_many({"a": b"1"})
    >>> store.get_many(["a", "b"])
    {'a': b'1'}
    """

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows with these keys."""
        return {key: self.rows[key] for key in keys if key in self.rows}

    def get_all(self) -> dict[str, bytes]:
        """Every row."""
        return dict(self.rows)

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Insert or replace rows."""
        self.rows.update(rows)

    def forget_many(self, keys: Iterable[str]) -> None:
        """Delete the rows with these keys."""
        for key in keys:
            self.rows.pop(key, None)

    def clear(self) -> None:
        """Delete all rows."""
        self.rows.clear()


class BufferedRows:
    """Changes to another store that are only made by `write_to`. Reads see them at once.

    >>> store = MemoryRows()
    >>> store.put_many({"a": b"1"})
    >>> buffer = BufferedRows(store)
    >>> buffer.put_many({"a": b"2"})
    >>> store.get_many(["a"]), buffer.get_many(["a"])
    ({'a': b'1'}, {'a': b'2'})
    >>> buffer.write_to(store)
    >>> store.get_many(["a"])
    {'a': b'2'}
    """

    def __init__(self, store: RowStore) -> None:
        self._store = store
        self._changed: dict[str, bytes | None] = {}
        self._cleared = False

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows with these keys."""
        wanted = list(keys)
        unchanged = [] if self._cleared else [key for key in wanted if key not in self._changed]
        changed = {key: self._changed.get(key) for key in wanted}
        return self._store.get_many(unchanged) | {key: row for key, row in changed.items() if row is not None}

    def get_all(self) -> dict[str, bytes]:
        """Every row."""
        rows = ({} if self._cleared else self._store.get_all()) | self._changed
        return {key: row for key, row in rows.items() if row is not None}

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Insert or replace rows."""
        self._changed.update(rows)

    def forget_many(self, keys: Iterable[str]) -> None:
        """Delete the rows with these keys."""
        self._changed.update(dict.fromkeys(keys))

    def clear(self) -> None:
        """Delete all rows."""
        self._changed.clear()
        self._cleared = True

    def write_to(self, store: RowStore) -> None:
        """Make the changes in a store."""
        if self._cleared:
            store.clear()
        store.forget_many(key for key, row in self._changed.items() if row is None)
        store.put_many({key: row for key, row in self._changed.items() if row is not None})


@dataclass(frozen=True, slots=True, repr=False)
class KnownCase(ShortRepr):
    """A labelled case to remember, with every fact known about it and the version of the reader of its text."""

    case: Case
    facts: Mapping[str, FactValue]
    reader: str

    @property
    def kept(self) -> Case:
        """The case as a ledger stores it. Without a text to read again, its transaction holds all known facts."""
        if self.case.transaction.text or self.case.transaction.facts == self.facts:
            return self.case
        transaction = self.case.transaction.model_copy(update={"facts": dict(self.facts)})
        return self.case.model_copy(update={"transaction": transaction})


@dataclass(frozen=True, slots=True, repr=False)
class RememberedCase(ShortRepr):
    """What learning needs of a remembered case: its label and its facts."""

    seq: int
    """Its position among the remembered cases. A case that arrives again moves to the end."""
    id: str
    is_fraud: bool
    time: int
    """Microseconds since 1970, or `UNKNOWN`."""
    has_text: bool
    reader: str
    """The version of the reader; empty if the text was never read, as in files of an earlier schema."""
    facts: Mapping[str, FactValue]


@dataclass(frozen=True, slots=True, repr=False)
class TransactionEvents(ShortRepr):
    """The decisions on one transaction and the outcomes heard of it, oldest first."""

    records: list[DecisionRecord] = field(default_factory=list)
    outcomes: list[OutcomeHeard] = field(default_factory=list)

    @property
    def decisions(self) -> list[Decision]:
        """The decisions, as far as they are recorded."""
        return [record.decision for record in self.records]


@dataclass(frozen=True, slots=True)
class Precondition:
    """A write depends on this: no event after ``seq`` has one of the ``kinds`` and is about one of the ``subjects``."""

    seq: int
    kinds: frozenset[str]
    subjects: Collection[str] | None = None
    """None means every subject."""
    keys: Collection[str] | None = None
    """Instead of subjects: the keys of outcomes (`Outcome.key`)."""

    def violated_by(self, event: Event) -> bool:
        """Whether an event breaks the precondition."""
        return event.seq > self.seq and event.payload.kind in self.kinds and self._concerns(event.payload)

    def _concerns(self, payload: EventPayload) -> bool:
        if self.keys is not None:
            return isinstance(payload, OutcomeHeard | OutcomeReceived) and payload.outcome.key in self.keys
        return self.subjects is None or payload.subject in self.subjects

    @classmethod
    def no_edits_since(cls, seq: int) -> Precondition:
        """Nobody has changed the playbook. Decisions and outcomes only add to counters and do not count."""
        return cls(seq, EDIT_KINDS)

    @classmethod
    def no_bullet_edits_since(cls, seq: int, bullet_ids: Collection[str] | None = None) -> Precondition:
        """Nobody has added, edited or moved one of these bullets; any bullet by default."""
        return cls(seq, BULLET_KINDS, bullet_ids)

    @classmethod
    def no_outcomes_since(cls, seq: int, transaction_ids: Collection[str]) -> Precondition:
        """No outcome of these transactions was heard."""
        return cls(seq, OUTCOME_KINDS, transaction_ids)

    @classmethod
    def no_reports_since(cls, seq: int, transaction_ids: Collection[str]) -> Precondition:
        """No outcome of these transactions was received or heard."""
        return cls(seq, OUTCOME_KINDS | {OUTCOME_RECEIVED}, transaction_ids)

    @classmethod
    def no_reports_with_keys_since(cls, seq: int, keys: Collection[str]) -> Precondition:
        """No outcome with one of these keys was received or heard, whatever transaction it is about."""
        return cls(seq, OUTCOME_KINDS | {OUTCOME_RECEIVED}, keys=keys)

    @classmethod
    def nothing_taken_in_since(cls, seq: int, node: str) -> Precondition:
        """Nobody has judged outcomes that were received for a node."""
        return cls(seq, frozenset({OUTCOMES_TAKEN_IN}), {node})

    @classmethod
    def no_decisions_since(cls, seq: int, transaction_ids: Collection[str]) -> Precondition:
        """Nobody has decided these transactions."""
        return cls(seq, frozenset({DECISION_MADE}), transaction_ids)


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """A request to decide that was answered, kept with its decision so that a repeat gets the same answer."""

    key: str
    """What the caller calls the request. There is one request with a key."""
    transaction_id: str
    digest: str
    """Of what was asked: the same key with another digest is another request by mistake."""
    decision_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFilter:
    """Which recorded decisions are wanted. What is None does not matter."""

    ids: Collection[str] | None = None
    transaction_ids: Collection[str] | None = None
    since: datetime | None = None
    """Made at this time or later."""
    until: datetime | None = None
    """Made before this time."""
    verdict: Verdict | None = None
    least_probability: float | None = None
    most_probability: float | None = None
    without_outcome: bool = False
    """Only on transactions of which no outcome was received or heard. A judge's opinion is not an outcome."""


@dataclass(frozen=True, slots=True, repr=False)
class Entry(ShortRepr):
    """What is appended to a ledger at once: events, and the cases, changes of rows and requests that belong to them."""

    payloads: Sequence[EventPayload]
    at: datetime
    who: str
    why: str = ""
    preconditions: Sequence[Precondition] = ()
    cases: Sequence[KnownCase] = ()
    rows: RowUpdate | None = None
    requests: Sequence[KeptRequest] = ()

    def events_after(self, seq: int) -> list[Event]:
        """The events, numbered from the one after ``seq`` on."""
        return [
            Event(number, self.at, self.who, payload, self.why) for number, payload in enumerate(self.payloads, seq + 1)
        ]


class Ledger(Protocol):
    """A store of events in order. Once `append` returns, readers see the events, and a store on disk has kept them."""

    def append(self, entry: Entry) -> list[Event]:
        """Write the events, the cases they bring and the row update: all of it, or nothing.

        The row update runs under the write lock, so what it reads stays true. A case replaces the one with the same
        transaction id. Raises StoreConflict if a precondition does not hold, AlreadyAnswered if there is a request with
        the same key already.
        """

    def last_seq(self) -> int:
        """The number of the last event; 0 if there is none."""

    def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[Event]:
        """The events after one number up to and including another, in order; without decisions if asked."""

    def decisions(self, decision_ids: Collection[str]) -> dict[str, Decision]:
        """The recorded decisions with these ids, by id; the latest if one was recorded twice."""

    def recorded(self, decision_ids: Collection[str]) -> set[str]:
        """Which of these decisions are recorded."""

    def latest_decisions(self, limit: int) -> list[DecisionRecord]:
        """The records of the latest decisions, oldest first."""

    def reviews_since(self, at: datetime, after: int = 0) -> tuple[int, int]:
        """How many decisions after an event, made at or after a time, sent a case to a person; and the last event."""

    def find_decisions(
        self,
        wanted: DecisionFilter,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int,
        newest_first: bool = True,
    ) -> list[Event]:
        """Up to `limit` recorded decisions between two event numbers, exclusive of both, in order of these."""

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
        """Up to `limit` events of these kinds, none of them decisions, about a subject if one is given."""

    def count_events(self, kinds: Collection[str], *, after: int = 0, limit: int) -> int:
        """How many events of these kinds, none of them decisions, there are after one; counted up to `limit`."""

    def received_outcomes(self, keys: Collection[str]) -> dict[str, Event]:
        """The first event of an outcome received or heard (`OutcomeReceived`, `OutcomeHeard`) with each of these
        `Outcome.key`s, by key.
        """

    def outcome_events(self, transaction_ids: Collection[str]) -> dict[str, list[Event]]:
        """The events of outcomes received or heard of these transactions, by id, oldest first.

        Only ids with such events have an entry.
        """

    def requests(self, keys: Collection[str]) -> dict[str, KeptRequest]:
        """The answered requests with these keys, by key."""

    def requests_about(self, transaction_ids: Collection[str]) -> dict[str, KeptRequest]:
        """The first answered request on each of these transactions, by transaction id."""

    def transaction_events(self, transaction_ids: Collection[str]) -> dict[str, TransactionEvents]:
        """The decisions on these transactions and their outcomes, by id. Every id has an entry."""

    def history(self, bullet_id: str) -> list[Event]:
        """The events about a bullet, oldest first."""

    def remembered(self, limit: int, after: int = 0) -> list[RememberedCase]:
        """The latest `limit` remembered cases after a position, in order."""

    def known_cases(self, transaction_ids: Collection[str]) -> dict[str, KnownCase]:
        """The remembered cases of these transactions (`KnownCase.kept`), by id, with their facts."""

    def replace_facts(self, facts: Mapping[str, Mapping[str, FactValue]], reader: str) -> None:
        """Replace the facts of remembered cases, by transaction id. Positions stay; unknown ids are ignored."""

    def rows(self) -> AbstractContextManager[RowStore]:
        """The row store as it is at one moment, for reading only."""

    def claim(self, work: str) -> AbstractContextManager[bool]:
        """Try to be the only one, in any process, who does some work. The value says whether nobody else is at it.

        The claim ends with the block, or with the process.
        """

    def wait_for_events(self, after: int, timeout: float) -> bool:
        """Wait until there are events other than decisions after a number. False if the seconds are up before."""

    def checkpoint(self) -> Checkpoint | None:
        """The saved checkpoint; None if there is none, or if another version wrote it."""

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Replace the saved checkpoint. An older one never replaces a newer one."""

    def close(self) -> None:
        """Close the store. Closing twice is harmless."""


def conflict_with(event: Event) -> StoreConflict:
    """The error for a write that another writer's event got ahead of."""
    what = f"{event.payload.kind} of {event.payload.subject}"
    message = f"{event.who} wrote event {event.seq} meanwhile ({what}) at {event.at:%Y-%m-%d %H:%M:%S %Z}".rstrip()
    return StoreConflict(message, who=event.who, at=event.at)


def answered_already(request: KeptRequest) -> AlreadyAnswered:
    """The error for a request that somebody else has answered meanwhile."""
    return AlreadyAnswered(f"the request {quoted(request.key)} was answered meanwhile")
