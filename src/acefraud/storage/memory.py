"""A ledger that lives as long as the process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

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
from acefraud.core.ledger import RowsChange, RowStore
from acefraud.core.playbook import Checkpoint
from acefraud.core.transaction import Case
from acefraud.errors import StoreConflict
from acefraud.history import MemoryRows
from acefraud.storage.rows import DraftRows

ABOUT_A_BULLET = (BulletAdded, BulletEdited, StatusChanged, BulletCredited)


class MemoryLedger:
    """The same promises as the file, but for outliving the process."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._settled = 0
        self._cases: dict[str, Case] = {}
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
        expected: int | None = None,
        cases: Sequence[Case] = (),
        rows: RowsChange | None = None,
    ) -> list[Event]:
        """Write all of them, or none."""
        last = self.last_seq()
        if expected is not None and expected != self._settled:
            raise StoreConflict(f"the ledger stands at event {self._settled}, this edit was based on event {expected}")
        events = [
            Event(seq=last + place, at=at, who=who, why=why, what=what) for place, what in enumerate(happenings, 1)
        ]
        if rows is not None:
            draft = DraftRows(self._rows)
            rows(draft)
            draft.make(self._rows)
        self._events.extend(events)
        self._settled = max([e.seq for e in events if not isinstance(e.what, DecisionMade)], default=self._settled)
        for what in happenings:
            if isinstance(what, DecisionMade):
                self._decisions[what.decision.id] = what.decision
                self._decided[what.subject].append(what)
            elif isinstance(what, OutcomeHeard):
                self._heard[what.subject].append(what)
        for case in cases:
            self._cases.pop(case.transaction.id, None)
            self._cases[case.transaction.id] = case
        return events

    def last_seq(self) -> int:
        """The place of the last event."""
        return len(self._events)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """The events after one place, up to another."""
        yield from self._events[after:until]

    def decision(self, decision_id: str) -> Decision | None:
        """The decision of that id."""
        return self._decisions.get(decision_id)

    def decisions_of(self, transaction_id: str) -> list[DecisionMade]:
        """What was decided of a transaction."""
        return list(self._decided.get(transaction_id, ()))

    def outcomes_of(self, transaction_id: str) -> list[OutcomeHeard]:
        """What was heard of a transaction."""
        return list(self._heard.get(transaction_id, ()))

    def history(self, bullet_id: str) -> list[Event]:
        """The events about a bullet."""
        return [e for e in self._events if isinstance(e.what, ABOUT_A_BULLET) and e.what.subject == bullet_id]

    def cases(self, limit: int | None = None) -> list[Case]:
        """The labelled cases it remembers."""
        cases = list(self._cases.values())
        return cases if limit is None else cases[max(0, len(cases) - limit) :]

    @contextmanager
    def rows(self) -> Iterator[RowStore]:
        """The rows as they stand, to be read only."""
        yield self._rows

    def checkpoint(self) -> Checkpoint | None:
        """The latest saved fold."""
        return self._checkpoint

    def save_checkpoint(self, checkpoint: Checkpoint, *, on_top_of: int | None = None) -> bool:
        """Keep a fold in place of the one before."""
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
