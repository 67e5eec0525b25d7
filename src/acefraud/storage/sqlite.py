"""A ledger in one SQLite file. What `append` has returned survives a crash of the process and a power cut."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Column, Connection, Engine, Row, Select, bindparam, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from acefraud.core.decision import Decision
from acefraud.core.events import BULLET_HISTORY_KINDS, OUTCOME_KINDS, DecisionMade, Event, EventPayload, OutcomeHeard
from acefraud.core.ledger import Entry, KnownCase, Precondition, RememberedCase, TransactionEvents
from acefraud.core.playbook import Checkpoint, CheckpointHeader
from acefraud.core.row_store import RowStore
from acefraud.core.timestamps import UNKNOWN, micros_of
from acefraud.core.transaction import Case, FactValue
from acefraud.errors import StoreError
from acefraud.storage.changes import conflict_with
from acefraud.storage.connection import WAIT_SECONDS, locking, open_engine
from acefraud.storage.file_errors import translated
from acefraud.storage.schema import cases as cases_table
from acefraud.storage.schema import checkpoint_pages, checkpoints, events
from acefraud.storage.sqlite_rows import SqliteRows, chunked

_DECISION: Final = "decision_made"
_EVENTS_PER_QUERY: Final = 1_000
"""Reading in parts keeps no lock open while the caller works, so that SQLite can tidy its log."""
_LAST_SEQ: Final = f"SELECT coalesce(max(seq), 0) FROM {events.name}"
_PAYLOAD: Final[TypeAdapter[EventPayload]] = TypeAdapter(EventPayload)
_CASE: Final = TypeAdapter(Case)

T = TypeVar("T")


class SqliteLedger:
    """Events, cases, rows and the checkpoint in one file. Threads and processes can share it."""

    def __init__(self, path: Path, engine: Engine, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self._engine = engine
        self._writer = locking(engine)
        self._closed = False

    @classmethod
    def open(
        cls, path: Path, *, create: bool = True, read_only: bool = False, wait: float = WAIT_SECONDS
    ) -> SqliteLedger:
        """Open a file and migrate it to the newest schema; create it if it is missing, unless told not to.

        `wait` is how many seconds to wait for another process that holds the lock. Raises StoreSchema if the file
        is not a playbook or has a newer schema, StoreError if it cannot be opened.
        """
        with translated(path):
            engine = open_engine(path, create=create, read_only=read_only, wait=wait)
        return cls(path, engine, read_only=read_only)

    def append(self, entry: Entry) -> list[Event]:
        """Write the events, the cases they bring and the row update: all of it, or nothing."""
        common = {"at": entry.at.isoformat(), "who": entry.who, "why": entry.why}
        event_rows = [_event_row(payload) | common for payload in entry.payloads]
        case_rows = [_case_row(case) for case in entry.cases]
        with self._writing() as connection:
            last: int = connection.exec_driver_sql(_LAST_SEQ).scalar_one()
            for each in entry.preconditions:
                if last > each.seq:
                    self._check(each, connection)
            if event_rows:
                numbered = [{**row, "seq": seq} for seq, row in enumerate(event_rows, last + 1)]
                connection.execute(insert(events), numbered)
            _put_cases(connection, case_rows)
            if entry.rows is not None:
                entry.rows(SqliteRows(connection))
        return entry.events_after(last)

    def _check(self, precondition: Precondition, connection: Connection) -> None:
        query = select(events).where(events.c.seq > precondition.seq, events.c.kind.in_(precondition.kinds))
        query = query.order_by(events.c.seq).limit(1)
        parts = [query]
        if precondition.subjects is not None:
            parts = [query.where(events.c.subject.in_(some)) for some in chunked(precondition.subjects)]
        for part in parts:
            found = connection.execute(part).first()
            if found is not None:
                raise conflict_with(self._event(found))

    def last_seq(self) -> int:
        """The number of the last event."""
        # Every decision asks for it, so this skips SQLAlchemy's connection and its BEGIN.
        self._check_open()
        with translated(self.path), closing(self._engine.raw_connection()) as connection:
            cursor = connection.cursor()
            cursor.execute(_LAST_SEQ)
            ((last,),) = cursor.fetchall()
        return int(last)

    def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[Event]:
        """The events after one number up to and including another; none that are written after the first is read."""
        last = self.last_seq()
        end = last if until is None else min(until, last)
        wanted = select(events) if decisions else select(events).where(events.c.kind != _DECISION)
        while after < end:
            part = self._events(wanted.where(events.c.seq > after, events.c.seq <= end).limit(_EVENTS_PER_QUERY))
            yield from part
            after = part[-1].seq if part else end

    def decisions(self, decision_ids: Collection[str]) -> dict[str, Decision]:
        """The recorded decisions with these ids."""
        made = select(events).where(events.c.kind == _DECISION).order_by(events.c.seq)
        payloads = [self._event(row).payload for row in self._rows_with(made, events.c.key, decision_ids)]
        return {one.decision.id: one.decision for one in payloads if isinstance(one, DecisionMade)}

    def transaction_events(self, transaction_ids: Collection[str]) -> dict[str, TransactionEvents]:
        """The decisions on these transactions and their outcomes."""
        found = {one: TransactionEvents() for one in transaction_ids}
        query = select(events).where(events.c.kind.in_({_DECISION, *OUTCOME_KINDS})).order_by(events.c.seq)
        for row in self._rows_with(query, events.c.subject, found):
            payload = self._event(row).payload
            if isinstance(payload, DecisionMade):
                found[row.subject].decisions.append(payload.decision)
            elif isinstance(payload, OutcomeHeard):
                found[row.subject].outcomes.append(payload)
        return found

    def history(self, bullet_id: str) -> list[Event]:
        """The events about a bullet."""
        about_bullets = events.c.kind.in_(BULLET_HISTORY_KINDS)
        return self._events(select(events).where(about_bullets, events.c.subject == bullet_id))

    def remembered(self, limit: int, after: int = 0) -> list[RememberedCase]:
        """The latest remembered cases after a position."""
        query = select(cases_table).where(cases_table.c.seq > after).order_by(cases_table.c.seq.desc())
        with self._reading() as connection:
            rows = connection.execute(query.limit(max(0, limit))).all()
        return [_remembered(row) for row in reversed(rows)]

    def known_cases(self, transaction_ids: Collection[str]) -> dict[str, KnownCase]:
        """The remembered cases of these transactions."""
        rows = self._rows_with(select(cases_table), cases_table.c.transaction_id, transaction_ids)
        return {row.transaction_id: KnownCase(self._case(row), _remembered(row).facts, row.reader) for row in rows}

    def replace_facts(self, facts: Mapping[str, Mapping[str, FactValue]], reader: str) -> None:
        """Replace the facts of remembered cases. Does nothing on a read-only file: they are only a cache."""
        if self.read_only or not facts:
            return
        put = update(cases_table).where(cases_table.c.transaction_id == bindparam("id"))
        with self._writing() as connection:
            connection.execute(
                put.values(facts=bindparam("facts"), reader=reader),
                [{"id": one, "facts": json.dumps(dict(new))} for one, new in facts.items()],
            )

    @contextmanager
    def rows(self) -> Iterator[RowStore]:
        """The row store as it is at one moment, for reading only."""
        with self._reading() as connection:
            yield SqliteRows(connection)

    def checkpoint(self) -> Checkpoint | None:
        """The saved checkpoint. One of another version is ignored, since the events can be applied again."""
        with self._reading() as connection:
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
        with self._writing() as connection:
            kept = connection.execute(select(checkpoints.c.seq)).scalar_one_or_none()
            if kept is None or kept <= checkpoint.header.seq:
                connection.execute(delete(checkpoint_pages))
                connection.execute(delete(checkpoints))
                connection.execute(insert(checkpoint_pages).values(number=0, table=b"", bullets=checkpoint.bullets))
                connection.execute(insert(checkpoints).values(id=1, seq=checkpoint.header.seq, body=header))

    def close(self) -> None:
        """Close the file. Closing twice is harmless."""
        self._closed = True
        with translated(self.path):
            self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _events(self, query: Select[Any]) -> list[Event]:
        with self._reading() as connection:
            rows = connection.execute(query.order_by(events.c.seq)).all()
        return [self._event(row) for row in rows]

    def _rows_with(self, query: Select[Any], column: Column[str], values: Collection[str]) -> Iterator[Row[Any]]:
        """The rows in which a column has one of many values, in parts that SQLite accepts."""
        for some in chunked(values):
            with self._reading() as connection:
                rows = connection.execute(query.where(column.in_(some))).all()
            yield from rows

    def _event(self, row: Row[Any]) -> Event:
        payload = _parsed(_PAYLOAD, row.body, f"playbook {self.path}: event {row.seq} cannot be read")
        return Event(seq=row.seq, at=datetime.fromisoformat(row.at), who=row.who, why=row.why, payload=payload)

    def _case(self, row: Row[Any]) -> Case:
        return _parsed(_CASE, row.body, f"playbook {self.path}: the case of {row.transaction_id} cannot be read")

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self._check_open()
        with translated(self.path), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        self._check_open()
        with translated(self.path), self._writer.begin() as connection:
            yield connection

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"playbook {self.path} was closed; open it again")


def _put_cases(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Insert or replace cases. One that arrives again moves to the end."""
    if not rows:
        return
    last = connection.execute(select(func.coalesce(func.max(cases_table.c.seq), 0))).scalar_one()
    put = insert(cases_table)
    replaced = {column.name: put.excluded[column.name] for column in cases_table.c if column.name != "transaction_id"}
    connection.execute(
        put.on_conflict_do_update(["transaction_id"], set_=replaced),
        [{**row, "seq": seq} for seq, row in enumerate(rows, last + 1)],
    )


