"""The stores that tests of learning run on, and what two playbooks have in common if they learnt the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import database_for

from acefraud.core.events import (
    THE_ENGINE,
    BulletAdded,
    DecisionMade,
    ListCreated,
    OutcomeHeard,
    OutcomeReceived,
    Reviewed,
)
from acefraud.core.ledger import Ledger
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.postgres import PostgresLedger
from acefraud.storage.sqlite import SqliteLedger

STORES: dict[str, Callable[[Path], Ledger]] = {
    "memory": lambda _: MemoryLedger(),
    "sqlite": lambda directory: SqliteLedger.open(directory / "book.db"),
    "postgresql": lambda directory: PostgresLedger.open(database_for(directory)),
}
"""A new store is one more entry."""
EACH_STORE = [pytest.param(name, marks=pytest.mark.wide) if name == "postgresql" else name for name in STORES]
"""Their names, as parameters of a fixture."""


def learnt(playbook: BulletPlaybook) -> dict[str, Any]:
    """Everything that was learnt: texts, weights, statuses, evidence and counters, the cases and the reviews.

    When a bullet was added is left out, and so is the recent level, which depends on how many events there are.
    """
    playbook.refresh()
    snapshot = playbook.snapshot()
    cases = playbook.ledger.remembered(100_000)
    return {
        "bullets": [bullet.model_dump(exclude={"added_at"}) for bullet in snapshot.bullets.values()],
        "calibrations": {
            node: each.model_copy(update={"recent": None}) for node, each in sorted(snapshot.calibrations.items())
        },
        "lists": {name: sorted(listed.items) for name, listed in snapshot.lists.items()},
        "learning": playbook.learning(),
        "outcomes": playbook.outcomes,
        "heard": [e.payload for e in playbook.ledger.read() if isinstance(e.payload, OutcomeHeard)],
        "reviews": [e.payload for e in playbook.ledger.read() if isinstance(e.payload, Reviewed)],
        "cases": [(case.id, case.is_fraud, case.time, dict(case.facts)) for case in cases],
    }


def heard_in_turn(playbook: BulletPlaybook, options: LearnerOptions | None = None) -> BulletPlaybook:
    """A playbook of one process with the same decisions, that heard each outcome when and as it was received."""
    alone = BulletPlaybook(clock=playbook.clock)
    learner = Learner(alone, options=options)
    for event in playbook.ledger.read():
        match event.payload:
            case DecisionMade() as made:
                alone.record([made])
            case OutcomeReceived(outcome=outcome, transaction=transaction):
                learner.hear_sync(outcome, transaction)
            case BulletAdded() | ListCreated() as payload if event.who != THE_ENGINE:
                alone.record([payload], who=event.who)
    return alone
