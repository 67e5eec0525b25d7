"""A step: changes that are written together when it ends, and that only those see who make them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import get_ident
from typing import Any

from acefraud.core.events import Event, Happening
from acefraud.core.ledger import KnownCase, RowsChange, RowStore, Unless
from acefraud.core.playbook import PlaybookState

Owner = tuple[int, "asyncio.Task[Any] | None"]
"""A thread, and the task that runs in it where there is an event loop."""


def owner() -> Owner:
    """Who is asking."""
    try:
        return get_ident(), asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return get_ident(), None


@dataclass(slots=True)
class Step:
    """What one step will write when it ends, and the playbook as it would then be."""

    who: str
    state: PlaybookState
    began_at: int
    """The last event that was written when it began."""
    unless: Unless
    """What must not happen until it ends."""
    happenings: list[Happening] = field(default_factory=list)
    cases: list[KnownCase] = field(default_factory=list)
    changes: list[RowsChange] = field(default_factory=list)

    def stage(self, happenings: Sequence[Happening], *, at: datetime, why: str) -> list[Event]:
        """Take happenings in; the events that they will be, if nobody else writes any before."""
        first = self.state.seq + 1
        events = [Event(seq=seq, at=at, who=self.who, why=why, what=what) for seq, what in enumerate(happenings, first)]
        for event in events:
            self.state.apply(event)
        self.happenings.extend(happenings)
        return events

    def stage_beside(
        self, cases: Sequence[KnownCase], rows: RowsChange | None = None, unless: Unless | None = None
    ) -> None:
        """Take in what is written beside the happenings.

        ``unless`` counts from before the step at the latest: the step's own events have no place in the ledger yet.
        """
        self.cases.extend(cases)
        self.changes.extend([rows] if rows else [])
        if unless is not None:
            self.unless = self.unless.or_else(replace(unless, seq=min(unless.seq, self.began_at)))

    @contextmanager
    def part(self) -> Iterator[None]:
        """A step inside this one: it is as if it had never begun where an exception ends it."""
        before, unless = self.state, self.unless
        happenings, cases, changes = len(self.happenings), len(self.cases), len(self.changes)
        self.state = before.branched()
        try:
            yield
        except BaseException:
            self.state, self.unless = before, unless
            del self.happenings[happenings:], self.cases[cases:], self.changes[changes:]
            raise

    def change_rows(self, rows: RowStore) -> None:
        """All changes to rows, in turn."""
        for change in self.changes:
            change(rows)
