"""The tables of a playbook, how to recognise one, and events, decisions and cases as rows of them, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter

from acefraud.core.decision import Common, DecisionRecord
from acefraud.core.events import THE_ENGINE, DecisionMade, Event, OutcomeHeard, OutcomeReceived, WrittenPayload
from acefraud.core.ledger import Entry, KnownCase, RememberedCase
from acefraud.core.transaction import Case
from acefraud.errors import StoreSchema
from acefraud.support.timestamps import UNKNOWN, micros_of, time_of
from acefraud.support.validation import read_stored

APPLICATION_ID: Final = 0x41434546
"""Marks our files in the SQLite header: "ACEF" in ASCII."""
NEWEST: Final = "0006"
"""The schema this version writes. It stands here so that opening a current file does not import alembic."""
_PAYLOAD: Final[TypeAdapter[WrittenPayload]] = TypeAdapter(WrittenPayload)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class EventRow(NamedTuple):
    """A row of the table of events."""

    seq: int
    kind: str
    subject: str
    key: str | None
    at: str
    who: str
    why: str
    body: str


class DecisionRow(NamedTuple):
    """A row of the table of decisions."""

    seq: int
    id: str
    transaction_id: str
    at: int
    who: str | None
    why: str | None
    verdict: str
    probability: float
    revision: int
    setup: int | None
    names: int | None
    body: str


class CaseRow(NamedTuple):
    """A row of the table of cases."""

    transaction_id: str
    seq: int
    is_fraud: bool
    known_at: str | None
    body: str
    time: int | None
    has_text: bool
    facts: str | None
    reader: str


TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "events": EventRow._fields,
    "decisions": DecisionRow._fields,
    "cases": CaseRow._fields,
    "history": ("key", "value"),
    "requests": ("key", "transaction_id", "digest", "decision_id", "seq"),
    "common": ("key", "body"),
    "checkpoints": ("id", "seq", "body"),
    "checkpoint_pages": ("number", '"table"', "bullets"),
    "meta": ("name", "value"),
    "api_keys": ("id", "name", "hash", "scopes", "created_at", "created_by", "revoked_at", "revoked_by"),
}
"""The columns of each table as SQL names them, the primary key first. The migrations say what they hold."""


def insertion(table: str) -> str:
    """The statement that inserts a row into a table."""
    columns = TABLES[table]
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def selection(table: str) -> str:
    """The beginning of a query for rows of a table, up to their condition."""
    return f"SELECT {', '.join(TABLES[table])} FROM {table} WHERE"


PUT_CASE: Final = (
    f"INSERT INTO cases ({', '.join(CaseRow._fields)}) "
    "VALUES (?, (SELECT coalesce(max(seq), 0) + 1 FROM cases), ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (transaction_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in CaseRow._fields if name != "transaction_id")
)
PUT_COMMON: Final = f"{insertion('common')} ON CONFLICT DO NOTHING"
_PUT_DECISION: Final = insertion("decisions")
_PUT_EVENT: Final = insertion("events")

Run = tuple[str, list[tuple[int, tuple[Any, ...]]]]
"""A statement and the rows it inserts, each with its place after the last stored event."""


def rows_of(entry: Entry) -> tuple[list[Run], set[Common]]:
    """The rows of events and of decisions in order, and the pieces that the decisions refer to."""
    at, micros = entry.at.isoformat(), micros_of(entry.at)
    author = None if entry.who == THE_ENGINE else entry.who, entry.why or None
    runs: list[Run] = []
    pieces: set[Common] = set()
    for number, payload in enumerate(entry.payloads, 1):
        row: tuple[Any, ...]
        if isinstance(payload, DecisionMade):
            record, statement = payload.record, _PUT_DECISION
            said = record.verdict, record.probability, record.revision
            keys = record.setup and record.setup.key, record.names and record.names.key
            row = record.id, record.transaction_id, micros, *author, *said, *keys, record.body
            pieces.update(piece for piece in (record.setup, record.names) if piece is not None)
        else:
            key = payload.outcome.key if isinstance(payload, OutcomeHeard | OutcomeReceived) else None
            statement = _PUT_EVENT
            row = payload.kind, payload.subject, key, at, entry.who, entry.why, _body(payload)
        if not runs or runs[-1][0] != statement:
            runs.append((statement, []))
        runs[-1][1].append((number, row))
    return runs, pieces


def _body(payload: WrittenPayload) -> str:
    """The JSON of a payload, once it is sure to read back: nothing can be removed from the ledger later.

    The usual culprit is an infinite number, which JSON does not have and pydantic writes as null.
    """
    body = payload.model_dump_json()
    # Outcomes are made here from values that were checked, and come in thousands.
    if not isinstance(payload, OutcomeHeard | OutcomeReceived):
        failure = f"{payload.kind} of {payload.subject} cannot be kept, nothing was written"
        read_stored(_PAYLOAD.validate_json, body, failure)
    return body


def event_of(row: EventRow, place: str) -> Event:
    """The event in a row; raises StoreError naming the playbook's place if it cannot be read."""
    payload = read_stored(_PAYLOAD.validate_json, row.body, f"playbook {place}: event {row.seq} cannot be read")
    return Event(row.seq, datetime.fromisoformat(row.at), row.who, payload, row.why)


