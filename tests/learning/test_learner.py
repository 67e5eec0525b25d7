"""Learning is all or nothing, demotes with a reason, respects what people decided, and shares a file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.storage.replaying import cases_of, matches_replay

from acefraud.core.bullet import Evidence, Record, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.events import THE_ENGINE, Event, Reviewed, StatusChanged
from acefraud.core.ledger import Entry
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.engine.options import LearnerOptions
from acefraud.errors import StoreConflict, StoreError
from acefraud.learning.learner import Learner
from acefraud.learning.reviewer import ATTEMPTS
from acefraud.storage import open_playbook
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook

pytestmark = pytest.mark.one_search

# --- all or nothing ----------------------------------------------------------------------------------------------


class Fragile(MemoryLedger):
    """A ledger whose disk fills up."""

    broken = False

    def append(self, entry: Entry) -> list[Event]:
        if self.broken:
            raise StoreError("the disk is full")
        return super().append(entry)


def test_a_study_that_cannot_be_written_leaves_nothing(toy: Any) -> None:
    ledger = Fragile()
    learner = Learner(BulletPlaybook(ledger))
    learner.playbook.add_bullet("VPN: decline")
    before = learner.playbook.snapshot()
    ledger.broken = True
    with pytest.raises(StoreError, match="the disk is full"):
        learner.study(toy.cases(80))
    assert learner.playbook.snapshot() == before
    assert (ledger.last_seq(), cases_of(ledger)) == (1, [])
    ledger.broken = False
    assert learner.study(toy.cases(80))
    assert len(cases_of(ledger)) == 80


def test_a_study_that_fails_half_way_leaves_nothing(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = Learner(BulletPlaybook())

    def failing(*_: object) -> None:
        assert len(learner.playbook) > 0, "bullets are there within the step"
        raise ZeroDivisionError

    monkeypatch.setattr("acefraud.learning.review.recalibrate", failing)
    with pytest.raises(ZeroDivisionError):
        learner.study(toy.cases(80))
    assert len(learner.playbook) == 0
    assert (learner.playbook.ledger.last_seq(), cases_of(learner.playbook.ledger)) == (0, [])


def test_a_study_is_one_step_with_its_cases_and_its_bullets(toy: Any) -> None:
    learner = Learner(BulletPlaybook())
    added = learner.study(toy.cases(80), dataset="toy", mapping='label = "x"\n')
    events = list(learner.playbook.ledger.read())
    assert {event.at for event in events} == {events[0].at}
    assert events[0].payload.kind == "trained"
    assert (learner.playbook.snapshot().mapping, len(learner.remembered())) == ('label = "x"\n', 80)
    bullets = learner.playbook.snapshot().bullets
    assert set(added) <= set(bullets)
    assert {bullet.source for bullet in bullets.values()} == {Source.OFFLINE}


def test_too_few_cases_teach_no_bullet(toy: Any) -> None:
    learner = Learner(BulletPlaybook())
    assert learner.study(toy.cases(12)) == []
    assert len(learner.playbook) == 0


# --- demotion ----------------------------------------------------------------------------------------------------


def failed(status: Status = Status.ACTIVE) -> Learner:
    """A learner with a bullet that no longer holds: of the latest outcomes, 5 of 60 were fraud where it fired."""
    playbook = BulletPlaybook()
    evidence = Evidence(learnt=Record(support=50, frauds=47), base_rate=0.3, cases=100)
    playbook.add_bullet("VPN: decline", source="online", evidence=evidence, weight=2.0, status=status)
    learner = Learner(playbook, options=LearnerOptions(review_least=1_000, watch_every=120))
    for index in range(120):
        vpn = index % 2 == 0
        is_fraud = index < 10 if vpn else index % 3 == 0
        transaction = Transaction(id=f"t{index}", facts={"vpn": vpn})
        heard = asyncio.run(learner.hear(Outcome(transaction_id=f"t{index}", is_fraud=is_fraud), transaction))
        assert (heard.review is None) == (index < 119)
    return learner


def test_demotion_is_an_event_with_its_reason() -> None:
    learner = failed()
    (demoted,) = learner.playbook.snapshot().bullets.values()
    assert (demoted.status, demoted.status_by) == (Status.RETIRED, THE_ENGINE)
    last = learner.playbook.ledger.history(demoted.id)[-1].payload
    assert isinstance(last, StatusChanged)
    assert last.reason.startswith("of the latest 120 outcomes: 5 of 60 past cases were fraud")
    (event,) = [event.payload for event in learner.playbook.ledger.read() if isinstance(event.payload, Reviewed)]
    assert (event.whole, event.retired, event.cases) == (False, (demoted.id,), 120)


def test_a_pinned_bullet_is_exempt() -> None:
    learner = failed(Status.PINNED)
    assert [bullet.status for bullet in learner.playbook.snapshot().bullets.values()] == [Status.PINNED]


def test_a_pinned_bullet_survives_learning_that_retires_others(toy: Any) -> None:
    learner = Learner(BulletPlaybook())
    everywhere = "amount is known"  # it holds on every case, so nothing is left for it to explain
    pinned = learner.playbook.add_bullet("amount is known: decline", source="online", status=Status.PINNED)
    condition = Condition.parse(everywhere)
    other = learner.playbook.add_bullet("any amount", source="online", condition=condition, argues=Verdict.DECLINE)
    by_hand = learner.playbook.add_bullet("an amount: decline", condition=condition, argues=Verdict.DECLINE)
    unseen = learner.playbook.add_bullet("amount > 3 and amount < 4: decline", source="online")
    learner.study(toy.cases(80))
    bullets = learner.playbook.snapshot().bullets
    assert bullets[pinned].status is Status.PINNED
    assert bullets[other].status is Status.RETIRED
    assert bullets[by_hand].status is Status.ACTIVE, "what a person wrote is not retired by a fit"
    assert bullets[unseen].status is Status.ACTIVE, "what never fired has not been refuted"


@pytest.mark.parametrize("who", ["ana", THE_ENGINE])
def test_what_a_person_retired_is_not_revived_and_what_the_engine_retired_is(toy: Any, who: str) -> None:
    learner = Learner(BulletPlaybook())
    learner.study(toy.cases(80))
    strongest = max(learner.playbook.get_bullets_for_node("fraud_detection"), key=lambda one: abs(one.weight or 0))
    learner.playbook.set_status(strongest.id, Status.RETIRED, who=who, why="a test")
    again = Learner(learner.playbook)
    added = again.study(toy.cases(80))
    found = learner.playbook.get_bullet(strongest.id)
    assert found is not None
    assert strongest.id not in added, "it is no new one"
    assert found.status is (Status.RETIRED if who == "ana" else Status.ACTIVE)
    last = learner.playbook.ledger.history(strongest.id)[-1].payload
    assert isinstance(last, StatusChanged)
    assert (f"it had been retired by {THE_ENGINE}" in last.reason) == (who == THE_ENGINE)
    same = [
        bullet for bullet in learner.playbook.snapshot().bullets.values() if bullet.condition == strongest.condition
    ]
    assert len(same) == 1


# --- one file, two learners --------------------------------------------------------------------------------------


async def interleaved(first: Learner, second: Learner, cases: Sequence[Case]) -> None:
    for index, case in enumerate(cases):
        one, other = (first, second) if index % 2 else (second, first)
        await one.decide(case.transaction)
        truth = Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud)
        await other.hear(truth)
        await one.hear(truth)


def test_two_learners_on_one_file_lose_nothing(toy: Any, tmp_path: Path) -> None:
    path, cases = tmp_path / "book.db", toy.cases(60)
    with open_playbook(path) as one, open_playbook(path) as other:
        for content in ("amount > 2000 and VPN: decline", "VPN: decline", "amount < 1000: approve"):
            one.add_bullet(content, who="ana")
        asyncio.run(interleaved(Learner(one), Learner(other), cases))
        for playbook in (one, other):
            playbook.refresh()
            assert matches_replay(playbook)
        assert one.snapshot() == other.snapshot()
        for case in cases:
            events = one.ledger.transaction_events([case.transaction.id])[case.transaction.id]
            assert [len(events.decisions), len(events.outcomes)] == [1, 1]
        both, vpn, small = list(one.snapshot().bullets.values())[:3]
        facts = [case.transaction.facts for case in cases]
        assert both.record.support == sum(f["amount"] > 2000 and f["vpn"] is True for f in facts)
        assert vpn.record.support == sum(f["vpn"] is True for f in facts)
        assert vpn.record.frauds == sum(case.is_fraud for case in cases if case.transaction.facts["vpn"] is True)
        assert small.record.support == sum(f["amount"] < 1000 for f in facts)


def test_a_learner_that_was_overtaken_says_so_and_learns_at_the_next_review(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner(BulletPlaybook(), options=LearnerOptions(review_least=15))

    def overtaken(*_: object, **__: object) -> None:
        raise StoreConflict("somebody else was faster")

    cases = toy.cases(150)
    monkeypatch.setattr("acefraud.learning.reviewer.apply", overtaken)

    async def hear(part: Sequence[Case]) -> list[Reviewed]:
        heard = []
        for case in part:
            await learner.decide(case.transaction)
            heard.append(await learner.hear(Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud)))
        return [each.review for each in heard if each.review is not None]

    reviews = asyncio.run(hear(cases[:55]))
    assert {review.declined for review in reviews} == {f"given up after {ATTEMPTS} attempts: somebody else was faster"}
    assert [event.payload for event in learner.playbook.ledger.read() if isinstance(event.payload, Reviewed)] == reviews
    assert len(learner.playbook) == 0
    assert len(cases_of(learner.playbook.ledger)) == 55
    monkeypatch.undo()
    assert asyncio.run(hear(cases[55:]))[0].added
    assert len(learner.playbook) > 0
    assert matches_replay(learner.playbook)
