"""When the latest outcomes speak against a bullet: with words, and never against a pinned one."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from acefraud.core.bullet import Bullet, Evidence, Record, Status, percent
from acefraud.core.condition import Condition
from acefraud.core.events import THE_ENGINE, StatusChanged
from acefraud.core.outcome import Outcome
from acefraud.core.table import FactTable
from acefraud.core.transaction import Transaction, Verdict
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.learning.review import (
    FOR_NEWCOMERS,
    LEAST_RECORD,
    LatestOutcomes,
    SilenceLimit,
    StatusMove,
    demotion_of,
    revival_of,
)
from acefraud.roles.embedded.case_memory import LabelledFacts
from acefraud.rules.induction.induce import Lesson
from acefraud.storage.playbook import BulletPlaybook

DECLINES = Evidence(learnt=Record(support=50, frauds=47), base_rate=0.1, cases=1000)
APPROVES = Evidence(learnt=Record(support=500, frauds=2), base_rate=0.1, cases=1000)


def declining(status: Status = Status.ACTIVE) -> Bullet:
    return Bullet(id="b", content="x", argues=Verdict.DECLINE, evidence=DECLINES, status=status)


def approving() -> Bullet:
    return Bullet(id="b", content="x", argues=Verdict.APPROVE, evidence=APPROVES)


def after(bullet: Bullet, support: int, frauds: int, among: int = 2000) -> StatusMove | None:
    return demotion_of(bullet, 0.1, Record(support=support, frauds=frauds), among)


def test_a_record_as_it_was_learnt_changes_nothing() -> None:
    assert after(declining(), 100, 92) is None
    assert after(approving(), 1000, 5) is None


def test_a_rule_over_hundreds_of_values_is_confirmed_like_any_other() -> None:
    shops = [f"merchant number {number}" for number in range(1_000)]
    named = ", ".join(f'"{shop}"' for shop in shops[::10])
    condition = Condition.parse(f"shop in ({named})")
    table, labels = FactTable([{"shop": shop} for shop in shops]), np.arange(1_000) % 10 == 0
    cases = LabelledFacts(np.array(shops, dtype=object), table, labels, np.arange(1_000), False)
    lesson = Lesson(condition, Verdict.DECLINE, DECLINES, 1.0)
    assert LatestOutcomes.of(cases, 1000).confirm(lesson, 1000, 0.1)


def test_a_record_that_left_its_interval_makes_a_candidate_once() -> None:
    found = after(declining(), 100, 55)
    assert found is not None
    assert found.status is Status.CANDIDATE
    assert "55 of 100" in found.reason
    assert "outside 84%-98% as learnt" in found.reason
    assert after(declining(Status.CANDIDATE), 100, 55) is None


def test_a_better_record_than_learnt_is_not_held_against_it() -> None:
    weak = Bullet(
        id="b",
        content="x",
        argues=Verdict.DECLINE,
        evidence=Evidence(learnt=Record(support=50, frauds=15), base_rate=0.1, cases=1000),
    )
    assert after(weak, 100, 100) is None


@pytest.mark.parametrize(("bullet", "support", "frauds"), [(declining(), 200, 8), (approving(), 1000, 200)])
def test_a_record_that_argues_the_other_way_retires(bullet: Bullet, support: int, frauds: int) -> None:
    found = demotion_of(bullet, 0.1, Record(support=support, frauds=frauds), 2000)
    assert found is not None
    assert found.status is Status.RETIRED


def test_a_silent_bullet_is_retired_with_words() -> None:
    found = after(declining(), 3, 3)
    assert found == StatusMove(Status.RETIRED, "held on 3 of the latest 2,000 outcomes, where 100 would be usual")
    assert after(approving(), 10, 0) is not None


def test_fraud_that_no_longer_comes_retires_what_warns_of_it() -> None:
    found = after(declining(), 15, 1)
    assert found is not None
    assert found.status is Status.RETIRED
    assert found.reason == "held on 15 of the latest 2,000 outcomes, 1 of them fraud, where 94 frauds would be usual"
    assert after(approving(), 1000, 0) is None, "no fraud is what it promises"


def test_too_little_to_go_by_changes_nothing() -> None:
    assert after(declining(), LEAST_RECORD - 1, 10, among=150) is None
    assert after(declining(), 0, 0, among=150) is None, "seven would be usual: that none came may be chance"
    unmeasured = Bullet(id="b", content="x", argues=Verdict.DECLINE)
    assert after(unmeasured, 100, 0) is None
    of_old = Evidence(learnt=Record(support=50, frauds=47), base_rate=0.1)
    assert after(declining().model_copy(update={"evidence": of_old}), 0, 0) is None, "among how many was not kept"


def test_newcomers_may_stay_silent_for_a_shorter_time() -> None:
    seen = Record(support=0, frauds=0)
    assert demotion_of(declining(), 0.1, seen, 150) is None
    assert demotion_of(declining(), 0.1, seen, 150, FOR_NEWCOMERS) is not None
    assert not SilenceLimit().reached(1, 9.9)
    assert SilenceLimit().reached(1, 10.0)


def test_a_revival_says_what_was_measured_and_who_had_retired_it() -> None:
    bullet = declining(Status.RETIRED).model_copy(update={"status_by": THE_ENGINE})
    found = revival_of(bullet, DECLINES)
    assert found.status is Status.ACTIVE
    assert found.reason == f"holds up again: {DECLINES.in_words()}; it had been retired by {THE_ENGINE}"


def test_shares_are_spoken_of_plainly() -> None:
    assert [percent(share) for share in (0.0, 0.034, 0.1, 0.999)] == ["0%", "3.4%", "10%", "100%"]


# --- watched on a stream ------------------------------------------------------------------------------------------


def outcomes(count: int, amount: float, fraud: bool) -> tuple[list[Outcome], list[Transaction]]:
    """Every tenth transaction is of this amount; of the others every fifteenth is fraud."""
    heard, about = [], []
    for index in range(count):
        special = index % 10 == 0
        is_fraud = fraud if special else index % 15 == 1
        heard.append(Outcome(transaction_id=f"t{index}", is_fraud=is_fraud))
        about.append(Transaction(id=f"t{index}", facts={"amount": amount if special else 50.0 + index % 7}))
    return heard, about


def watched(status: Status, amount: float, fraud: bool) -> tuple[BulletPlaybook, str]:
    playbook = BulletPlaybook()
    large = Condition.parse("amount > 900")
    evidence = Evidence(learnt=Record(support=100, frauds=97), base_rate=0.16, cases=1000)
    bullet = playbook.add_bullet(
        "large", source="online", condition=large, argues=Verdict.DECLINE, evidence=evidence, status=status
    )
    learner = Learner(playbook, options=LearnerOptions(review_least=10**6))  # it is watched, and nothing is searched
    (*_, last) = asyncio.run(learner.hear_all(*outcomes(250, amount, fraud)))
    assert last.review is not None
    assert not last.review.whole
    return playbook, bullet


@pytest.mark.parametrize(("amount", "fraud", "words"), [(40.0, False, "held on 0"), (950.0, False, "0 of them fraud")])
def test_a_watched_bullet_is_retired_with_a_reason_in_the_ledger(amount: float, fraud: bool, words: str) -> None:
    playbook, bullet = watched(Status.ACTIVE, amount, fraud)
    (change,) = [event.payload for event in playbook.ledger.read() if isinstance(event.payload, StatusChanged)]
    assert (change.bullet_id, change.status) == (bullet, Status.RETIRED)
    assert words in change.reason


def test_a_bullet_that_is_borne_out_stays() -> None:
    playbook, bullet = watched(Status.ACTIVE, 950.0, True)
    found = playbook.get_bullet(bullet)
    assert found is not None
    assert found.status is Status.ACTIVE


@pytest.mark.parametrize("amount", [40.0, 950.0])
def test_a_pinned_bullet_is_never_moved(amount: float) -> None:
    playbook, bullet = watched(Status.PINNED, amount, False)
    found = playbook.get_bullet(bullet)
    assert found is not None
    assert found.status is Status.PINNED
