"""Decisions on their way into the ledger, with what belongs to them.

That is the requests that they answer, what they add to the memory of entities, and outcomes that came before them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from acefraud.core.decision import DecisionRecord
from acefraud.core.events import THE_ENGINE, DecisionMade
from acefraud.core.ledger import KeptRequest, Ledger, Precondition, RowUpdate
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import Transaction
from acefraud.engine.entity_memory import Drafted, EntityMemory, memory_for
from acefraud.errors import AlreadyAnswered, StoreConflict
from acefraud.learning.received_outcomes import reports_to_repeat
from acefraud.storage.changes import retried_on_conflict
from acefraud.storage.playbook import BulletPlaybook


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A transaction to decide, and the key that identifies the request if the caller gave one."""

    transaction: Transaction
    key: str = ""
    caller: str = ""
    """Keys of different callers are different keys."""
    arrived: datetime | None = None
    """When it came: the time of a transaction that brings none. It is no part of what is asked, so a repeat is one."""

    @property
    def to_decide(self) -> Transaction:
        """The transaction with its time."""
        given = self.transaction
        if given.time is not None or self.arrived is None or not (given.facts or given.entities):
            return given  # a text says itself when it happened
        return given.model_copy(update={"time": self.arrived})

    @property
    def kept_key(self) -> str:
        """The key in the ledger."""
        return f"key:{self.caller}\x1f{self.key}" if self.key else f"transaction:{self.transaction.id}"

    @property
    def digest(self) -> str:
        """A digest of what is asked."""
        return hashlib.sha256(self.transaction.model_dump_json().encode()).hexdigest()[:32]

    def kept(self, decision_id: str) -> KeptRequest:
        """The request as the ledger keeps it, once it is answered."""
        return KeptRequest(self.kept_key, self.transaction.id, self.digest, decision_id)


@dataclass(frozen=True, slots=True)
class ToDecide:
    """Transactions with the facts from their history, and what they add to it once they are decided."""

    transactions: Sequence[Transaction]
    memory: EntityMemory | None = None
    drafted: Drafted | None = None

    @classmethod
    def of(cls, transactions: Sequence[Transaction], snapshot: Snapshot, ledger: Ledger) -> ToDecide:
        """Transactions that have all their other facts."""
        memory = memory_for(snapshot.mapping)
        if memory is None:
            return cls(transactions)
        drafted = memory.enriched_and_added(transactions, ledger)
        return cls(drafted.transactions, memory, drafted)

    def memory_change(self, new: Sequence[Transaction]) -> RowUpdate | None:
        """What the new ones among them add to the memory of entities."""
        if self.memory is None or self.drafted is None or not new:
            return None
        return self.drafted.change if len(new) == len(self.transactions) else self.memory.adding(new)


@dataclass(frozen=True, slots=True)
class DecisionRecorder:
    """Records decisions, each once."""

    playbook: BulletPlaybook
    node: str

    @retried_on_conflict
    def record(
        self,
        records: Sequence[DecisionRecord],
        given: ToDecide,
        requests: Sequence[KeptRequest] = (),
        *,
        since: int | None = None,
        who: str = THE_ENGINE,
    ) -> tuple[set[str], datetime, bool]:
        """Record decisions and the requests they answer, all or none.

        Returns the ids of decisions that were recorded before, when the others were, and whether there were outcomes
        before their first decision: these are received again with it, so that it is judged. Raises AlreadyAnswered if
        there are requests, and one of them was answered or its transaction decided ``since`` an event.
        """
        seen = self.playbook.seq if since is None else since
        known = self.playbook.ledger.recorded([record.id for record in records])
        fresh = {
            record.id: (record, transaction)
            for record, transaction in zip(records, given.transactions, strict=True)
            if record.id not in known
        }
        if not fresh and not requests:
            return known, self.playbook.clock(), False
        new = [transaction for _, transaction in fresh.values()]
        ids = {one.id for one in new}
        repeated = reports_to_repeat(self.playbook, ids, self.node)
        try:
            written = self.playbook.record(
                [*(DecisionMade(record) for record, _ in fresh.values()), *repeated],
                who=who,
                preconditions=[Precondition.no_decisions_since(seen, ids), Precondition.no_reports_since(seen, ids)],
                rows=given.memory_change(new),
                requests=requests,
            )
        except StoreConflict as conflict:
            self.playbook.refresh()  # so that the next attempt starts after what it met
            if requests:  # whoever asked has to look again whether it is a repeat
                raise AlreadyAnswered(str(conflict)) from conflict
            raise
        return known, written[0].at if written else self.playbook.clock(), bool(repeated)
