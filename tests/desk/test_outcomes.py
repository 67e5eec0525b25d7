"""Outcomes as a real desk sends them: frauds only, late, many at once. Nothing declines everybody without a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from tests.learning.traffic import Traffic, traffic
from tests.storage.replaying import matches_replay

from acefraud.core.calibration import Calibration
from acefraud.core.events import LevelMoved, OutcomeHeard, Recalibrated, SilenceMatured
from acefraud.core.outcome import FeedKind, Outcome
from acefraud.core.transaction import Case, Transaction, Verdict
from acefraud.errors import InputError, InputWarning
from acefraud.learning.hearing import Heard
from acefraud.learning.learner import Learner
from acefraud.learning.reviewer import Depth
from acefraud.storage.change_log import playbook_changes
from acefraud.storage.playbook import BulletPlaybook

pytestmark = pytest.mark.wide

NODE = "fraud_detection"
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Desk:
    """A trained playbook with a clock of its own, and the transactions it has decided."""

    learner: Learner
    today: Traffic
    now: datetime = START
    declined: int = 0

    @classmethod
    def opened(cls, seed: int = 3, count: int = 1_200) -> Desk:
        """A playbook trained on 3,000 cases that has decided as many as asked for."""
        desk = cls.__new__(cls)
        desk.now = START
        playbook = BulletPlaybook(clock=lambda: desk.now)
        desk.learner = Learner(playbook)
        past = traffic(3_000, seed, share=0.03)
        cases = [Case(transaction=row, is_fraud=bool(label)) for row, label in zip(past.rows, past.labels, strict=True)]
        desk.learner.study(cases, threshold="fpr=0.02")
        desk.today = traffic(count, seed + 100, share=0.03)
        decisions = desk.learner.decide_all_sync(desk.today.rows)
        desk.declined = sum(decision.verdict is Verdict.DECLINE for decision in decisions)
        return desk

    @property
    def playbook(self) -> BulletPlaybook:
        return self.learner.playbook

    @property
    def declines(self) -> float:
        """The share of today's transactions that would be declined now."""
        decided = self.learner.score_sync(list(self.today.rows))
        return sum(each.verdict is Verdict.DECLINE for each in decided) / len(decided)

    @property
    def frauds(self) -> list[str]:
        """The ids of today's frauds, then of the others."""
        ids, labels = self.today.rows.ids, self.today.labels
        return [*ids[labels].tolist(), *ids[~labels].tolist()]

    def chargebacks(self, ids: Sequence[str], batch: int = 50) -> list[Heard]:
        """Report frauds, as a file of chargebacks does."""
        outcomes = [Outcome(transaction_id=id_, is_fraud=True, source="chargeback") for id_ in ids]
        heard: list[Heard] = []
        for start in range(0, len(outcomes), batch):
            heard += self.learner.hear_all_sync(outcomes[start : start + batch])
        return heard


def announced(heard: Sequence[Heard]) -> str:
    return "; ".join(words for each in heard for words in each.announced)


@pytest.mark.parametrize("count", [1, 29, 300])
def test_a_file_of_chargebacks_does_not_make_the_playbook_decline_everybody(count: int) -> None:
    desk = Desk.opened()
    before = desk.declines
    heard = desk.chargebacks(desk.frauds[:count])
    assert 0.01 < before < 0.2
    assert desk.declines == pytest.approx(before, rel=0.2)
    assert len(heard) == count
    if count >= 29:
        assert desk.playbook.feed().kind is FeedKind.FRAUD_ONLY
        assert "only frauds are reported (recognised)" in announced(heard)
        assert "only frauds are reported" in playbook_changes(desk.playbook.ledger, limit=1)[0].words


def test_mixed_outcomes_of_few_decisions_do_not_move_the_level() -> None:
    desk = Desk.opened()
    before = desk.declines
    frauds = int(desk.today.labels.sum())
    mixed = [*desk.frauds[:frauds], *desk.frauds[frauds::8]]
    truth = dict(zip(desk.today.rows.ids.tolist(), desk.today.labels.tolist(), strict=True))
    outcomes = [Outcome(transaction_id=each, is_fraud=truth[each], source="analyst") for each in mixed]
    desk.learner.hear_all_sync(outcomes)
    calibration = desk.playbook.snapshot().calibration(NODE)
    assert calibration is not None
    assert calibration.recent is None or calibration.recent.among == "review"
    assert desk.declines == pytest.approx(before, rel=0.25)


