"""Processes hear outcomes of the same transactions at once, with repeats and revisions. Every counter is exact."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest
from tests.postgres import database_for
from tests.storage.replaying import matches_replay

from acefraud.core.bullet import Bullet
from acefraud.core.events import DecisionMade, OutcomeHeard
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Transaction
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.storage import open_playbook
from acefraud.storage.playbook import BulletPlaybook

pytestmark = pytest.mark.wide

NEVER = 10**9
ONLY_COUNTING = LearnerOptions(n_bullets=50, review_least=NEVER, review_at_last=NEVER, watch_every=NEVER)
BULLETS = 50
HEARD_AT_ONCE = 20
AT = datetime(2024, 5, 1, tzinfo=UTC)

PLACES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: str(folder / "book.db"),
    "postgresql": database_for,
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return PLACES[request.param](tmp_path)


def transaction(n: int) -> Transaction:
    return Transaction(id=f"t{n}", facts={"amount": n * 37 % 1_000, "vpn": n % 3 == 0})


def prepare(book: BulletPlaybook, transactions: int) -> None:
    for n in range(BULLETS):
        book.add_bullet(f"Amount above ${n * 20 + 5}: {'decline' if n % 2 else 'approve'}", who="ana")
    asyncio.run(Learner(book, options=ONLY_COUNTING).decide_all([transaction(n) for n in range(transactions)]))


def outcomes(seed: int, count: int, transactions: int) -> list[Outcome]:
    """What one process hears. All draw from the same few, so that most have been told by others, or told otherwise."""
    dice = random.Random(seed)
    return [
        Outcome(
            transaction_id=f"t{dice.randrange(transactions)}",
            is_fraud=dice.random() < 0.3,
            at=AT + timedelta(days=dice.randrange(3)),
        )
        for _ in range(count)
    ]


def hear(place: str, seed: int, count: int, transactions: int) -> set[str]:
    """The keys of all outcomes that one process was told are taken in."""

    async def hear_all() -> None:
        with open_playbook(place, create=False) as book:
            learner = Learner(book, options=ONLY_COUNTING)
            for start in range(0, count, HEARD_AT_ONCE):
                await learner.hear_all(heard[start : start + HEARD_AT_ONCE])

    heard = outcomes(seed, count, transactions)
    asyncio.run(hear_all())
    return {each.key for each in heard}


def counters(bullet: Bullet) -> tuple[int, ...]:
    record = bullet.record
    return bullet.helpful_count, bullet.harmful_count, bullet.times_selected, record.support, record.frauds


def check(place: str, processes: int, each: int, transactions: int) -> None:
    with open_playbook(place) as book:
        prepare(book, transactions)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(hear, place, seed, each, transactions) for seed in range(processes)]
        told = set.union(*(run.result(timeout=3_000) for run in runs))
    with open_playbook(place, create=False) as book:
        assert matches_replay(book)
        events = [event.payload for event in book.ledger.read()]
        heard = [one for one in events if isinstance(one, OutcomeHeard)]
        assert Counter(one.outcome.key for one in heard) == Counter(told), "each is there once"
        revised = sum(one.kind == "outcome_revised" for one in heard)
        assert 0 < revised < len(heard) < processes * each, "some were revised, and some told again"

        serial = BulletPlaybook()
        serial.record([one for one in events if not isinstance(one, OutcomeHeard)])
        assert sum(isinstance(one, DecisionMade) for one in events) == transactions
        asyncio.run(Learner(serial, options=ONLY_COUNTING).hear_all([one.outcome for one in heard]))
        expected = {bullet.id: counters(bullet) for bullet in serial}
        assert {bullet.id: counters(bullet) for bullet in book} == expected
        assert len(expected) == BULLETS
        assert sum(sum(one) for one in expected.values()) > 0


@pytest.mark.parametrize("place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True)
def test_a_few_processes_that_hear_of_the_same_transactions_count_each_outcome_once(place: str) -> None:
    check(place, processes=2, each=100, transactions=40)


@pytest.mark.long
def test_eight_processes_that_hear_twenty_thousand_outcomes_count_each_once(place: str) -> None:
    check(place, processes=8, each=2_500, transactions=2_000)
