"""The seam to the store: an append-only ledger of events, and the labelled cases that learning may look back on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade, Event, Happening, OutcomeHeard
from acefraud.core.playbook import Checkpoint
from acefraud.core.transaction import Case


class Ledger(Protocol):
    """Keeps what happened, in order. When `append` returns, the events survive the death of the process."""

    def append(
        self,
        happenings: Sequence[Happening],
        *,
        at: datetime,
        who: str,
        why: str = "",
        expected: int | None = None,
        cases: Sequence[Case] = (),
    ) -> list[Event]:
        """Write all of them and the cases they bring, or none.

        With `expected`, StoreConflict where the last event that is not a decision is another one: what the happenings
        were derived from has changed. A case replaces the one of the same transaction id.
        """
        ...

    def last_seq(self) -> int:
        """The place of the last event; 0 where there is none."""
        ...

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """The events after one place, up to and with another, in order."""
        ...

    def decision(self, decision_id: str) -> Decision | None:
        """The decision of that id."""
        ...

    def decisions_of(self, transaction_id: str) -> list[DecisionMade]:
        """What was decided of a transaction, oldest first."""
        ...

    def outcomes_of(self, transaction_id: str) -> list[OutcomeHeard]:
        """What was heard of a transaction, oldest first."""
        ...

    def history(self, bullet_id: str) -> list[Event]:
        """The events that name this bullet as their subject, oldest first."""
        ...

    def cases(self, limit: int | None = None) -> list[Case]:
        """The labelled cases it remembers, the latest `limit` of them, in the order they were given."""
        ...

    def checkpoint(self) -> Checkpoint | None:
        """The latest saved fold."""
        ...

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep a fold in place of the one before."""
        ...

    def close(self) -> None:
        """Let go of the file. Closing twice is harmless."""
        ...