def test_a_complete_feed_is_recognised_and_its_level_moves_and_is_announced() -> None:
    desk = Desk.opened(count=400)
    rows = list(desk.today.rows)
    labels = desk.today.labels.tolist()
    heard: list[Heard] = []
    for start in range(0, 400, 50):
        some = slice(start, start + 50)
        pairs = zip(rows[some], labels[some], strict=True)
        heard += desk.learner.hear_all_sync([Outcome(transaction_id=row.id, is_fraud=truth) for row, truth in pairs])
    assert desk.playbook.feed().is_complete
    attack = [Transaction(id=f"attack-{row.id}", facts=row.facts) for row in rows[:200]]
    for start in range(0, 200, 50):
        batch = attack[start : start + 50]
        desk.learner.decide_all_sync(batch)
        heard += desk.learner.hear_all_sync([Outcome(transaction_id=each.id, is_fraud=True) for each in batch])
    assert "level of fraud moved to +" in announced(heard)
    moves = [event.payload for event in desk.playbook.ledger.find_events({"level_moved"}, limit=10)]
    assert all(isinstance(move, LevelMoved) and move.declines is not None for move in moves)
    assert "level of fraud moved" in "; ".join(
        change.words for change in playbook_changes(desk.playbook.ledger, limit=20)
    )


def test_silence_counts_as_legitimate_only_if_it_is_declared() -> None:
    desk = Desk.opened()
    desk.now += timedelta(days=400)
    assert desk.learner.hear_silence_sync().decisions == 0
    desk.playbook.set_feed("fraud_only", silence_days=60, who="ana")
    assert desk.learner.hear_silence_sync(START + timedelta(days=59)).decisions == 0
    silent = desk.learner.hear_silence_sync()
    assert silent.decisions == len(desk.today) - desk.declined, "nobody can report what was declined"
    assert f"{silent.decisions:,} decisions made until" in silent.announced[0]


def test_silence_says_nothing_of_a_decision_that_was_reported_with_nearly_its_id() -> None:
    desk = Desk.opened(count=300)
    desk.playbook.set_feed("fraud_only", silence_days=60, declines_pass=True)
    fraud = desk.frauds[0]
    with pytest.warns(InputWarning, match=f"but on '{fraud}'"):
        desk.chargebacks([f"{fraud}.0"])
    desk.now += timedelta(days=61)
    assert desk.learner.hear_silence_sync().decisions == 299
    desk.chargebacks([fraud])
    assert desk.playbook.ledger.known_cases([fraud])[fraud].case.is_fraud
    assert matches_replay(desk.playbook)


def test_blanks_around_ids_do_not_matter() -> None:
    desk = Desk.opened(count=300)
    (heard,) = desk.learner.hear_all_sync([Outcome(transaction_id=f" {desk.frauds[0]} ", is_fraud=True)])
    assert not heard.is_waiting


def test_an_outcome_of_the_future_is_pointed_out() -> None:
    desk = Desk.opened(count=300)
    with pytest.warns(InputWarning, match="the time 2099-01-01 00:00 of the outcome is still to come"):
        desk.learner.hear_sync(Outcome(transaction_id=desk.frauds[0], is_fraud=True, at="2099-01-01T00:00Z"))


def test_silence_goes_with_frauds_only() -> None:
    playbook = BulletPlaybook()
    for kind in ("complete", "reviewed_only"):
        with pytest.raises(InputError, match="silence counts only where frauds alone are reported"):
            playbook.set_feed(kind, silence_days=30)
    assert "nothing is learnt from reports" in playbook.set_feed("fraud_only").words
    assert playbook.set_feed(silence_days=30).silence_days == 30
    assert playbook.set_feed("complete").silence_days is None


