"""A unit of work: changes that are written together when it ends, and that nobody else sees until then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from acefraud.core.events import Event
from acefraud.core.ledger import Entry, Precondition, RowStore
from acefraud.core.playbook import PlaybookState


@dataclass(slots=True)
class UnitOfWork:
    """What will be written when it ends, and the playbook as it will be then."""

    who: str
    state: PlaybookState
    began_at: int
    """The last event that was written when it began."""
    entries: list[Entry] = field(default_factory=list)

    def record(self, entry: Entry) -> list[Event]:
        """Take in what is to be written. Returns the events it becomes if nobody else writes first."""
        events = replace(entry, who=self.who).events_after(self.state.seq)
        for event in events:
            self.state.apply(event)
        self.entries.append(entry)
        return events

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A part of this unit of work. An exception that ends it undoes what it recorded."""
        before, recorded = self.state, len(self.entries)
        self.state = before.branch()
        try:
            yield
        except BaseException:
            self.state = before
            del self.entries[recorded:]
            raise

    def whole(self, at: datetime, why: str, unchanged: Precondition) -> Entry:
        """All that was recorded, as one entry.

        Preconditions are checked from before the unit of work began: its own events are not in the ledger yet.
        """
        payloads = [payload for entry in self.entries for payload in entry.payloads]
        conditions = [each for entry in self.entries for each in entry.preconditions]
        earlier = [replace(each, seq=min(each.seq, self.began_at)) for each in conditions]
        cases = [case for entry in self.entries for case in entry.cases]
        requests = [one for entry in self.entries for one in entry.requests]
        return Entry(payloads, at, self.who, why, [unchanged, *earlier], cases, self._update_rows, requests)

    def _update_rows(self, rows: RowStore) -> None:
        for entry in self.entries:
            if entry.rows is not None:
                entry.rows(rows)
