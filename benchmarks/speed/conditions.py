"""Rows of facts, and bullets with conditions on them."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from statistics import median
from typing import Any

import numpy as np

from acefraud import BulletPlaybook, Case, Condition, Evidence, FactTable, Record, Transaction, Verdict, load_dataset
from benchmarks.speed.prose import NODE

TRUE_OF = (0.01, 0.1)
"""Each condition is true of at least and at most this share of the rows."""
_AT_ONCE = 2_000

FactValue = float | bool | str


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Transactions that all know the same facts, without any text."""

    transactions: list[Transaction]
    labels: list[bool]

    @property
    def facts(self) -> list[dict[str, FactValue]]:
        """All that is known of each."""
        return [transaction.facts for transaction in self.transactions]

    @property
    def base_rate(self) -> float:
        """How common fraud is."""
        return sum(self.labels) / len(self.labels)

    def cases(self, most: int) -> list[Case]:
        """The first of them as cases to learn from."""
        pairs = zip(self.transactions[:most], self.labels, strict=False)
        return [Case(transaction=transaction, is_fraud=label) for transaction, label in pairs]


@lru_cache(maxsize=2)
def world_rows(seed: int) -> LabelledRows:
    """The synthetic world as rows: what a row does not know is what is usual there, or false."""
    data = load_dataset("complex_fraud_detection", seed=seed)
    cases = [*data.train, *data.test]
    usual = _usual([case.transaction.facts for case in cases])
    transactions = [
        Transaction(id=f"r{index}", facts={name: case.transaction.facts.get(name, usual[name]) for name in usual})
        for index, case in enumerate(cases)
    ]
    return LabelledRows(transactions, [case.is_fraud for case in cases])


def _usual(rows: Sequence[Mapping[str, FactValue]]) -> dict[str, FactValue]:
    """The median of numbers, the most frequent word, and false, in the order of the alphabet."""
    found: dict[str, list[FactValue]] = {}
    for row in rows:
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return {name: _usual_of(values) for name, values in sorted(found.items())}


def _usual_of(values: Sequence[FactValue]) -> FactValue:
    numbers = [value for value in values if isinstance(value, float)]
    if numbers:
        return float(median(numbers))
    return False if isinstance(values[0], bool) else Counter(values).most_common(1)[0][0]


# --- conditions --------------------------------------------------------------------------------------------------


def conditions(rows: LabelledRows, count: int, seed: int) -> Iterator[Condition]:
    """Different conditions of two to four tests, each true of some row. Numbers are cut at what other rows have."""
    dice, seen, facts = random.Random(seed), set[Condition](), rows.facts
    names = sorted(facts[0])
    while len(seen) < count:
        row = dice.choice(facts)
        tests = [_test(name, row[name], facts, dice) for name in dice.sample(names, dice.choice((2, 3, 3, 4)))]
        condition = Condition.parse(" and ".join(tests))
        if condition not in seen:
            seen.add(condition)
            yield condition


def _test(name: str, value: FactValue, facts: Sequence[Mapping[str, FactValue]], dice: random.Random) -> str:
    """A test in its text form that is true of this value."""
    if not isinstance(value, float):
        return f"{name} is {json.dumps(value)}"
    other = dice.choice(facts)[name]
    cut = round(float(other) * dice.choice((0.9, 0.95, 1.0, 1.05, 1.1)), 2) if isinstance(other, float) else value
    return f"{name} {'>' if value > cut else '<'} {cut if value != cut else cut + 1}"


# --- bullets -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConditionBullet:
    """A bullet as learning adds it: a condition with its record and its weight."""

    condition: Condition
    evidence: Evidence
    weight: float

    @property
    def content(self) -> str:
        """What it says."""
        return f"{self.condition}: {self.evidence.in_words()}"

    @property
    def given(self) -> dict[str, Any]:
        """What is handed to the playbook beside its words."""
        argues = Verdict.DECLINE if self.weight > 0 else Verdict.APPROVE
        return {"condition": self.condition, "argues": argues, "evidence": self.evidence, "weight": self.weight}


def condition_book(bullets: Iterable[ConditionBullet], playbook: BulletPlaybook | None = None) -> BulletPlaybook:
    """A playbook with these bullets in it; in memory where none is given."""
    playbook = BulletPlaybook() if playbook is None else playbook
    left = iter(bullets)
    while some := list(islice(left, _AT_ONCE)):
        with playbook.unit_of_work():
            for bullet in some:
                playbook.add_bullet(bullet.content, NODE, **bullet.given)
    return playbook


def condition_bullets(count: int, seed: int) -> Iterator[ConditionBullet]:
    """Bullets with some record, whatever their conditions are true of."""
    rows, dice = world_rows(seed), random.Random(seed)
    for condition in conditions(rows, count, seed):
        support = dice.randint(20, 400)
        yield _bullet(condition, Record(support=support, frauds=dice.randint(0, support)), rows.base_rate)


def firing_bullets(count: int, seed: int) -> list[ConditionBullet]:
    """Bullets whose conditions are true of some rows but not of many, with what was measured on these rows."""
    rows = world_rows(seed)
    table, labels = FactTable(rows.facts), np.array(rows.labels)
    low, high = (share * len(labels) for share in TRUE_OF)
    found: list[ConditionBullet] = []
    for condition in conditions(rows, 1_000 * count, seed):
        held = condition.holds_in(table)
        if low <= held.sum() <= high:
            record = Record(support=int(held.sum()), frauds=int((held & labels).sum()))
            found.append(_bullet(condition, record, rows.base_rate))
            if len(found) == count:
                break
    return found


def _bullet(condition: Condition, record: Record, base_rate: float) -> ConditionBullet:
    return ConditionBullet(condition, Evidence(learnt=record, base_rate=base_rate), _weight(record, base_rate))


def _weight(record: Record, base_rate: float) -> float:
    """A tenth of the log-odds by which fraud is more common here: some dozens of conditions hold at a time."""
    share = (record.frauds + base_rate) / (record.support + 1)
    return 0.1 * (math.log(share / (1 - share)) - math.log(base_rate / (1 - base_rate)))