def test_a_report_counts_with_the_silence_around_it_and_once() -> None:
    desk = Desk.opened(count=300)
    desk.playbook.set_feed("fraud_only", silence_days=60, declines_pass=True)
    remembered = len(desk.learner.remembered())
    reported = desk.frauds[: int(desk.today.labels.sum())]
    desk.chargebacks(reported)
    events = desk.playbook.ledger.find_events({"outcome_heard"}, limit=1_000)
    assert all(isinstance(event.payload, OutcomeHeard) and event.payload.deferred for event in events)
    assert len(desk.learner.remembered()) == remembered
    desk.now += timedelta(days=61)
    desk.learner.hear_silence_sync()
    (matured,) = (event.payload for event in desk.playbook.ledger.find_events({"silence_matured"}, limit=10))
    assert isinstance(matured, SilenceMatured)
    assert (matured.silent + matured.frauds, matured.frauds) == (300, len(reported))
    assert len(desk.learner.remembered()) == remembered + 300
    assert desk.learner.hear_silence_sync(desk.now + timedelta(days=300)).decisions == 0
    assert matches_replay(desk.playbook)


def test_counters_after_silence_equal_those_of_a_complete_feed() -> None:
    complete, reported = Desk.opened(count=300), Desk.opened(count=300)
    labels = zip(complete.today.rows.ids.tolist(), complete.today.labels.tolist(), strict=True)
    outcomes = [Outcome(transaction_id=each, is_fraud=truth) for each, truth in labels]
    complete.playbook.set_feed("complete")
    reported.playbook.set_feed("fraud_only", silence_days=30, declines_pass=True)
    complete.learner.hear_all_sync(outcomes)
    reported.learner.hear_all_sync([outcome for outcome in outcomes if outcome.is_fraud])
    reported.now += timedelta(days=31)
    reported.learner.hear_silence_sync()

    def counters(desk: Desk) -> dict[str, tuple[int, ...]]:
        bullets = desk.playbook.snapshot().table.bullets
        first = {bullet.id for bullet in desk.playbook.snapshot_at(_trained(desk)).table.bullets}
        return {
            bullet.id: (
                bullet.helpful_count,
                bullet.harmful_count,
                bullet.times_selected,
                bullet.record.support,
                bullet.record.frauds,
            )
            for bullet in bullets
            if bullet.id in first
        }

    assert counters(complete) == counters(reported)


def _trained(desk: Desk) -> int:
    return max(
        event.seq for event in desk.playbook.ledger.read(decisions=False) if isinstance(event.payload, Recalibrated)
    )


def test_a_late_report_revises_what_was_taken_for_legitimate() -> None:
    on_time, late = Desk.opened(count=200), Desk.opened(count=200)
    fraud = on_time.frauds[0]
    for desk in (on_time, late):
        desk.playbook.set_feed("fraud_only", silence_days=30, declines_pass=True)
    on_time.chargebacks([fraud])
    for desk in (on_time, late):
        desk.now += timedelta(days=31)
        desk.learner.hear_silence_sync()
    late.chargebacks([fraud])
    records = [
        [
            (bullet.helpful_count, bullet.harmful_count, bullet.record)
            for bullet in desk.playbook.snapshot().table.bullets
        ]
        for desk in (on_time, late)
    ]
    assert records[0] == records[1]
    cases = late.learner.remembered()
    assert bool(cases.labels[cases.ids.tolist().index(fraud)])
    assert matches_replay(late.playbook)


def test_a_million_decisions_add_no_million_events() -> None:
    desk = Desk.opened(count=1_200)
    desk.playbook.set_feed("fraud_only", silence_days=60, declines_pass=True)
    before = desk.playbook.seq
    desk.now += timedelta(days=61)
    desk.learner.hear_silence_sync()
    reviews = len(desk.playbook.ledger.find_events({"reviewed"}, limit=100))
    matured = desk.playbook.ledger.find_events({"silence_matured"}, limit=100)
    assert len(matured) == 1
    assert reviews <= 2
    assert desk.playbook.seq - before < 400


