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
from acefraud.core.ledger import KeptRequest, Precondition
from acefraud.core.transaction import Transaction
from acefraud.engine.entity_memory import Drafted
from acefraud.errors import AlreadyAnswered, StoreConflict
from acefraud.learning.outcomes import to_receive_again
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


@retried_on_conflict
def record_decisions(
    playbook: BulletPlaybook,
    node: str,
    records: Sequence[DecisionRecord],
    given: Drafted,
    requests: Sequence[KeptRequest] = (),
    *,
    since: int | None = None,
    who: str = THE_ENGINE,
) -> tuple[set[str], datetime, bool]:
    """Record decisions, each once, and the requests they answer, all or none.

    Returns the ids of decisions that were recorded before, when the others were, and whether there were outcomes
    before their first decision: these are received again with it, so that it is judged. Raises AlreadyAnswered if
    there are requests, and one of them was answered or its transaction decided ``since`` an event.
    """
    seen = playbook.seq if since is None else since
    known = playbook.ledger.recorded([record.id for record in records])
    fresh = {
        record.id: (record, transaction)
        for record, transaction in zip(records, given.transactions, strict=True)
        if record.id not in known
    }
    if not fresh and not requests:
        return known, playbook.clock(), False
    new = [transaction for _, transaction in fresh.values()]
    ids = {transaction.id for transaction in new}
    repeated = to_receive_again(playbook, ids, node)
    try:
        written = playbook.record(
            [*(DecisionMade(record) for record, _ in fresh.values()), *repeated],
            who=who,
            preconditions=[Precondition.no_decisions_since(seen, ids), Precondition.no_reports_since(seen, ids)],
            rows=given.change_for(new),
            requests=requests,
        )
    except StoreConflict as conflict:
        playbook.refresh()  # so that the next attempt starts after what it met
        if requests:  # whoever asked has to look again whether it is a repeat
            raise AlreadyAnswered(str(conflict)) from conflict
        raise
    return known, written[0].at if written else playbook.clock(), bool(repeated)
