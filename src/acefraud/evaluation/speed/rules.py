"""Rows of facts and bullets with conditions on them. Of acefraud it uses only what every version of it has had."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

import numpy as np

from acefraud.core.bullet import Bullet, bullet_id
from acefraud.core.condition import Condition, Op, Test
from acefraud.core.english import say
from acefraud.core.evidence import Evidence, Record
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.datasets import load_dataset
from acefraud.embedded.facts import facts_of
from acefraud.evaluation.speed.workloads import MOST_HARMFUL, MOST_HELPFUL, NODE

DERIVED = ("night", "amount_to_usual", "amount_to_usual_max")
"""Facts that follow from others, and are derived for every decision."""
TRUE_OF = (0.01, 0.1)
"""Each condition is true of at least and at most this share of the rows."""


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Transactions that all know the same facts, without any text."""

    transactions: list[Transaction]
    facts: list[dict[str, FactValue]]
    """All that is known of each, with what follows."""
    labels: list[bool]

    @property
    def base_rate(self) -> float:
        """How common fraud is."""
        return sum(self.labels) / len(self.labels)


@lru_cache(maxsize=2)
def world_rows(seed: int) -> LabelledRows:
    """The synthetic world as rows: what a row does not know is what is usual there, or false."""
    data = load_dataset("complex_fraud_detection", seed=seed)
    cases = [*data.train, *data.test]
    known = [facts_of(case.transaction).facts for case in cases]
    usual = {name: value for name, value in _usual(known).items() if name not in DERIVED}
    given = [{name: facts.get(name, value) for name, value in usual.items()} for facts in known]
    transactions = [Transaction(id=f"r{place}", facts=facts) for place, facts in enumerate(given)]
    return LabelledRows(
        transactions, [facts_of(each).facts for each in transactions], [case.is_fraud for case in cases]
    )


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


def conditions(rows: LabelledRows, count: int, seed: int) -> Iterator[Condition]:
    """Different conditions of two to four tests, each true of some row. Numbers are cut at what other rows have."""
    dice, seen = random.Random(seed), set[Condition]()
    names = sorted(rows.facts[0])
    while len(seen) < count:
        row = dice.choice(rows.facts)
        tests = [_test(name, row[name], rows, dice) for name in dice.sample(names, dice.choice((2, 3, 3, 4)))]
        condition = Condition.of(*tests)
        if condition not in seen:
            seen.add(condition)
            yield condition


def _test(name: str, value: FactValue, rows: LabelledRows, dice: random.Random) -> Test:
    if not isinstance(value, float):
        return Test(name, Op.IS, value)
    other = dice.choice(rows.facts)[name]
    cut = round(float(other) * dice.choice((0.9, 0.95, 1.0, 1.05, 1.1)), 2) if isinstance(other, float) else value
    return Test(name, Op.ABOVE if value > cut else Op.BELOW, cut if value != cut else cut + 1)


def rule_bullets(count: int, seed: int) -> Iterator[Bullet]:
    """Bullets as learning adds them: a condition in words with a record, whatever it is true of."""
    rows, dice = world_rows(seed), random.Random(seed)
    for condition in conditions(rows, count, seed):
        support = dice.randint(20, 400)
        yield _bullet(condition, Record(support=support, frauds=dice.randint(0, support)), rows.base_rate, dice)


def firing_bullets(count: int, seed: int) -> list[Bullet]:
    """Bullets whose conditions are true of some rows but not of many, with what was measured on these rows."""
    rows, dice = world_rows(seed), random.Random(seed)
    table, labels = FactTable(rows.facts), np.array(rows.labels)
    low, high = (share * len(labels) for share in TRUE_OF)
    found: list[Bullet] = []
    for condition in conditions(rows, 1_000 * count, seed):
        held = condition.holds_in(table)
        if low <= held.sum() <= high:
            record = Record(support=int(held.sum()), frauds=int((held & labels).sum()))
            found.append(_bullet(condition, record, rows.base_rate, dice))
            if len(found) == count:
                break
    return found


def _bullet(condition: Condition, record: Record, base_rate: float, dice: random.Random) -> Bullet:
    evidence = Evidence(learnt=record, base_rate=base_rate)
    content = f"{say(condition)}: {evidence.in_words()}"
    weight = _weight(record, base_rate)
    return Bullet(
        id=bullet_id(NODE, str(condition)),
        content=content,
        condition=condition,
        argues=Verdict.DECLINE if weight > 0 else Verdict.APPROVE,
        evidence=evidence,
        weight=weight,
        helpful_count=dice.randrange(MOST_HELPFUL),
        harmful_count=dice.randrange(MOST_HARMFUL),
    )


def _weight(record: Record, base_rate: float) -> float:
    """A tenth of the log-odds by which fraud is more common here: some dozens of conditions hold at a time."""
    share = (record.frauds + base_rate) / (record.support + 1)
    return 0.1 * (math.log(share / (1 - share)) - math.log(base_rate / (1 - base_rate)))
