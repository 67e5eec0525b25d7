"""Small payloads for the tests of the stores."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from tests.blank_playbooks import each_migrated

from acefraud.core.bullet import Bullet
from acefraud.core.decision import Decision, DecisionRecord
from acefraud.core.events import BulletAdded, DecisionMade, OutcomeHeard
from acefraud.core.ledger import KnownCase
from acefraud.core.outcome import Judgement, Outcome, Ruling
from acefraud.core.transaction import Case, Transaction, Verdict


class Sample:
    """Payloads by name."""

    at = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)

    def bullet(self, name: str, content: str = "VPN and a new device: decline") -> BulletAdded:
        return BulletAdded(bullet=Bullet(id=name, content=content))

    def transaction(self, name: str) -> Transaction:
        return Transaction(id=name, facts={"amount": 20, "vpn": True, "country": "1e5"})

    def decision(self, name: str, transaction: str = "t1", probability: float = 0.9) -> DecisionMade:
        decision = Decision(
            id=name,
            transaction=self.transaction(transaction),
            verdict=Verdict.DECLINE,
            probability=probability,
            threshold=0.5,
            base=-1.25,
            revision=0,
        )
        return DecisionMade(DecisionRecord.whole(decision))

    def outcome(self, transaction: str, is_fraud: bool = True, revised: bool = False) -> OutcomeHeard:
        return OutcomeHeard(
            kind="outcome_revised" if revised else "outcome_heard",
            outcome=Outcome(transaction_id=transaction, is_fraud=is_fraud),
            judgement=Judgement(ruling=Ruling.CORRECT),
        )

    def case(self, name: str, is_fraud: bool = False) -> Case:
        return Case(transaction=self.transaction(name), is_fraud=is_fraud, known_at=self.at)

    def told(self, name: str, is_fraud: bool = False) -> Case:
        transaction = Transaction(id=name, time=self.at, facts={"amount": 20}, text=f"$20 at {name}")
        return Case(transaction=transaction, is_fraud=is_fraud)

    def known(self, name: str, is_fraud: bool = False) -> KnownCase:
        case = self.case(name, is_fraud)
        return KnownCase(case, case.transaction.facts, "1")


@pytest.fixture
def sample() -> Sample:
    return Sample()


@pytest.fixture
def each_playbook_migrated() -> Iterator[None]:
    """Run the migrations for every new playbook, where they are what is tested."""
    with each_migrated():
        yield
