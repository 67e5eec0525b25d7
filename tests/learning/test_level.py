"""The level follows the share of fraud within some hundred outcomes, up and down; quiet streams leave it alone."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tests.learning.traffic import hear, traffic
from tests.storage.replaying import matches_replay

from acefraud.core.bullet import Bullet, Evidence, Record
from acefraud.core.calibration import Calibration, RecentLevel
from acefraud.core.decision import Decision, ReasonKind
from acefraud.core.events import LevelMoved, Recalibrated
from acefraud.core.outcome import Outcome
from acefraud.core.table import FactTable
from acefraud.core.transaction import Transaction, Verdict
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.learning.level import LEVEL_EVERY, LatestLogOdds, level_at, log_odds_in, recent_level
from acefraud.learning.review import demotion_of
from acefraud.learning.reviewer import Reviewer
from acefraud.roles.embedded.case_memory import CaseMemory, LabelledFacts
from acefraud.storage import open_playbook
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.playbook_text import Exported, from_json, to_json
from acefraud.support.arrays import BoolArray
from acefraud.support.timestamps import UNKNOWN

NODE = "fraud_detection"
START = datetime(2024, 3, 1, tzinfo=UTC)
MOVED = RecentLevel(shift=2.0, cases=100, frauds=38, expected=4.2)


def labels(*parts: tuple[int, float], seed: int = 0) -> BoolArray:
    """Outcomes in stretches of so many, with so large a share of fraud."""
    generator = np.random.default_rng(seed)
    return np.concatenate([generator.random(count) < share for count, share in parts])


def shift_after(truth: BoolArray, lag: int = 0) -> float:
    found = recent_level(np.full(len(truth), np.log(0.02 / 0.98)), truth, lag)
    return 0.0 if found is None else found.shift


def test_a_quiet_stream_hardly_moves_the_level() -> None:
    shifts = [abs(shift_after(labels((2000, 0.02), seed=seed))) for seed in range(20)]
    assert sum(shift > 0 for shift in shifts) <= 1, "seed 8 ends with hundreds of honest cases"
    assert max(shifts) < 1


@pytest.mark.parametrize("seed", range(5))
def test_it_follows_a_jump_within_a_hundred_outcomes_up_and_down(seed: int) -> None:
    to_forty_percent = np.log(0.4 / 0.6) - np.log(0.02 / 0.98)
    assert shift_after(labels((1500, 0.02), (100, 0.4), seed=seed)) == pytest.approx(to_forty_percent, abs=0.8)
    assert shift_after(labels((1000, 0.02), (400, 0.4), (100, 0.02), seed=seed)) == pytest.approx(0.0, abs=0.8)


def test_it_hardly_moves_if_stretches_end_before_their_labels_arrive() -> None:
    stretch = [np.repeat([True, False], [200, 800])] * 2
    truth = np.concatenate([*stretch, np.ones(100, dtype=np.bool_)])
    assert shift_after(truth, lag=20) > 4
    assert shift_after(truth, lag=200) < 3, "about the share of fraud in all stretches"


@pytest.mark.parametrize("steps", [[25] * 30, [7, 25, 25, 3, 60, 5, 5, 1, 40]])
def test_what_is_kept_between_two_estimates_is_what_computing_it_again_gives(steps: list[int]) -> None:
    playbook, memory, options = BulletPlaybook(), CaseMemory(500), LearnerOptions()
    for amount in range(0, 300, 50):
        playbook.add_bullet(f"Amount above {amount}: decline", weight=amount / 100)
    playbook.record([Recalibrated(node=NODE, calibration=Calibration(intercept=-3.0, knowledge_scale=0.0, cases=90))])
    latest, dice, count = LatestLogOdds(options), np.random.default_rng(0), 0
    for turn, step in enumerate(steps):
        ids = [f"t{count + each if turn % 4 else count - each}" for each in range(step)]  # some cases come again
        count += step
        facts = FactTable([{"amount": float(dice.integers(0, 400))} for _ in ids])
        truth = dice.random(step) < 0.2
        memory.add(LabelledFacts(np.array(ids, dtype=object), facts, truth, np.full(step, UNKNOWN)))
        if turn == 5:  # other weights, so other log-odds
            playbook.add_bullet("Amount above 333: approve", weight=-0.7)
        cases, snapshot = memory.cases, playbook.snapshot()
        for some in (cases.take(slice(max(0, len(cases) - 60), None)), cases):
            expected, again = latest.of(some, snapshot), log_odds_in(some, snapshot, options)
            assert expected is not None
            assert again is not None
            assert expected.tolist() == again.tolist()
            kept = latest.likelihoods(some.labels)
            assert recent_level(expected, some.labels, 5, likelihoods=kept) == recent_level(again, some.labels, 5)


def test_no_outcomes_move_nothing() -> None:
    assert recent_level(np.zeros(0), np.zeros(0, dtype=np.bool_)) is None


def test_the_level_at_the_time_of_each_outcome_is_told_by_those_on_both_sides() -> None:
    truth = labels((500, 0.02), (500, 0.4))
    level = level_at(np.full(1000, -3.9), truth)
    assert len(level) == 1000
    assert level[510:].min() > level[:490].max() + 1.5
    assert not level_at(np.full(1000, -3.9), labels((1000, 0.02))).any()


def book_with(recent: RecentLevel | None) -> BulletPlaybook:
    book = BulletPlaybook(clock=lambda: START)
    book.record([Recalibrated(node=NODE, calibration=Calibration(intercept=-3.0, knowledge_scale=0.0, cases=100))])
    if recent is not None:
        book.record([LevelMoved(node=NODE, recent=recent)])
    return book


def decided(book: BulletPlaybook) -> Decision:
    return asyncio.run(Learner(book).decide(Transaction(id="t", facts={"amount": 20.0})))


def test_a_moved_level_is_a_reason_in_plain_words() -> None:
    before, after = decided(book_with(None)), decided(book_with(MOVED))
    assert before.reasons == ()
    (reason,) = after.reasons
    assert (reason.kind, reason.contribution) == (ReasonKind.RECENT, 2.0)
    assert reason.text == "fraud is more common lately: 38 of the latest 100 outcomes, where 4 would be usual"
    assert after.base == before.base == -3.0
    assert after.probability > before.probability


def test_scores_in_columns_move_with_the_level() -> None:
    book = book_with(MOVED)
    scores = Learner(book).score_all([Transaction(id="t", facts={"amount": 20.0})])
    assert scores.probabilities[0] == pytest.approx(decided(book).probability)


def test_the_next_calibration_starts_without_it() -> None:
    book = book_with(MOVED)
    assert book.snapshot().calibrations[NODE].level == -1.0
    book.record([Recalibrated(node=NODE, calibration=Calibration(intercept=-1.0))])
    assert book.snapshot().calibrations[NODE].recent is None


def test_a_level_without_a_calibration_is_nothing() -> None:
    book = BulletPlaybook()
    book.record([LevelMoved(node=NODE, recent=MOVED)])
    assert book.snapshot().calibration(NODE) is None


def test_an_export_leaves_the_recent_level_behind() -> None:
    text = to_json(Exported.of(book_with(MOVED).snapshot()))
    assert "recent" not in text
    assert from_json(text, file="x").calibrations[NODE].recent is None


def attacked(book: BulletPlaybook) -> Learner:
    """A learner that learnt from quiet traffic and then hears of an attack on every kind of case."""
    learner = Learner(book)
    quiet = traffic(600, 101, share=0.05)
    hear(learner, quiet)
    some = [Transaction(id=f"new-{row.id}", time=row.time, facts=row.facts) for row in quiet.rows[:200]]
    for start in range(0, len(some), 50):
        batch = some[start : start + 50]
        asyncio.run(learner.decide_all(batch))
        asyncio.run(learner.hear_all([Outcome(transaction_id=each.id, is_fraud=True) for each in batch]))
    return learner


@pytest.mark.filterwarnings("ignore::acefraud.errors.InputWarning")
def test_decisions_during_an_attack_can_be_replayed_from_the_file(tmp_path: Path) -> None:
    with open_playbook(tmp_path / "book.db") as book:
        learner = attacked(book)
        decision = asyncio.run(learner.decide(Transaction(id="next", facts={"amount": 20.0})))
        assert any(reason.kind is ReasonKind.RECENT for reason in decision.reasons)
        assert matches_replay(book)
    with open_playbook(tmp_path / "book.db") as again:
        assert again.snapshot().calibrations[NODE].recent is not None
        assert decision.same_as(asyncio.run(Learner(again).replay(decision)))


def test_the_same_stream_moves_the_level_in_the_same_way() -> None:
    events = []
    for _ in range(2):
        book = BulletPlaybook(clock=lambda: START)
        attacked(book)
        events.append(list(book.ledger.read()))
    assert events[0] == events[1]
    assert any(event.payload.kind == "level_moved" for event in events[0])


def reported(book: BulletPlaybook, count: int) -> Learner:
    """A learner that learnt from quiet traffic, and received so many outcomes of an attack."""
    learner, quiet = Learner(book), traffic(600, 101, share=0.05)
    hear(learner, quiet)
    some = [Transaction(id=f"new-{row.id}", time=row.time, facts=row.facts) for row in quiet.rows[:count]]
    learner.decide_all_sync(some)
    learner.receive([Outcome(transaction_id=each.id, is_fraud=True) for each in some], who="the bank")
    return learner


def test_a_killed_process_does_not_lose_a_step_of_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, book = (BulletPlaybook(clock=lambda: START) for _ in range(2))
    reported(whole, LEVEL_EVERY).take_in_sync()
    killed = reported(book, LEVEL_EVERY)

    def die(one: Reviewer) -> None:
        if one.playbook.outcomes > 600:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Reviewer, "_follow_level", die)
        with pytest.raises(KeyboardInterrupt):
            killed.take_in_sync()
    assert book.outcomes == whole.outcomes == 625
    assert book.snapshot().calibrations[NODE].recent is None
    for _ in range(3):
        assert Learner(book).take_in_sync().count == 0
    assert book.snapshot().calibrations[NODE].recent == whole.snapshot().calibrations[NODE].recent is not None
    assert len([event for event in book.ledger.read() if event.payload.kind == "level_moved"]) == 1


def test_a_process_that_goes_on_estimates_the_level_once_at_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, steps = reported(BulletPlaybook(clock=lambda: START), 2 * LEVEL_EVERY), list[int]()
    monkeypatch.setattr(Reviewer, "_follow_level", lambda one: steps.append(one.playbook.outcomes))
    while learner.take_in_sync(LEVEL_EVERY).count:
        pass
    assert steps == [600, 625, 650]


def test_a_bullet_is_not_blamed_for_a_fraud_rate_that_changed_everywhere() -> None:
    declines = Bullet(
        id="b",
        content="x",
        argues=Verdict.DECLINE,
        evidence=Evidence(learnt=Record(support=100, frauds=80), base_rate=0.4, cases=1000),
    )
    approves = Bullet(
        id="b",
        content="x",
        argues=Verdict.APPROVE,
        evidence=Evidence(learnt=Record(support=500, frauds=2), base_rate=0.02, cases=1000),
    )
    assert demotion_of(declines, 0.02, Record(support=200, frauds=15), 2000) is None
    assert demotion_of(declines, 0.4, Record(support=200, frauds=15), 2000) is not None
    assert demotion_of(approves, 0.4, Record(support=1000, frauds=100), 2000) is None
    assert demotion_of(approves, 0.06, Record(support=1000, frauds=100), 2000) is not None
