"""Requests are forgotten after some days, unless a repeat of their transaction is still answered with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.learning.stores import STORES

from acefraud.core.transaction import Transaction
from acefraud.errors import ConfigurationError
from acefraud.learning.decision_recorder import DecisionRequest
from acefraud.learning.learner import Learner
from acefraud.llm.synchronous import run_sync
from acefraud.service.decision_requests import Answered, decide_requests, with_reasons
from acefraud.storage.archive import archive_decisions
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.request_pruning import RequestPruner
from acefraud.storage.sql_ledger import SqlLedger

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Service:
    """A ledger whose clock stands still until it is moved."""

    ledger: SqlLedger
    now: datetime = START

    def __post_init__(self) -> None:
        self.learner = Learner(BulletPlaybook(self.ledger, clock=lambda: self.now))

    def decide(self, name: str, key: str = "", amount: float = 10) -> Answered:
        transaction = Transaction(id=name, facts={"amount": amount})
        made = decide_requests(self.learner, [DecisionRequest(transaction, key, "checkout")])
        (answer,) = run_sync(with_reasons(self.learner, made), waits=False)
        assert isinstance(answer, Answered), answer
        return answer

    def prune(self, at_once: int = 1_000) -> int:
        """One pass over all requests."""
        pruner = RequestPruner(self.ledger, 30, at_once=at_once, clock=lambda: self.now)
        gone = 0
        for _ in range(20):
            gone += pruner.step()
            self.now += timedelta(seconds=1)
        return gone


@pytest.fixture(params=[name for name in STORES if name != "memory"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    ledger = STORES[request.param](tmp_path)
    assert isinstance(ledger, SqlLedger)
    with ledger:
        yield Service(ledger)


def test_a_transaction_gets_its_first_answer_after_its_key_has_expired(service: Service) -> None:
    first = service.decide("t1", key="k1")
    plain = service.decide("t2")
    again = service.decide("t1", key="k2", amount=20)
    service.now += 40 * DAY
    service.decide("t3")
    assert service.prune() == 1

    for repeated in (service.decide("t1", key="k1"), service.decide("t1"), service.decide("t1", key="new")):
        assert (repeated.decision, repeated.repeated) == (first.decision, True)
    assert service.decide("t2").decision == plain.decision
    service.learner.playbook.add_bullet("Amount above 5: decline")
    assert service.decide("t1", key="k2", amount=20).decision.id != again.decision.id


def test_keys_are_kept_for_their_days(service: Service) -> None:
    service.decide("t1", key="k1")
    again = service.decide("t1", key="k2", amount=20)
    service.decide("t2")
    for _ in range(29):
        service.now += DAY
        service.decide(f"at {service.now}")
        assert service.prune() == 0
    assert service.decide("t1", key="k2", amount=20).decision == again.decision
    service.now += 2 * DAY
    assert service.prune() == 1


def test_the_day_of_the_first_decision_that_counts_as_recent_is_kept(service: Service) -> None:
    service.decide("t1", key="k1")
    service.now += 10 * DAY
    service.decide("t1", key="k2", amount=20)
    service.now += 30 * DAY
    assert service.prune() == 0
    service.now += DAY
    assert service.prune() == 0, "no decision is recent, so nothing says how old the requests are"


def test_a_request_stays_if_the_earlier_one_was_archived(service: Service, tmp_path: Path) -> None:
    service.decide("t1", key="k1")
    service.decide("t2", key="k1 of t2")
    service.now += 10 * DAY
    kept = service.decide("t1", key="k2", amount=20)
    service.now += 40 * DAY
    service.decide("t3")
    archive_decisions(service.ledger, START + DAY, tmp_path / "old", with_pending=True, who="ana")
    assert service.prune() == 0

    assert service.decide("t1", amount=20).decision == kept.decision
    assert not service.decide("t2").repeated


def test_it_looks_at_a_few_at_a_time_and_then_waits_for_a_day(service: Service) -> None:
    for n in range(10):
        service.decide(f"t{n}", key=f"k{n}")
        service.decide(f"t{n}", key=f"again {n}", amount=20)
    service.now += 40 * DAY
    service.decide("t10")
    pruner = RequestPruner(service.ledger, 30, at_once=4, clock=lambda: service.now)
    steps = []
    for _ in range(8):
        steps += [pruner.step(), pruner.step()]
        service.now += timedelta(seconds=1)
    assert (sum(steps), max(steps)) == (10, 4)
    assert set(steps[1::2]) == {0}, "a second step within a second does nothing"

    service.decide("t11", key="k11")
    service.now += 40 * DAY
    service.decide("t11", key="k12", amount=20)
    assert pruner.step() == 0


def test_at_least_a_day() -> None:
    with pytest.raises(ConfigurationError, match="days"):
        RequestPruner(None, 0)  # type: ignore[arg-type]
