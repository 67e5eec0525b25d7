"""Scores as columns are what deciding comes to, to the last digits, and leave nothing behind."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tests.learning.traffic import traffic, transactions_of

from acefraud.core.bullet import Status
from acefraud.core.condition import Condition
from acefraud.core.table import Columns, FactTable
from acefraud.core.transaction import Case, Transaction
from acefraud.core.transactions import Cases, Transactions
from acefraud.datasets import load_dataset
from acefraud.datasets.world import WorldOptions
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage import BulletPlaybook, open_playbook

Made = tuple[BulletPlaybook, list[Transaction]]
PROSE = "Customers who sound nervous and ask for a refund should be declined"


def with_gaps(table: FactTable, seed: int) -> FactTable:
    """The same with about a fifth of all values missing; each row keeps its amount."""
    dice, columns = np.random.default_rng(seed), table.columns
    count = len(table)
    numbers = {
        name: values if name == "amount_paid" else np.where(dice.random(count) < 0.2, np.nan, values)
        for name, values in columns.numbers.items()
    }
    words = {
        name: (np.where(dice.random(count) < 0.2, -1, codes).astype(np.int32), known)
        for name, (codes, known) in columns.categories.items()
    }
    return FactTable.of_columns(Columns(numbers, dict(columns.flags), words), count)


def records(playbook: BulletPlaybook) -> list[Transaction]:
    """Train the playbook on records, and give others to decide, some facts of which are missing."""
    past = traffic(1500, 71, share=0.05)
    rows = transactions_of(with_gaps(past.rows.facts, 1), "past-")
    Learner(playbook).study(Cases(rows, past.labels))
    return list(transactions_of(with_gaps(traffic(120, 72, share=0.2).rows.facts, 2), "new-"))


def texts(playbook: BulletPlaybook) -> list[Transaction]:
    """The same for transactions that are told in words; some bring facts too, and one brings nothing but facts."""
    world = load_dataset("complex_fraud_detection", seed=7, options=WorldOptions(transactions=250))
    Learner(playbook).study(world.train)
    chance = random.Random(3)
    told = [case.transaction for case in world.test]
    some = [
        each.model_copy(update={"facts": {**each.facts, "amount": chance.uniform(5, 5000)}}) if index % 7 == 0 else each
        for index, each in enumerate(told)
    ]
    return [*some, Transaction(id="bare", facts={"amount": 900.0, "vpn": True})]


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[Transaction]]]:
    """A file for each kind of transaction, trained once, and what is to be decided with it."""
    found = {}
    for train in (records, texts):
        path = tmp_path_factory.mktemp("trained") / f"{train.__name__}.db"
        with open_playbook(path) as book:
            found[train.__name__] = path, train(book)
    return found


@pytest.fixture(params=["records", "texts"])
def made(
    request: pytest.FixtureRequest, tmp_path: Path, trained_once: dict[str, tuple[Path, list[Transaction]]]
) -> Iterator[Made]:
    path, rows = trained_once[request.param]
    with open_playbook(shutil.copy(path, tmp_path)) as book:
        yield book, rows


@pytest.mark.parametrize("explore", [True, False], ids=["draws", "no draws"])
@pytest.mark.parametrize("prose", [False, True], ids=["conditions only", "with prose"])
@pytest.mark.parametrize("n_bullets", [3, 10])
def test_scores_are_what_deciding_comes_to(made: Made, explore: bool, prose: bool, n_bullets: int) -> None:
    playbook, rows = made
    if prose:
        playbook.add_bullet(PROSE)
        playbook.add_bullet("Emulators and VPNs are often seen together in fraud", status=Status.PINNED)
    selector = HybridSelector(seed=5) if explore else HybridSelector(seed=5).without_draws()
    assert selector.explore is explore
    learner = Learner(playbook, selector=selector, options=LearnerOptions(n_bullets=n_bullets))
    before = playbook.ledger.last_seq()
    scores = learner.score_all(rows)
    assert playbook.ledger.last_seq() == before, "nothing is recorded"
    decisions = asyncio.run(learner.decide_all(rows))
    assert scores.probabilities.tolist() == [decision.probability for decision in decisions]
    assert scores.cited.tolist() == [len(decision.cited) for decision in decisions]
    assert scores.cited.max() > 1
    assert len({round(p, 6) for p in scores.probabilities.tolist()}) > 3


def test_scores_with_every_bullet_leave_none_out(made: Made) -> None:
    playbook, rows = made
    few, all_ = (Learner(playbook, options=LearnerOptions(n_bullets=n)) for n in (1, 10_000))
    every = few.score_all(rows, every_bullet=True)
    assert every.probabilities.tolist() == all_.score_all(rows).probabilities.tolist()
    assert every.cited.max() > 1


def test_nothing_to_score_is_no_score() -> None:
    assert len(Learner(BulletPlaybook()).score_all([]).probabilities) == 0


def test_rules_about_the_time_score_rows_with_and_without_a_text_as_they_are_decided() -> None:
    """Of the time of day a text itself says what is to be known; a transaction may state its own hour too."""
    playbook = BulletPlaybook()
    for text in ("hour >= 20", "night is true", 'weekday is "Sunday"', "weekend is false", "amount > 20 and hour < 9"):
        playbook.add_bullet(f"{text}: decline", condition=Condition.parse(text))
    times = [datetime(2025, 3, day, hour, 40, tzinfo=UTC) for day in range(1, 8) for hour in range(0, 24, 3)]
    rows = [Transaction(id=f"t{at:%d-%H}", time=at, facts={"amount": float(at.hour)}) for at in times]
    rows.append(Transaction(id="without a time", facts={"amount": 7.0}))
    rows.append(Transaction(id="its own hour", time=times[0], facts={"amount": 7.0, "hour": 21.0}))
    rows += [each.model_copy(update={"id": f"told-{each.id}", "text": "$60 purchase at night"}) for each in rows[::3]]
    learner = Learner(playbook)
    expected = [decision.probability for decision in asyncio.run(learner.score(rows))]
    assert len(set(expected)) > 4
    assert learner.score_all(rows).probabilities.tolist() == expected
    assert learner.score_all(Transactions.of(rows)).probabilities.tolist() == expected
    silent = [each for each in rows if not each.text]
    assert learner.score_all(silent).probabilities.tolist() == expected[: len(silent)]


def test_a_backtest_knows_what_rules_ask_for() -> None:
    """The hour is no fact of these cases: it is worked out because a rule asks for it."""
    playbook = BulletPlaybook()
    playbook.add_bullet("hour is at least 22: decline", condition=Condition.parse("hour >= 22"))
    times = [datetime(2025, 3, 1, hour, tzinfo=UTC) for hour in range(24)]
    rows = [Transaction(id=f"t{time.hour}", time=time, facts={"amount": 20.0}) for time in times]
    learner = Learner(playbook)
    found = learner.backtest_scores([Case(transaction=row, is_fraud=False) for row in rows])
    assert found.scores.probabilities.tolist() == learner.score_all(rows).probabilities.tolist()
    assert found.bullets[0].evidence.learnt.support == 2
