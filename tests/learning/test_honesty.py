"""Nothing is seen before its time, nothing is retired without a reason, and nothing stated passes for measured."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.storage.replaying import matches_replay

from acefraud import BulletPlaybook, Case, Learner, Outcome, Status, TrainingPipeline, load_dataset, open_playbook
from acefraud.core.decision import DecisionRecord
from acefraud.core.events import BulletAdded, DecisionMade, Recalibrated, Reviewed
from acefraud.core.table import FactTable
from acefraud.datasets.world import WorldOptions
from acefraud.facts.extraction import facts_of
from acefraud.learning import review as apply_review
from acefraud.learning.pipeline import Mode, known_by
from acefraud.roles.embedded.embedder import embedder_named
from acefraud.rules.bullet_text import read_bullet
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.playbook_text import Exported, from_json, to_json

WORLD = load_dataset("complex_fraud_detection", seed=5, options=WorldOptions(transactions=500))


def run(work: Any) -> Any:
    return asyncio.run(work)


async def hear_all(learner: Learner, cases: Sequence[Case]) -> None:
    for case in cases:
        await learner.decide(case.transaction)
        await learner.hear(Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud))


@pytest.fixture(scope="module")
def studied_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studied") / "book.db"
    with open_playbook(path) as book:
        Learner(book).study(WORLD.train)
    return path


@pytest.fixture
def studied(studied_once: Path, tmp_path: Path) -> Iterator[BulletPlaybook]:
    """A playbook that was trained on the world."""
    with open_playbook(shutil.copy(studied_once, tmp_path / "studied.db")) as book:
        yield book


def test_training_labels_that_had_not_arrived_are_waited_for() -> None:
    known, late = known_by(WORLD.train, WORLD.test)
    start = WORLD.test[0].transaction.time
    assert start is not None
    assert late, "some labels of the training part arrive during the test"
    assert len(known) + len(late) == len(WORLD.train)
    assert all(case.known_at is None or case.known_at <= start for case in known)


@pytest.mark.one_search
def test_no_decision_depends_on_a_training_label_that_arrives_after_it() -> None:
    test = WORLD.test[:75]
    _, late = known_by(WORLD.train, test)
    last = max(late, key=lambda case: case.known_at or test[0].known_at)  # type: ignore[arg-type, return-value]
    flipped = tuple(
        case.model_copy(update={"is_fraud": not case.is_fraud}) if case == last else case for case in WORLD.train
    )
    first, second = (run(TrainingPipeline().run(Mode.OFFLINE_ONLINE, train, test)) for train in (WORLD.train, flipped))
    before = [c.transaction.time < last.known_at for c in test]  # type: ignore[operator]
    assert sum(before) > 0
    assert first.probabilities[before].tolist() == second.probabilities[before].tolist()


@pytest.mark.one_search
def test_an_imported_playbook_keeps_its_bullets_while_there_are_few_cases_to_fit_them_on(
    studied: BulletPlaybook,
) -> None:
    exported = from_json(to_json(Exported.of(studied.snapshot())), file="x")
    copy = BulletPlaybook()
    copy.record([BulletAdded(bullet=bullet) for bullet in exported.bullets])
    copy.record([Recalibrated(node=node, calibration=frame) for node, frame in exported.calibrations.items()])
    before = {bullet.id for bullet in copy.get_bullets_for_node("fraud_detection")}
    run(hear_all(Learner(copy), WORLD.test[:60]))
    kept = {bullet.id for bullet in copy.get_bullets_for_node("fraud_detection")} & before
    assert len(kept) >= 0.8 * len(before)


def test_what_an_analyst_wrote_stays_though_it_never_fired(studied: BulletPlaybook) -> None:
    mine = studied.add_bullet("Amount above 90,000 and an emulator: decline", who="ana")
    run(hear_all(Learner(studied), WORLD.test[:60]))
    bullet = studied.get_bullet(mine)
    assert bullet is not None
    assert bullet.status is Status.ACTIVE


@pytest.fixture
def shared(studied_once: Path, tmp_path: Path) -> Iterator[tuple[BulletPlaybook, BulletPlaybook]]:
    path = shutil.copy(studied_once, tmp_path / "book.db")
    with open_playbook(path) as one, open_playbook(path) as other:
        yield one, other


def test_learning_goes_on_while_somebody_else_decides(
    shared: tuple[BulletPlaybook, BulletPlaybook], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = shared
    learner, decider = Learner(mine), Learner(theirs)
    waiting = list(WORLD.test)

    def interrupted(*given: Any, **more: Any) -> Reviewed:
        """In the middle of a step, the other side records a decision."""
        decision = decide(decider.decide_on(waiting.pop().transaction, theirs.snapshot()))
        theirs.record([DecisionMade(DecisionRecord.whole(decision))])
        return apply_review.apply(*given, **more)

    monkeypatch.setattr("acefraud.learning.reviewer.apply", interrupted)
    run(hear_all(learner, WORLD.test[:100]))
    times = len(WORLD.test) - len(waiting)
    assert times > 0
    done = [event.payload for event in mine.ledger.read() if isinstance(event.payload, Reviewed)]
    assert len(done) == times, "every step that was interrupted, once"
    assert not any(each.declined for each in done)
    assert matches_replay(mine)


def decide(work: Any) -> Any:
    """Run a coroutine that never waits, from inside another."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waited")


