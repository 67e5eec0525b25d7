"""The seam to the store: an append-only ledger of events, and what is kept beside it.

Beside it are the labelled cases that learning may look back on, and rows of bytes for what is remembered of entities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from acefraud.core.decision import Decision
from acefraud.core.events import DecisionMade, Event, Happening, OutcomeHeard
from acefraud.core.playbook import Checkpoint
from acefraud.core.transaction import Case


class RowStore(Protocol):
    """Rows of bytes by key. A key that is not there is left out of an answer."""

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The rows of these keys."""
        ...

    def put_many(self, rows: Mapping[str, bytes]) -> None:
        """Keep these rows, in place of those with the same keys."""
        ...

    def forget_many(self, keys: Iterable[str]) -> None:
        """Drop the rows of these keys, as far as they are there."""
        ...

    def clear(self) -> None:
        """Drop all rows."""
        ...


RowsChange = Callable[[RowStore], None]
"""What an event changes in the rows beside the ledger."""


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
        rows: RowsChange | None = None,
    ) -> list[Event]:
        """Write all of them, the cases they bring and what `rows` changes, or none.

        `rows` is called when nobody else can write any more: what it reads stays true.
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

    def rows(self) -> AbstractContextManager[RowStore]:
        """The rows as they stand at one moment, to be read only."""
        ...

    def checkpoint(self) -> Checkpoint | None:
        """The latest saved fold."""
        ...

    def save_checkpoint(self, checkpoint: Checkpoint, *, on_top_of: int | None = None) -> bool:
        """Keep a fold in place of the one before; whether it was kept.

        With ``on_top_of``, the pages it brings are those that changed since the checkpoint up to that event: where
        another one is kept by now, or none, nothing is written. A fold that is older than the one that is kept is
        not written either.
        """
        ...

    def close(self) -> None:
        """Let go of the file. Closing twice is harmless."""
        ...
