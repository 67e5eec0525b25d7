"""A unit of work: changes that are written together when it ends, and that nobody else sees until then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import get_ident
from typing import Any

from acefraud.core.events import Event, EventPayload
from acefraud.core.ledger import Entry, KnownCase, Precondition
from acefraud.core.playbook import PlaybookState
from acefraud.core.row_store import RowStore, RowUpdate

Owner = tuple[int, "asyncio.Task[Any] | None"]
"""A thread, and the task that runs in it where there is an event loop."""


def current_owner() -> Owner:
    """The thread and task that is running."""
    try:
        return get_ident(), asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return get_ident(), None


@dataclass(slots=True)
class UnitOfWork:
    """What will be written when it ends, and the playbook as it will be then."""

    who: str
    state: PlaybookState
    began_at: int
    """The last event that was written when it began."""
    preconditions: list[Precondition]
    payloads: list[EventPayload] = field(default_factory=list)
    cases: list[KnownCase] = field(default_factory=list)
    row_updates: list[RowUpdate] = field(default_factory=list)

    def record(self, entry: Entry) -> list[Event]:
        """Take in what is to be written. Returns the events it becomes if nobody else writes first.

        Preconditions are checked from before the unit of work began: its own events are not in the ledger yet.
        """
        events = replace(entry, who=self.who).events_after(self.state.seq)
        for event in events:
            self.state.apply(event)
        self.payloads.extend(entry.payloads)
        self.cases.extend(entry.cases)
        self.row_updates.extend([entry.rows] if entry.rows else [])
        self.preconditions.extend(replace(each, seq=min(each.seq, self.began_at)) for each in entry.preconditions)
        return events

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A part of this unit of work. An exception that ends it undoes what it recorded."""
        before = self.state
        recorded: tuple[list[Any], ...] = (self.payloads, self.cases, self.row_updates, self.preconditions)
        lengths = [len(each) for each in recorded]
        self.state = before.branch()
        try:
            yield
        except BaseException:
            self.state = before
            for each, length in zip(recorded, lengths, strict=True):
                del each[length:]
            raise

    def update_rows(self, rows: RowStore) -> None:
        """Run all row updates in order."""
        for update in self.row_updates:
            update(rows)
