"""Small worlds in which something can be learnt."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from acefraud.core.transaction import Case, Transaction
from acefraud.learning.learner import Learner
from acefraud.storage.playbook import BulletPlaybook

START = datetime(2024, 3, 1, tzinfo=UTC)


class Toy:
    """Large amounts through a VPN are fraud."""

    start = START

    def transaction(self, name: str, amount: float = 2500, vpn: bool = True, hour: int | None = None) -> Transaction:
        time = None if hour is None else START + timedelta(hours=hour)
        return Transaction(id=name, time=time, facts={"amount": amount, "vpn": vpn})

    def cases(self, count: int, seed: int = 0, prefix: str = "c", delay: int | None = None) -> list[Case]:
        """Cases an hour apart, with labels that arrive `delay` hours later; without it no times at all."""
        chance = random.Random(seed)
        made = []
        for n in range(count):
            amount, vpn = chance.randint(10, 4000), chance.random() < 0.5
            fraud = (amount > 2000 and vpn) != (chance.random() < 0.05)
            transaction = self.transaction(f"{prefix}{n}", amount, vpn, None if delay is None else n)
            known = None if delay is None else START + timedelta(hours=n + delay)
            made.append(Case(transaction=transaction, is_fraud=fraud, known_at=known))
        return made

    def counters(self, playbook: BulletPlaybook) -> dict[str, tuple[int, ...]]:
        """What was counted of each bullet."""
        return {
            b.id: (b.helpful_count, b.harmful_count, b.times_selected, b.record.support, b.record.frauds)
            for b in playbook.snapshot().bullets.values()
        }

    def with_bullets(self, **parts: Any) -> Learner:
        """A learner on a playbook of three bullets by hand, two of which fire on the usual transaction."""
        playbook = BulletPlaybook()
        for content in ("amount > 2000 and VPN: decline", "VPN: decline", "amount < 100: approve"):
            playbook.add_bullet(content)
        return Learner(playbook, **parts)


@pytest.fixture
def toy() -> Toy:
    return Toy()