def decision_event(row: DecisionRow, pieces: Mapping[int, Common]) -> Event:
    """The event of a decision. `pieces` has what it has in common with others."""
    record = DecisionRecord(
        row.id,
        row.transaction_id,
        row.verdict,
        row.probability,
        row.revision,
        row.body,
        None if row.setup is None else pieces.get(row.setup),
        None if row.names is None else pieces.get(row.names),
    )
    who = THE_ENGINE if row.who is None else row.who
    return Event(row.seq, time_of(row.at) or _EPOCH, who, DecisionMade(record), row.why or "")


def case_values(known: KnownCase) -> tuple[Any, ...]:
    """The row of a case, without its number."""
    case = known.kept
    time = micros_of(case.transaction.time)
    return (
        case.transaction.id,
        case.is_fraud,
        None if case.known_at is None else case.known_at.isoformat(),
        case.model_dump_json(),
        None if time == UNKNOWN else time,
        bool(case.transaction.text),
        # Only facts read from a text get a column of their own; the others are in the transaction.
        json.dumps(dict(known.facts)) if case.transaction.text else None,
        known.reader,
    )


def known_case(row: CaseRow, place: str) -> KnownCase:
    """The case in a row with its facts; raises StoreError naming the playbook's place if it cannot be read."""
    case = read_stored(
        Case.model_validate_json, row.body, f"playbook {place}: the case of {row.transaction_id} cannot be read"
    )
    return KnownCase(case, remembered_case(row).facts, row.reader)


def remembered_case(row: CaseRow) -> RememberedCase:
    """What learning needs of the case in a row."""
    facts = json.loads(row.body)["transaction"].get("facts", {}) if row.facts is None else json.loads(row.facts)
    return RememberedCase(
        seq=row.seq,
        id=row.transaction_id,
        is_fraud=bool(row.is_fraud),  # SQLite has no booleans
        time=UNKNOWN if row.time is None else row.time,
        has_text=bool(row.has_text),
        reader=row.reader,
        facts=facts,
    )


@dataclass(frozen=True)
class FileState:
    """Whether a file or database is a playbook, and its schema."""

    ours: bool
    """True for a playbook, and for a blank file that can become one."""
    version: str | None = None
    """Its schema; None if it has none yet, as after a crash during creation."""

    def check_known(self, place: str) -> None:
        """Raise StoreSchema if a newer version of acefraud wrote the playbook at a place."""
        from acefraud.storage.migrations import known_versions  # noqa: PLC0415

        if self.version is not None and self.version not in known_versions():
            raise StoreSchema(
                f"{place} has schema {self.version}, the newest this version of acefraud knows is {NEWEST}; "
                "use the version that wrote it, or a newer one"
            )