def _event_row(payload: EventPayload) -> dict[str, Any]:
    key = None
    if isinstance(payload, DecisionMade):
        key = payload.decision.id
    elif isinstance(payload, OutcomeHeard):
        key = payload.outcome.key
    body = _readable(_PAYLOAD, payload.model_dump_json(), f"{payload.kind} of {payload.subject}")
    return {"kind": payload.kind, "subject": payload.subject, "key": key, "body": body}


def _case_row(known: KnownCase) -> dict[str, Any]:
    case = known.kept
    time = micros_of(case.transaction.time)
    return {
        "transaction_id": case.transaction.id,
        "is_fraud": case.is_fraud,
        "known_at": case.known_at and case.known_at.isoformat(),
        "body": _readable(_CASE, case.model_dump_json(), f"case of {case.transaction.id}"),
        "time": None if time == UNKNOWN else time,
        "has_text": bool(case.transaction.text),
        # Only facts read from a text get a column of their own; the others are in the transaction.
        "facts": json.dumps(dict(known.facts)) if case.transaction.text else None,
        "reader": known.reader,
    }


def _remembered(row: Row[Any]) -> RememberedCase:
    facts = json.loads(row.body)["transaction"].get("facts", {}) if row.facts is None else json.loads(row.facts)
    return RememberedCase(
        seq=row.seq,
        id=row.transaction_id,
        is_fraud=row.is_fraud,
        time=UNKNOWN if row.time is None else row.time,
        has_text=row.has_text,
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
