"""Traffic with a planted pattern, as columns, and how a learner hears of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import DEFAULT_NODE, Bullet, Status
from acefraud.core.outcome import Outcome
from acefraud.core.table import Columns, FactTable
from acefraud.core.transaction import Verdict
from acefraud.core.transactions import Transactions
from acefraud.learning.hearing import Heard
from acefraud.learning.learner import Learner

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Transactions in the order of time, their labels, and which of them are of the planted pattern."""

    rows: Transactions
    labels: Mask
    planted: Mask

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, rows: slice) -> Traffic:
        """Some of them."""
        return Traffic(self.rows.take(rows), self.labels[rows], self.planted[rows])

    @property
    def outcomes(self) -> list[Outcome]:
        """The truth of each."""
        labels = self.labels.tolist()
        return [Outcome(transaction_id=id_, is_fraud=truth) for id_, truth in zip(self.rows.ids, labels, strict=True)]


def traffic(count: int, seed: int, *, share: float = 0.0, fraud: float = 0.97, timed: bool = False) -> Traffic:
    """Three numbers and two words, about 3 % fraud, and a planted share of many tries in the gift shop."""
    dice = np.random.default_rng(seed)
    amount, age = dice.lognormal(4, 1, count), np.round(dice.exponential(300, count))
    tries = dice.poisson(1.0, count).astype(np.float64)
    shop, channel = dice.integers(0, 6, count).astype(np.int32), dice.integers(0, 3, count).astype(np.int32)
    labels = dice.random(count) < np.where((amount > 150) & (channel == 2), 0.15, 0.02)
    planted = dice.random(count) < share
    tries[planted], shop[planted] = dice.integers(4, 8, planted.sum()), 4
    labels[planted] = dice.random(planted.sum()) < fraud
    columns = Columns(
        {"amount_paid": amount, "customer_age": age, "tries_made": tries},
        {},
        {
            "shop_kind": (shop, ("books", "food", "fuel", "games", "gifts", "toys")),
            "channel_used": (channel, ("app", "shop", "web")),
        },
    )
    rows = transactions_of(FactTable.of_columns(columns, count), f"{seed}-", timed=timed)
    return Traffic(rows, labels, planted)


def transactions_of(table: FactTable, prefix: str, *, timed: bool = False) -> Transactions:
    """The rows of a table as transactions, a second apart where they have times."""
    ids = np.array([f"{prefix}{index}" for index in range(len(table))], dtype=object)
    return Transactions(ids, table, times=np.arange(len(table)) * 1_000_000 if timed else None)


def bullets_of(learner: Learner) -> list[Bullet]:
    """Those in use."""
    return learner.playbook.get_bullets_for_node(DEFAULT_NODE)


def names_it(bullets: list[Bullet], seed: int, least: float = 0.6) -> list[Bullet]:
    """The active bullets that describe the planted pattern, measured on fresh traffic."""
    fresh = traffic(10_000, seed + 5000, share=0.02)
    found = []
    for bullet in bullets:
        if bullet.status is Status.ACTIVE and bullet.argues is Verdict.DECLINE and bullet.condition is not None:
            mask = bullet.condition.holds_in(fresh.rows.facts)
            speaks_of_it = bool(bullet.condition.facts & {"tries_made", "shop_kind"})
            if speaks_of_it and mask[fresh.planted].mean() >= least and fresh.labels[mask].mean() >= 0.5:
                found.append(bullet)
    return found


def hear(learner: Learner, part: Traffic, batch: int = 100) -> list[Heard]:
    """Let a learner hear of all of it, a batch at a time."""
    heard = []
    for start in range(0, len(part), batch):
        some = part.part(slice(start, start + batch))
        heard += asyncio.run(learner.hear_all(some.outcomes, some.rows))
    return heard


def until(learner: Learner, part: Traffic, seed: int, *, named: bool) -> tuple[int, int] | None:
    """Outcomes, and planted cases among them, until a bullet names the pattern or none does any more."""
    for start in range(0, len(part), 100):
        hear(learner, part.part(slice(start, start + 100)))
        if bool(names_it(bullets_of(learner), seed)) is named:
            return start + 100, int(part.planted[: start + 100].sum())
    return None