def test_another_embedder_makes_another_decision_and_the_recorded_one_is_returned(studied: BulletPlaybook) -> None:
    learner = Learner(studied)
    other = Learner(studied, selector=HybridSelector(embedding_model=embedder_named("hashing")))
    transaction = WORLD.test[0].transaction
    first, second = run(learner.decide(transaction)), run(other.decide(transaction))
    assert first.id != second.id
    assert run(learner.decide(transaction)) == first
    assert first.same_as(studied.ledger.decisions([first.id])[first.id])


def test_how_often_is_reflected_does_not_depend_on_restarts() -> None:
    counts = []
    for restarts in (False, True):
        playbook = BulletPlaybook()
        learner = Learner(playbook)
        for case in WORLD.train[:150]:
            if restarts:
                learner = Learner(playbook)
            run(hear_all(learner, (case,)))
        counts.append([event.payload.kind for event in playbook.ledger.read()].count("recalibrated"))
    # candidate thresholds are chosen anew on a restart, so the lessons differ a little; their number must not collapse
    assert min(counts) >= 0.6 * max(counts) > 0


def test_a_claim_stays_a_claim_beside_the_measurement(studied: BulletPlaybook) -> None:
    words = "VPN and a new device = 99% fraud"
    condition = read_bullet(words).condition
    assert condition is not None
    mine = studied.add_bullet(words, evidence=Learner(studied).measure(condition))
    bullet = studied.get_bullet(mine)
    assert bullet is not None
    assert bullet.claim is not None
    assert "its figure is a claim; measured: " in bullet.shown
    learnt = [b for b in studied.get_bullets_for_node("fraud_detection") if b.id != mine]
    assert learnt
    assert not any(b.claim for b in learnt), "what the engine measured is no claim"


@pytest.mark.long
def test_the_intervals_that_bullets_show_hold_in_a_fresh_world() -> None:
    options = WorldOptions(transactions=1500, drift=0.0)
    worlds = [load_dataset("complex_fraud_detection", seed=seed, options=options) for seed in (61, 62, 63)]
    playbook = BulletPlaybook()
    Learner(playbook).study(worlds[0].train)
    fresh = [case for world in worlds[1:] for case in (*world.train, *world.test)]
    table = FactTable([facts_of(case.transaction).facts for case in fresh])
    inside = []
    for bullet in playbook.get_bullets_for_node("fraud_detection"):
        assert bullet.evidence is not None
        assert bullet.condition is not None
        if bullet.evidence.shown is bullet.evidence.later:
            held = bullet.condition.holds_in(table)
            share = sum(case.is_fraud for case, holds in zip(fresh, held, strict=True) if holds) / held.sum()
            low, high = bullet.evidence.shown.interval
            inside.append(low <= share <= high)
    assert len(inside) >= 10
    assert sum(inside) / len(inside) >= 0.85, "95 % nominal, some slack for chance and for the fresh share's own error"
