"""Events, decisions and cases as rows of a database, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from acefraud.core.decision import Common, DecisionRecord
from acefraud.core.events import THE_ENGINE, DecisionMade, Event, OutcomeHeard, OutcomeReceived, WrittenPayload
from acefraud.core.ledger import Entry, KnownCase, RememberedCase
from acefraud.core.transaction import Case
from acefraud.errors import StoreError
from acefraud.storage.schema import common, decisions, events
from acefraud.support.timestamps import UNKNOWN, micros_of, time_of

_PUT_DECISION: Final = f"INSERT INTO {decisions.name} VALUES ({', '.join('?' * len(decisions.c))})"
PUT_COMMON: Final = f"INSERT INTO {common.name} VALUES (?, ?) ON CONFLICT DO NOTHING"
_PUT_EVENT: Final = f"INSERT INTO {events.name} VALUES ({', '.join('?' * len(events.c))})"
_PAYLOAD: Final[TypeAdapter[WrittenPayload]] = TypeAdapter(WrittenPayload)
_CASE: Final = TypeAdapter(Case)

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


EVENT_COLUMNS: Final = ", ".join(EventRow._fields)
DECISION_COLUMNS: Final = ", ".join(DecisionRow._fields)
CASE_COLUMNS: Final = ", ".join(CaseRow._fields)

T = TypeVar("T")
Run = tuple[str, list[tuple[int, tuple[Any, ...]]]]
"""A statement and the rows it inserts, each with its place after the last stored event."""


def rows_of(entry: Entry) -> tuple[list[Run], set[Common]]:
    """The rows of events and of decisions in order, and the pieces that the decisions refer to."""
    at, micros = entry.at.isoformat(), micros_of(entry.at)
    author = None if entry.who == THE_ENGINE else entry.who, entry.why or None
    runs: list[Run] = []
    pieces: set[Common] = set()
    for place, payload in enumerate(entry.payloads, 1):
        row: tuple[Any, ...]
        if isinstance(payload, DecisionMade):
            one, statement = payload.record, _PUT_DECISION
            said = one.verdict, one.probability, one.revision
            keys = one.setup and one.setup.key, one.names and one.names.key
            row = one.id, one.transaction_id, micros, *author, *said, *keys, one.body
            pieces.update(piece for piece in (one.setup, one.names) if piece is not None)
        else:
            key = payload.outcome.key if isinstance(payload, OutcomeHeard | OutcomeReceived) else None
            statement = _PUT_EVENT
            row = payload.kind, payload.subject, key, at, entry.who, entry.why, _body(payload)
        if not runs or runs[-1][0] != statement:
            runs.append((statement, []))
        runs[-1][1].append((place, row))
    return runs, pieces


def _body(payload: WrittenPayload) -> str:
    body = payload.model_dump_json()
    # Outcomes are made here from values that were checked, and come in thousands.
    return (
        body
        if isinstance(payload, OutcomeHeard | OutcomeReceived)
        else _readable(_PAYLOAD, body, f"{payload.kind} of {payload.subject}")
    )


def event_of(row: EventRow, place: str) -> Event:
    """The event in a row; raises StoreError naming the playbook's place if it cannot be read."""
    payload = _parsed(_PAYLOAD, row.body, f"playbook {place}: event {row.seq} cannot be read")
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


def case_row(known: KnownCase, seq: int) -> CaseRow:
    """The row of a case at a place."""
    case = known.kept
    time = micros_of(case.transaction.time)
    return CaseRow(
        transaction_id=case.transaction.id,
        seq=seq,
        is_fraud=case.is_fraud,
        known_at=None if case.known_at is None else case.known_at.isoformat(),
        body=case.model_dump_json(),
        time=None if time == UNKNOWN else time,
        has_text=bool(case.transaction.text),
        # Only facts read from a text get a column of their own; the others are in the transaction.
        facts=json.dumps(dict(known.facts)) if case.transaction.text else None,
        reader=known.reader,
    )


def known_case(row: CaseRow, place: str) -> KnownCase:
    """The case in a row with its facts; raises StoreError naming the playbook's place if it cannot be read."""
    case = _parsed(_CASE, row.body, f"playbook {place}: the case of {row.transaction_id} cannot be read")
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


def _parsed(adapter: TypeAdapter[T], body: str, failure: str) -> T:
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise StoreError(f"{failure}: {'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}") from error


def _readable(adapter: TypeAdapter[Any], body: str, name: str) -> str:
    """The JSON, once it is sure to read back: nothing can be removed from the ledger later.

    The usual culprit is an infinite number, which JSON does not have and pydantic writes as null.
    """
    _parsed(adapter, body, f"{name} cannot be kept, nothing was written")
    return body
