"""Labels that arrive a month later, some of them revised: counted once, as one process would have heard them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.learning.stores import EACH_STORE, STORES, heard_in_turn, learnt
from tests.storage.replaying import matches_replay

from acefraud.core.events import DecisionMade
from acefraud.core.outcome import Outcome, Ruling
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.storage.playbook import BulletPlaybook

A_DAY, DAYS, DELAY = 6, 60, 30
"""Transactions in a day, simulated days, and days until a label arrives."""
EAGER = LearnerOptions(review_least=8, watch_every=60, n_bullets=3)


@pytest.fixture(params=EACH_STORE)
def playbook(request: pytest.FixtureRequest, tmp_path: Path, toy: Any) -> Iterator[BulletPlaybook]:
    with BulletPlaybook(STORES[request.param](tmp_path), clock=lambda: toy.start) as book:
        yield book


def reports(cases: list[Case], start: datetime) -> dict[int, list[Outcome]]:
    """The outcomes that are reported on each day: most after a month, some revised ten days later, a few too early."""
    chance, on_day = random.Random(7), defaultdict[int, list[Outcome]](list)
    for index, case in enumerate(cases):
        day, name = index // A_DAY, case.transaction.id
        due = max(0, day - 1) if chance.random() < 0.03 else day + DELAY
        on_day[due].append(outcome(name, case.is_fraud, f"o-{name}", start, due))
        if chance.random() < 0.05:
            on_day[due + 10].append(outcome(name, not case.is_fraud, f"r-{name}", start, due + 10))
    return on_day


def outcome(name: str, is_fraud: bool, key: str, start: datetime, day: int) -> Outcome:
    return Outcome(transaction_id=name, is_fraud=is_fraud, id=key, at=start + timedelta(days=day))


def lived(playbook: BulletPlaybook, cases: list[Case], on_day: dict[int, list[Outcome]]) -> None:
    """Every day outcomes are received and transactions decided; what waits is taken in now and then."""
    chance, learner = random.Random(8), Learner(playbook, options=EAGER)
    for day in range(DAYS):
        if on_day[day]:
            learner.receive(on_day[day], who="the bank")
        orders: list[Transaction] = [case.transaction for case in cases[day * A_DAY : (day + 1) * A_DAY]]
        learner.decide_all_sync(orders)
        if chance.random() < 0.5:
            learner.take_in_sync(chance.choice([3, 20, 500]))
        if day % 20 == 19:  # another process goes on
            learner = Learner(BulletPlaybook(playbook.ledger, clock=playbook.clock), options=EAGER)
    while learner.take_in_sync().count:
        pass


def uses(playbook: BulletPlaybook, truths: dict[str, bool]) -> dict[str, tuple[int, int, int]]:
    """Helpful, harmful and selected of each bullet, counted from the decisions and the last truth of each."""
    helpful, harmful = Counter[str](), Counter[str]()
    for event in playbook.ledger.read():
        if isinstance(event.payload, DecisionMade) and event.payload.subject in truths:
            decision = event.payload.decision
            right = decision.verdict is Verdict.of(truths[event.payload.subject])
            (helpful if right else harmful).update(decision.cited)
    return {
        bullet: (helpful[bullet], harmful[bullet], helpful[bullet] + harmful[bullet])
        for bullet in playbook.snapshot().bullets
    }


@pytest.mark.filterwarnings("ignore::acefraud.errors.InputWarning")  # the clock stands still
def test_late_and_revised_labels_count_as_one_process_would_have_heard_them(playbook: BulletPlaybook, toy: Any) -> None:
    playbook.add_bullet("VPN: decline", who="ana")
    cases = toy.cases(A_DAY * DAYS)
    on_day = reports(cases, toy.start)
    lived(playbook, cases, on_day)
    playbook.refresh()

    truths = {each.transaction_id: each.is_fraud for day in range(DAYS) for each in on_day[day]}
    assert matches_replay(playbook)
    bullets = playbook.snapshot().bullets
    counted = {
        bullet.id: (bullet.helpful_count, bullet.harmful_count, bullet.times_selected) for bullet in bullets.values()
    }
    assert counted == uses(playbook, truths), "the last truth counts, and pending ones count nothing"

    pasts = playbook.ledger.transaction_events([case.transaction.id for case in cases])
    assert {each for each, past in pasts.items() if past.outcomes} == truths.keys()
    assert all(past.outcomes[-1].judgement.ruling is not Ruling.UNJUDGED for past in pasts.values() if past.outcomes)
    assert {row.id: row.is_fraud for row in playbook.ledger.remembered(10_000)} == truths
    pending = len(cases) - len(truths)
    assert pending > A_DAY * (DELAY - 2)

    assert learnt(playbook) == learnt(heard_in_turn(playbook, EAGER))
    assert len(bullets) > 3
