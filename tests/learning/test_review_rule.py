"""Which cases go to a person: a band of probabilities, or what costs least, within a limit a day."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.learning.test_preview import is_fraud, transaction

from acefraud import BulletPlaybook, Case, Learner, Verdict, open_playbook
from acefraud.core.review_rule import ReviewCosts, ReviewRule
from acefraud.errors import InputError


def trained(book: BulletPlaybook) -> Learner:
    dice = random.Random(5)
    learner = Learner(book)
    cases = [transaction(dice, f"c{number}") for number in range(600)]
    learner.study([Case(transaction=case, is_fraud=is_fraud(case, dice)) for case in cases])
    return learner


def test_a_band_sends_cases_to_a_person_and_a_threshold_is_set_without_training() -> None:
    learner = trained(BulletPlaybook())
    dice = random.Random(6)
    many = [transaction(dice, f"t{number}") for number in range(300)]
    plain = asyncio.run(learner.score(many))
    assert {each.verdict for each in plain} == {Verdict.APPROVE, Verdict.DECLINE}
    learner.playbook.set_threshold(0.3, ReviewRule(between=(0.2, 0.5)))
    decided = asyncio.run(learner.decide_all(many))
    for one in decided:
        wanted = Verdict.of(one.probability >= 0.3)
        assert one.verdict is (Verdict.REVIEW if 0.2 <= one.probability < 0.5 else wanted)
        assert one.threshold == 0.3
    assert any(each.verdict is Verdict.REVIEW for each in decided)
    learner.playbook.set_threshold(no_review=True)
    assert learner.playbook.snapshot().reviews == {}
    calibration = learner.playbook.snapshot().calibration("fraud_detection")
    assert calibration is not None
    assert calibration.threshold == 0.3


@pytest.mark.parametrize("kept", ["memory", "file"])
def test_costs_and_a_limit_a_day_are_counted_by_the_ledger_and_replayed(kept: str, tmp_path: Path) -> None:
    now = [datetime(2025, 5, 1, 9, tzinfo=UTC)]
    book = BulletPlaybook(clock=lambda: now[0]) if kept == "memory" else open_playbook(tmp_path / "book.db")
    book.clock = lambda: now[0]
    with book:
        learner = trained(book)
        book.set_threshold(None, ReviewRule(costs=ReviewCosts(false_decline=60, review=12, per_day=25)))
        dice = random.Random(7)
        made = []
        for part in range(4):
            many = [transaction(dice, f"t{part}-{number}") for number in range(60)]
            made += list(asyncio.run(Learner(book).decide_all(many)))
            now[0] += timedelta(hours=9)
        by_day = [made[:120], made[120:]]  # 9 and 18 o'clock, then 3 and 12 o'clock of the next day
        for day in by_day:
            reviews = 0
            for one in day:
                amount = one.facts["amount"]
                assert isinstance(amount, float)
                costs = {
                    Verdict.APPROVE: one.probability * amount,
                    Verdict.REVIEW: 12.0,
                    Verdict.DECLINE: (1 - one.probability) * 60,
                }
                if one.verdict is not Verdict.REVIEW:
                    kept_for_others = costs.pop(Verdict.REVIEW) < min(costs.values())
                    assert (learner.ruling(one).rule == "capacity") is kept_for_others
                assert one.verdict is min(costs, key=lambda verdict: costs[verdict])
                reviews += one.verdict is Verdict.REVIEW
            assert 15 <= reviews <= 25
        for one in made[::7]:
            recorded = book.ledger.decisions([one.id])[one.id]
            explained = asyncio.run(learner.explain(recorded))
            assert (explained.verdict, explained.reasons) == (one.verdict, one.reasons)


def test_rules_that_make_no_sense_are_refused() -> None:
    book = BulletPlaybook()
    with pytest.raises(InputError, match="nothing was learnt yet"):
        book.set_threshold(0.4)
    with pytest.raises(InputError, match="must hold the threshold"):
        book.set_threshold(None, ReviewRule(between=(0.6, 0.9)))
    with pytest.raises(InputError, match="between 0 and 1"):
        book.set_threshold(1.5)
    with pytest.raises(ValueError, match="expected a band"):
        ReviewRule()
    with pytest.raises(ValueError, match="the lower one first"):
        ReviewRule(between=(0.7, 0.3))
