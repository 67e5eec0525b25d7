"""A ledger in one SQLite file. What `append` returned survives the death of the process and of the power."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, Engine, Row, Select, bindparam, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from acefraud.core.decision import Decision
from acefraud.core.events import KINDS, OUTCOME_KINDS, DecisionMade, Event, Happening, OutcomeHeard
from acefraud.core.ledger import KnownCase, Past, RememberedCase, RowsChange, RowStore, Unless
from acefraud.core.page import KeptPage
from acefraud.core.playbook import Checkpoint, Frame
from acefraud.core.timestamps import UNKNOWN, micros_of
from acefraud.core.transaction import Case, FactValue
from acefraud.core.trusted import trusted
from acefraud.errors import StoreError
from acefraud.storage.connection import WAIT_SECONDS, open_engine, writing
from acefraud.storage.faults import translated
from acefraud.storage.memory import conflict
from acefraud.storage.rows import SqliteRows, some_at_a_time
from acefraud.storage.schema import cases as cases_table
from acefraud.storage.schema import checkpoint_pages, checkpoints, events

ABOUT_A_BULLET: Final = ("bullet_added", "bullet_edited", "status_changed", "bullet_credited")
OUTCOMES: Final = tuple(sorted(OUTCOME_KINDS))
DECISION: Final = "decision_made"

_PAGE: Final = 1_000
"""Events read at a time: no read transaction stays open while a caller thinks, so the log can be tidied."""

_LAST: Final = f"SELECT coalesce(max(seq), 0) FROM {events.name}"
_HAPPENING: Final[TypeAdapter[Happening]] = TypeAdapter(Happening)
_CASE: Final = TypeAdapter(Case)

T = TypeVar("T")


class SqliteLedger:
    """Events, cases, rows and the checkpoint in one file, shared safely between threads and processes."""

    def __init__(self, path: Path, engine: Engine, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self._engine = engine
        self._writer = writing(engine)
        self._closed = False

    @classmethod
    def open(
        cls, path: Path, *, create: bool = True, read_only: bool = False, wait: float = WAIT_SECONDS
    ) -> SqliteLedger:
        """Open the file, bring it to the newest schema, create it where it is missing and that is wanted.

        `wait` is how many seconds to wait for another process that holds the file. StoreSchema where it is not a
        playbook or of a newer schema, StoreError where it cannot be opened.
        """
        with translated(path):
            engine = open_engine(path, create=create, read_only=read_only, wait=wait)
        return cls(path, engine, read_only=read_only)

    def append(
        self,
        happenings: Sequence[Happening],
        *,
        at: datetime,
        who: str,
        why: str = "",
        unless: Unless | None = None,
        cases: Sequence[KnownCase] = (),
        rows: RowsChange | None = None,
    ) -> list[Event]:
        """Write all of them, the cases they bring and what `rows` changes, or none."""
        event_rows = [_row_of(what, at, who, why) for what in happenings]
        case_rows = [_row_of_case(case) for case in cases]
        with self._writing() as connection:
            last = _last(connection)
            for each in (unless, *unless.also) if unless is not None else ():
                if last > each.seq:
                    self._refuse(connection, each)
            written = [
                trusted(Event, seq=last + place, at=at, who=who, why=why, what=what)
                for place, what in enumerate(happenings, 1)
            ]
            if event_rows:
                numbered = [{**row, "seq": event.seq} for row, event in zip(event_rows, written, strict=True)]
                connection.execute(insert(events), numbered)
            _put_cases(connection, case_rows)
            if rows is not None:
                rows(SqliteRows(connection))
        return written

    def _refuse(self, connection: Connection, unless: Unless) -> None:
        """StoreConflict where what was not to happen has happened."""
        later = select(events).where(events.c.seq > unless.seq, events.c.kind.in_(_kinds(unless)))
        queries = [later] if unless.subjects is None else _about_some(later, unless.subjects)
        for query in queries:
            found = connection.execute(query.order_by(events.c.seq).limit(1)).first()
            if found is not None:
                raise conflict(self._event(found))

    def last_seq(self) -> int:
        """The place of the last event. Asked for before each decision, so it goes the shortest way there is."""
        self._refuse_closed()
        with translated(self.path), closing(self._engine.raw_connection()) as connection:
            cursor = connection.cursor()
            cursor.execute(_LAST)
            ((last,),) = cursor.fetchall()
        return int(last)

    def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[Event]:
        """The events after one place, up to another, as the ledger stands when the first is asked for."""
        last = self.last_seq()
        end = last if until is None else min(until, last)
        wanted = select(events) if decisions else select(events).where(events.c.kind != DECISION)
        while after < end:
            query = wanted.where(events.c.seq > after, events.c.seq <= end).order_by(events.c.seq).limit(_PAGE)
            page = self._events(query)
            yield from page
            after = page[-1].seq if page else end

    def decision(self, decision_id: str) -> Decision | None:
        """The decision of that id."""
        query = select(events).where(events.c.key == decision_id, events.c.kind == "decision_made")
        found = self._events(query.order_by(events.c.seq.desc()).limit(1))
        return next((event.what.decision for event in found if isinstance(event.what, DecisionMade)), None)

    def recorded(self, decision_ids: Sequence[str]) -> dict[str, Decision]:
        """Those of these decisions that are recorded."""
        found: dict[str, Decision] = {}
        for some in some_at_a_time(decision_ids):
            query = select(events).where(events.c.key.in_(some), events.c.kind == DECISION)
            for event in self._events(query.order_by(events.c.seq)):
                if isinstance(event.what, DecisionMade):
                    found[event.what.decision.id] = event.what.decision
        return found

    def decisions_of(self, transaction_id: str) -> list[DecisionMade]:
        """What was decided of a transaction."""
        found = self._about(transaction_id, ("decision_made",))
        return [event.what for event in found if isinstance(event.what, DecisionMade)]

    def outcomes_of(self, transaction_id: str) -> list[OutcomeHeard]:
        """What was heard of a transaction."""
        found = self._about(transaction_id, OUTCOMES)
        return [event.what for event in found if isinstance(event.what, OutcomeHeard)]

    def pasts_of(self, transaction_ids: Collection[str]) -> dict[str, Past]:
        """What was decided and heard of many transactions."""
        found: dict[str, Past] = {}
        known = select(events).where(events.c.kind.in_((DECISION, *OUTCOMES)))
        for query in _about_some(known, transaction_ids):
            for event in self._events(query.order_by(events.c.seq)):
                past = found.setdefault(event.what.subject, Past())
                if isinstance(event.what, DecisionMade):
                    past.decisions.append(event.what.decision)
                elif isinstance(event.what, OutcomeHeard):
                    past.outcomes.append(event.what)
        return found

    def history(self, bullet_id: str) -> list[Event]:
        """The events about a bullet."""
        return self._about(bullet_id, ABOUT_A_BULLET)

    def remembered(self, limit: int, after: int = 0) -> list[RememberedCase]:
        """The latest of the remembered cases after a place among them."""
        query = select(cases_table).where(cases_table.c.seq > after).order_by(cases_table.c.seq.desc())
        with self._reading() as connection:
            rows = connection.execute(query.limit(max(0, limit))).all()
        return [_remembered(row) for row in reversed(rows)]

    def cases(self, limit: int | None = None) -> list[Case]:
        """The same as cases."""
        query = select(cases_table.c.transaction_id, cases_table.c.body).order_by(cases_table.c.seq.desc())
        if limit is not None:
            query = query.limit(max(0, limit))
        with self._reading() as connection:
            rows = connection.execute(query).all()
        return [_read_back(_CASE, row.body, f"the case of {row.transaction_id}", self.path) for row in reversed(rows)]

    def known_cases(self, transaction_ids: Collection[str]) -> dict[str, KnownCase]:
        """Those of some cases that are remembered."""
        found: dict[str, KnownCase] = {}
        for some in some_at_a_time(transaction_ids):
            with self._reading() as connection:
                rows = connection.execute(select(cases_table).where(cases_table.c.transaction_id.in_(some))).all()
            for row in rows:
                case = _read_back(_CASE, row.body, f"the case of {row.transaction_id}", self.path)
                found[row.transaction_id] = KnownCase(case, _remembered(row).facts, row.reader)
        return found

    def replace_facts(self, facts: Mapping[str, Mapping[str, FactValue]], reader: str) -> None:
        """Keep other facts of remembered cases. A reader that may not write keeps none: it only saves time."""
        if self.read_only:
            return
        put = update(cases_table).where(cases_table.c.transaction_id == bindparam("which"))
        new = [{"which": one, "facts": json.dumps(dict(each)), "reader": reader} for one, each in facts.items()]
        if new:
            with self._writing() as connection:
                connection.execute(put.values(facts=bindparam("facts"), reader=bindparam("reader")), new)

    @contextmanager
    def rows(self) -> Iterator[RowStore]:
        """The rows as they stand at one moment, to be read only."""
        with self._reading() as connection:
            yield SqliteRows(connection)

    def checkpoint(self) -> Checkpoint | None:
        """The latest saved fold; None also where it is of another version, since the events can be folded again."""
        with self._reading() as connection:
            body = connection.execute(select(checkpoints.c.body)).scalar_one_or_none()
            if body is None:
                return None
            try:
                frame = Frame.model_validate_json(body)
            except ValidationError:
                return None
            pages = connection.execute(select(checkpoint_pages))
            return Checkpoint(frame, {page.number: _kept_page(page.table, page.bullets) for page in pages})

    def save_checkpoint(self, checkpoint: Checkpoint, *, on_top_of: int | None = None) -> bool:
        """Keep a fold in place of the one before. A reader that may not write keeps none: it only saves time."""
        if self.read_only:
            return False
        row = {"seq": checkpoint.seq, "body": checkpoint.frame.model_dump_json()}
        with self._writing() as connection:
            kept = connection.execute(select(checkpoints.c.seq)).scalar_one_or_none()
            if on_top_of is not None and kept != on_top_of:
                return False
            if kept is not None and kept > checkpoint.seq:
                return False
            if on_top_of is None:
                connection.execute(delete(checkpoint_pages))
            for number, page in checkpoint.pages.items():
                content = {"table": page.table, "bullets": b"\n".join(page.bullets)}
                connection.execute(
                    insert(checkpoint_pages)
                    .values(number=number, **content)
                    .on_conflict_do_update(["number"], set_=content)
                )
            connection.execute(insert(checkpoints).values(id=1, **row).on_conflict_do_update(["id"], set_=row))
        return True

    def close(self) -> None:
        """Let go of the file. Closing twice is harmless."""
        self._closed = True
        with translated(self.path):
            self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _about(self, subject: str, kinds: Sequence[str]) -> list[Event]:
        query = select(events).where(events.c.kind.in_(kinds), events.c.subject == subject)
        return self._events(query.order_by(events.c.seq))

    def _events(self, query: Any) -> list[Event]:
        with self._reading() as connection:
            rows = connection.execute(query).all()
        return [self._event(row) for row in rows]

    def _event(self, row: Row[Any]) -> Event:
        what = _read_back(_HAPPENING, row.body, f"event {row.seq}", self.path)
        return Event(seq=row.seq, at=datetime.fromisoformat(row.at), who=row.who, why=row.why, what=what)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self._refuse_closed()
        with translated(self.path), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        self._refuse_closed()
        with translated(self.path), self._writer.begin() as connection:
            yield connection

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreError(f"playbook {self.path} was closed; open it again")


def _kinds(unless: Unless) -> list[str]:
    return [kind for kind in KINDS if unless.kinds(kind)]


def _about_some(query: Select[Any], subjects: Collection[str]) -> Iterator[Select[Any]]:
    """A query about many subjects as a few, each with as many as SQLite takes."""
    for some in some_at_a_time(subjects):
        yield query.where(events.c.subject.in_(some))


def _last(connection: Connection) -> int:
    last: int = connection.execute(select(func.coalesce(func.max(events.c.seq), 0))).scalar_one()
    return last


def _put_cases(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """A case that comes again moves to the end, so the latest ones are those heard of last."""
    if not rows:
        return
    last = connection.execute(select(func.coalesce(func.max(cases_table.c.seq), 0))).scalar_one()
    put = insert(cases_table)
    replaced = {column.name: put.excluded[column.name] for column in cases_table.c if column.name != "transaction_id"}
    connection.execute(
        put.on_conflict_do_update(["transaction_id"], set_=replaced),
        [{**row, "seq": last + place} for place, row in enumerate(rows, 1)],
    )


def _row_of(what: Happening, at: datetime, who: str, why: str) -> dict[str, Any]:
    key = None
    if isinstance(what, DecisionMade):
        key = what.decision.id
    elif isinstance(what, OutcomeHeard):
        key = what.outcome.key
    body = _fit_to_keep(_HAPPENING, what.model_dump_json(), f"{what.kind} of {what.subject}")
    return {
        "kind": what.kind,
        "subject": what.subject,
        "key": key,
        "at": at.isoformat(),
        "who": who,
        "why": why,
        "body": body,
    }


def _kept_page(table: bytes, bullets: bytes) -> KeptPage:
    return KeptPage(table, tuple(bullets.split(b"\n")) if bullets else ())


def _row_of_case(known: KnownCase) -> dict[str, Any]:
    """Facts are kept once: in a column of their own where they were read from a text, else in the transaction."""
    case = known.kept
    facts = json.dumps(dict(known.facts)) if case.transaction.text else None
    time = micros_of(case.transaction.time)
    return {
        "transaction_id": case.transaction.id,
        "is_fraud": case.is_fraud,
        "known_at": case.known_at and case.known_at.isoformat(),
        "body": _fit_to_keep(_CASE, case.model_dump_json(), f"case of {case.transaction.id}"),
        "time": None if time == UNKNOWN else time,
        "has_text": bool(case.transaction.text),
        "facts": facts,
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


def _fit_to_keep(adapter: TypeAdapter[Any], body: str, name: str) -> str:
    """What cannot be read back must not get into a ledger that nothing can be taken out of.

    An infinite number is the common case: JSON has none, so it would be written as null.
    """
    try:
        adapter.validate_json(body)
    except ValidationError as error:
        raise StoreError(f"{name} cannot be kept, nothing was written: {_first(error)}") from error
    return body


def _read_back(adapter: TypeAdapter[T], body: str, name: str, path: Path) -> T:
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        raise StoreError(f"playbook {path}: {name} cannot be read: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