def attacked() -> tuple[Desk, Calibration]:
    """A desk where suddenly one transaction in six is reported as fraud, and its calibration once a step is held."""
    desk = Desk.opened(count=1_000)
    desk.playbook.set_feed("fraud_only", silence_days=10, declines_pass=True)
    for day in range(1, 30):
        desk.now = START + timedelta(days=day)
        some = traffic(60, 1_000 + day)
        desk.learner.decide_all_sync(some.rows)
        desk.chargebacks(some.rows.ids.tolist()[::6])
        calibration = desk.playbook.snapshot().calibration(NODE)
        if calibration is not None and calibration.held is not None:
            return desk, calibration
    raise AssertionError("no step was held")


def test_a_step_that_would_change_many_verdicts_is_held_until_a_person_agrees() -> None:
    desk, calibration = attacked()
    assert calibration.recent is None
    before = desk.declines
    desk.playbook.settle_level(accept=True, who="ana", why="it is real")
    assert desk.declines > 1.2 * before
    change = playbook_changes(desk.playbook.ledger, limit=1)[0]
    assert (change.who, change.why) == ("ana", "it is real")
    assert "level of fraud moved to +" in change.words
    desk.playbook.settle_level(accept=False, who="ana")
    assert desk.declines == pytest.approx(before)
    with pytest.raises(InputError, match="no step of the level is held"):
        desk.playbook.settle_level(accept=True, who="ana")


def test_a_review_leaves_the_level_where_outcomes_have_it() -> None:
    desk, _ = attacked()
    desk.playbook.settle_level(accept=True, who="ana", why="it is real")
    agreed = desk.declines
    desk.learner.review()
    calibration = desk.playbook.snapshot().calibration(NODE)
    assert calibration is not None
    assert calibration.recent is not None
    assert abs(desk.declines - agreed) <= 0.2 * agreed + 0.001


def test_a_look_at_recent_records_leaves_the_level_alone() -> None:
    desk, _ = attacked()
    desk.playbook.settle_level(accept=True, who="ana", why="it is real")
    before = desk.playbook.snapshot().calibration(NODE)
    reviewer = desk.learner._reviewer
    reviewer.review(Depth.PART, forced=True)
    assert desk.playbook.snapshot().calibration(NODE) == before


def test_frauds_that_are_reported_first_do_not_make_a_complete_feed_one_of_frauds_for_long() -> None:
    desk = Desk.opened(count=200)
    count = int(desk.today.labels.sum())
    desk.chargebacks(desk.frauds[:count], batch=1)
    assert desk.playbook.feed(NODE).kind is FeedKind.FRAUD_ONLY
    honest = [Outcome(transaction_id=fraud, is_fraud=False) for fraud in desk.frauds[count:]]
    for start in range(0, len(honest), 10):
        desk.learner.hear_all_sync(honest[start : start + 10])
    assert desk.playbook.feed(NODE).kind is FeedKind.COMPLETE
    assert len(desk.playbook.ledger.known_cases([each.transaction_id for each in honest])) > 0.9 * len(honest)


def test_the_level_can_be_switched_off() -> None:
    desk = Desk.opened(count=200)
    desk.playbook.set_feed("complete", follow_level=False, who="ana")
    rows = [Transaction(id=f"new-{row.id}", facts=row.facts) for row in desk.today.rows]
    for start in range(0, 200, 50):
        batch = rows[start : start + 50]
        desk.learner.decide_all_sync(batch)
        desk.learner.hear_all_sync([Outcome(transaction_id=each.id, is_fraud=True) for each in batch])
    calibration = desk.playbook.snapshot().calibration(NODE)
    assert calibration is not None
    assert calibration.recent is None


def test_bullets_that_decline_all_they_fire_on_are_not_retired_as_silent() -> None:
    desk = Desk.opened(count=1_200)
    in_use = {bullet.id for bullet in desk.playbook.snapshot().for_node(NODE)}
    desk.playbook.set_feed("fraud_only", silence_days=30)
    desk.now += timedelta(days=31)
    desk.learner.hear_silence_sync()
    desk.learner.review()
    retired = [
        event.payload
        for event in desk.playbook.ledger.find_events({"status_changed"}, limit=1_000)
        if "would be usual" in getattr(event.payload, "reason", "") and event.payload.subject in in_use
    ]
    assert not retired
