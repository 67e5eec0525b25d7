"""The seam to the store: an append-only ledger of events, and what is kept beside it.

Beside it are the labelled cases that learning may look back on, and rows of bytes for what is remembered of entities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from acefraud.core.decision import Decision
from acefraud.core.events import (
    BULLET_KINDS,
    COUNTED_KINDS,
    OUTCOME_KINDS,
    DecisionMade,
    Event,
    Happening,
    OutcomeHeard,
)
from acefraud.core.playbook import Checkpoint
from acefraud.core.transaction import Case, FactValue


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


@dataclass(frozen=True, slots=True)
class KnownCase:
    """A labelled case to be remembered, with all facts that are known of it and the version of their reader."""

    case: Case
    facts: Mapping[str, FactValue]
    reader: str

    @property
    def kept(self) -> Case:
        """The case as a ledger keeps it: without a text to read again, its transaction brings all facts known of it."""
        if self.case.transaction.text or self.case.transaction.facts == self.facts:
            return self.case
        transaction = self.case.transaction.model_copy(update={"facts": dict(self.facts)})
        return self.case.model_copy(update={"transaction": transaction})


@dataclass(frozen=True, slots=True)
class RememberedCase:
    """What learning looks back on: the facts of a case as they were kept, and its label."""

    seq: int
    """Its place among all remembered cases. A case that comes again moves to the end."""
    id: str
    is_fraud: bool
    time: int
    """Microseconds since 1970, `UNKNOWN` where it has none."""
    has_text: bool
    reader: str
    """Empty where nobody has read it yet, as in files of an earlier schema."""
    facts: Mapping[str, FactValue]


@dataclass(frozen=True, slots=True)
class Past:
    """What was decided and heard of one transaction, oldest first."""

    decisions: list[Decision] = field(default_factory=list)
    outcomes: list[OutcomeHeard] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Unless:
    """What must not have happened meanwhile, so that something derived from the ledger can be written.

    An event after ``seq`` is in the way if ``kinds`` says so of its kind and it is about one of the ``subjects``.
    """

    seq: int
    kinds: Callable[[str], bool]
    subjects: Collection[str] | None = None
    """None stands for all."""
    also: tuple[Unless, ...] = ()
    """What must not have happened either."""

    def or_else(self, other: Unless) -> Unless:
        """Unless either of them."""
        return replace(self, also=(*self.also, other))

    def met_by(self, event: Event) -> bool:
        """Whether an event is in the way."""
        about = self.subjects is None or event.what.subject in self.subjects
        return event.seq > self.seq and about and self.kinds(event.what.kind)

    @classmethod
    def edited(cls, seq: int) -> Unless:
        """Unless somebody changed the book since: outcomes and decisions only add to counters."""
        return cls(seq, _edits)

    @classmethod
    def bullets_edited(cls, seq: int, bullet_ids: Collection[str] | None = None) -> Unless:
        """Unless somebody added, edited or moved one of these bullets since, or any where none are named."""
        return cls(seq, BULLET_KINDS.__contains__, bullet_ids)

    @classmethod
    def heard(cls, seq: int, transaction_ids: Collection[str]) -> Unless:
        """Unless an outcome of one of these transactions was heard since."""
        return cls(seq, OUTCOME_KINDS.__contains__, transaction_ids)


def _edits(kind: str) -> bool:
    return kind not in COUNTED_KINDS


class Ledger(Protocol):
    """Keeps what happened, in order. When `append` returns, the events survive the death of the process."""

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
        """Write all of them, the cases they bring and what `rows` changes, or none.

        `rows` is called when nobody else can write any more: what it reads stays true.
        StoreConflict where what `unless` names has happened. A case replaces the one of the same transaction id.
        """
        ...

    def last_seq(self) -> int:
        """The place of the last event; 0 where there is none."""
        ...

    def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[Event]:
        """The events after one place, up to and with another, in order; without decisions if asked."""
        ...

    def decision(self, decision_id: str) -> Decision | None:
        """The decision of that id."""
        ...

    def recorded(self, decision_ids: Sequence[str]) -> dict[str, Decision]:
        """Those of these decisions that are recorded, by id."""
        ...

    def decisions_of(self, transaction_id: str) -> list[DecisionMade]:
        """What was decided of a transaction, oldest first."""
        ...

    def outcomes_of(self, transaction_id: str) -> list[OutcomeHeard]:
        """What was heard of a transaction, oldest first."""
        ...

    def pasts_of(self, transaction_ids: Collection[str]) -> dict[str, Past]:
        """What was decided and heard of many transactions, by id, in one lookup. Those without a past are left out."""
        ...

    def history(self, bullet_id: str) -> list[Event]:
        """The events that name this bullet as their subject, oldest first."""
        ...

    def remembered(self, limit: int, after: int = 0) -> list[RememberedCase]:
        """The latest `limit` of the remembered cases that came after a place among them, in order."""
        ...

    def cases(self, limit: int | None = None) -> list[Case]:
        """The same as cases (`KnownCase.kept`), the latest `limit` of them, in order."""
        ...

    def known_cases(self, transaction_ids: Collection[str]) -> dict[str, KnownCase]:
        """Those of some cases that are remembered, by transaction id, with their facts as they were kept."""
        ...

    def replace_facts(self, facts: Mapping[str, Mapping[str, FactValue]], reader: str) -> None:
        """Keep other facts of remembered cases, by transaction id; their places stay. Other ids are passed over."""
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
