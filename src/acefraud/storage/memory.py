"""A ledger that lives as long as the process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import islice, takewhile
from threading import RLock

from acefraud.core.decision import Decision
from acefraud.core.events import (
    BulletAdded,
    BulletCredited,
    BulletEdited,
    DecisionMade,
    Event,
    Happening,
    OutcomeHeard,
    StatusChanged,
)
from acefraud.core.ledger import KnownCase, Past, RememberedCase, RowsChange, RowStore, Unless
from acefraud.core.playbook import Checkpoint
from acefraud.core.timestamps import micros_of
from acefraud.core.transaction import Case, FactValue
from acefraud.core.trusted import trusted
from acefraud.errors import StoreConflict
from acefraud.history import MemoryRows
from acefraud.storage.rows import DraftRows

ABOUT_A_BULLET = (BulletAdded, BulletEdited, StatusChanged, BulletCredited)


class MemoryLedger:
    """The same promises as the file, but for outliving the process. Threads may share it."""

    def __init__(self) -> None:
        self._lock = RLock()
        """Held while something is written, and while something is read that takes more than one look."""
        self._events: list[Event] = []
        self._cases: dict[str, tuple[int, KnownCase]] = {}
        self._cases_seen = 0
        self._decisions: dict[str, Decision] = {}
        self._decided: dict[str, list[DecisionMade]] = defaultdict(list)
        self._heard: dict[str, list[OutcomeHeard]] = defaultdict(list)
        self._rows = MemoryRows()
        self._checkpoint: Checkpoint | None = None

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
        """Write all of them, or none."""
        with self._lock:
            last = self.last_seq()
            for each in (unless, *unless.also) if unless is not None else ():
                self._refuse(each)
            events = [
                trusted(Event, seq=last + place, at=at, who=who, why=why, what=what)
                for place, what in enumerate(happenings, 1)
            ]
            if rows is not None:
                draft = DraftRows(self._rows)
                rows(draft)
                draft.make(self._rows)
            self._index(happenings)
            for known in cases:
                self._remember(known)
            self._events.extend(events)
        return events

    def _refuse(self, unless: Unless) -> None:
        """StoreConflict where what was not to happen has happened."""
        met = next((event for event in self._events[unless.seq :] if unless.met_by(event)), None)
        if met is not None:
            raise conflict(met)

    def _index(self, happenings: Sequence[Happening]) -> None:
        for what in happenings:
            if isinstance(what, DecisionMade):
                self._decisions[what.decision.id] = what.decision
                self._decided[what.subject].append(what)
            elif isinstance(what, OutcomeHeard):
                self._heard[what.subject].append(what)

    def _remember(self, known: KnownCase) -> None:
        self._cases_seen += 1
        self._cases.pop(known.case.transaction.id, None)
        self._cases[known.case.transaction.id] = self._cases_seen, KnownCase(known.kept, known.facts, known.reader)

    def last_seq(self) -> int:
        """The place of the last event."""
        return len(self._events)

    def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[Event]:
        """The events after one place, up to another."""
        for event in self._events[after:until]:
            if decisions or not isinstance(event.what, DecisionMade):
                yield event

    def decision(self, decision_id: str) -> Decision | None:
        """The decision of that id."""
        return self._decisions.get(decision_id)

    def recorded(self, decision_ids: Sequence[str]) -> dict[str, Decision]:
        """Those of these decisions that are recorded."""
        return {one: self._decisions[one] for one in decision_ids if one in self._decisions}

    def decisions_of(self, transaction_id: str) -> list[DecisionMade]:
        """What was decided of a transaction."""
        return list(self._decided.get(transaction_id, ()))

    def outcomes_of(self, transaction_id: str) -> list[OutcomeHeard]:
        """What was heard of a transaction."""
        return list(self._heard.get(transaction_id, ()))

    def pasts_of(self, transaction_ids: Collection[str]) -> dict[str, Past]:
        """What was decided and heard of many transactions."""
        return {
            one: Past([made.decision for made in self._decided.get(one, ())], list(self._heard.get(one, ())))
            for one in transaction_ids
            if one in self._decided or one in self._heard
        }

    def history(self, bullet_id: str) -> list[Event]:
        """The events about a bullet."""
        return [e for e in self._events if isinstance(e.what, ABOUT_A_BULLET) and e.what.subject == bullet_id]

    def remembered(self, limit: int, after: int = 0) -> list[RememberedCase]:
        """The latest of the remembered cases after a place among them."""
        with self._lock:
            newest_first = takewhile(lambda kept: kept[0] > after, reversed(self._cases.values()))
            found = list(islice(newest_first, max(0, limit)))
        return [_remembered(seq, known) for seq, known in reversed(found)]

    def cases(self, limit: int | None = None) -> list[Case]:
        """The same as cases."""
        with self._lock:
            return [known.case for _, known in islice(reversed(self._cases.values()), limit)][::-1]

    def known_cases(self, transaction_ids: Collection[str]) -> dict[str, KnownCase]:
        """Those of some cases that are remembered."""
        with self._lock:
            return {one: self._cases[one][1] for one in transaction_ids if one in self._cases}

    def replace_facts(self, facts: Mapping[str, Mapping[str, FactValue]], reader: str) -> None:
        """Keep other facts of remembered cases."""
        with self._lock:
            for one, new in facts.items():
                if one in self._cases:
                    seq, known = self._cases[one]
                    self._cases[one] = seq, replace(known, facts=new, reader=reader)

    @contextmanager
    def rows(self) -> Iterator[RowStore]:
        """The rows as they stand, to be read only."""
        with self._lock:
            yield self._rows

    def checkpoint(self) -> Checkpoint | None:
        """The latest saved fold."""
        return self._checkpoint

    def save_checkpoint(self, checkpoint: Checkpoint, *, on_top_of: int | None = None) -> bool:
        """Keep a fold in place of the one before."""
        with self._lock:
            kept = self._checkpoint
            if kept is not None and kept.seq > checkpoint.seq:
                return False
            if on_top_of is not None:
                if kept is None or kept.seq != on_top_of:
                    return False
                checkpoint = Checkpoint(checkpoint.frame, {**kept.pages, **checkpoint.pages})
            self._checkpoint = checkpoint
        return True

    def close(self) -> None:
        """Nothing to let go of."""


def _remembered(seq: int, known: KnownCase) -> RememberedCase:
    transaction = known.case.transaction
    return RememberedCase(
        seq=seq,
        id=transaction.id,
        is_fraud=known.case.is_fraud,
        time=micros_of(transaction.time),
        has_text=bool(transaction.text),
        reader=known.reader,
        facts=known.facts,
    )


def conflict(event: Event) -> StoreConflict:
    """What somebody else wrote meanwhile, in words."""
    what = f"{event.what.kind} of {event.what.subject}"
    said = f"{event.who} wrote event {event.seq} meanwhile ({what}) at {event.at:%Y-%m-%d %H:%M:%S %Z}".rstrip()
    return StoreConflict(said, who=event.who, at=event.at)
