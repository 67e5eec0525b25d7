"""Going back to an earlier revision: decisions are as they were then, and what outcomes made stays."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.effort import rounds

from acefraud import (
    BulletPlaybook,
    Case,
    Learner,
    LearnerOptions,
    Outcome,
    Policy,
    SchemaMapping,
    Status,
    Transaction,
    Transactions,
    Verdict,
    open_playbook,
)
from acefraud.core.bullet import Snooze
from acefraud.core.calibration import OddsScale, RecentLevel
from acefraud.core.context_facts import ListItem
from acefraud.core.events import LevelMoved, OddsScaled, Recalibrated, StatusChanged
from acefraud.core.playbook import Snapshot
from acefraud.core.review_rule import ReviewRule
from acefraud.engine.decider import decide_embedded
from acefraud.engine.score import score
from acefraud.errors import InputError
from acefraud.facts.extraction import facts_of
from acefraud.rules.scorecard import GENERAL
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage.changes import plan_rollback

pytestmark = pytest.mark.one_search
NODE = "fraud_detection"
LATER = datetime(2999, 1, 1, tzinfo=UTC)
STAYS = {"helpful_count", "harmful_count", "times_selected", "record", "snoozes", "status_by"}
"""What going back leaves alone."""
Edit = Callable[[BulletPlaybook, random.Random], None]


def transaction(dice: random.Random, name: str) -> Transaction:
    facts = {"amount": float(dice.randrange(1, 4000)), "vpn": dice.random() < 0.4, "emulator": dice.random() < 0.2}
    return Transaction.model_validate({"id": name, "facts": facts})


def history(count: int, seed: int = 3) -> list[Case]:
    dice, cases = random.Random(seed), []
    for number in range(count):
        one = transaction(dice, f"h{seed}-{number}")
        likely = one.facts["vpn"] is True and float(one.facts["amount"]) > 2000
        cases.append(Case(transaction=one, is_fraud=dice.random() < (0.85 if likely else 0.05)))
    return cases


PROBES = [case.transaction for case in history(150, seed=9)]


def assert_decides_alike(now: Snapshot, then: Snapshot) -> None:
    """Every score with every bullet is the same to the last bit, and so is every verdict."""
    one, other = (score(Transactions.of(PROBES), each, None, LearnerOptions()) for each in (now, then))
    assert one.log_odds.tobytes() == other.log_odds.tobytes()
    assert one.cited.tolist() == other.cited.tolist()
    known, every = [facts_of(each) for each in PROBES], LearnerOptions(n_bullets=1_000)
    selector = HybridSelector(quality_threshold=0.0, explore=False)
    mine, theirs = (decide_embedded(PROBES, known, each, selector, every) for each in (now, then))
    assert mine.verdicts == theirs.verdicts
    assert [each and each.id for each in mine.policies] == [each and each.id for each in theirs.policies]


def assert_as_then(now: Snapshot, then: Snapshot) -> None:
    """All that goes back is as it was, and what was added since is retired."""
    for bullet in now.bullets.values():
        if bullet.id not in then.bullets:
            assert bullet.status is Status.RETIRED
        else:
            assert bullet.model_dump(exclude=STAYS) == then.bullets[bullet.id].model_dump(exclude=STAYS)
    assert now.calibrations == then.calibrations
    assert now.reviews == then.reviews
    assert now.scales == then.scales
    assert now.mapping == then.mapping


def some_bullet(playbook: BulletPlaybook, dice: random.Random) -> str:
    return dice.choice([bullet.id for bullet in playbook])


def add(playbook: BulletPlaybook, dice: random.Random) -> None:
    policy = Policy(verdict=dice.choice(list(Verdict))) if dice.random() < 0.3 else None
    weight = dice.uniform(-2, 2) if dice.random() < 0.3 else None
    playbook.add_bullet(f"amount above {dice.randrange(4000)}", policy=policy, weight=weight, who="ana")


def edit(playbook: BulletPlaybook, dice: random.Random) -> None:
    text = dice.choice(["amount above {}: decline", "amount below {}: approve", "ask about {}: 95% fraud"])
    content = text.format(dice.randrange(4000))
    playbook.edit_bullet(some_bullet(playbook, dice), content, problem_types=["mules"], who="ana")


def move(playbook: BulletPlaybook, dice: random.Random) -> None:
    playbook.set_status(some_bullet(playbook, dice), dice.choice(list(Status)), who=dice.choice(["ana", "bob"]))


def set_threshold(playbook: BulletPlaybook, dice: random.Random) -> None:
    if NODE not in playbook.snapshot().calibrations:  # gone back to before the training
        fit(playbook, dice)
    low = dice.uniform(0.1, 0.4)
    review = ReviewRule(between=(low, 0.9)) if dice.random() < 0.5 else None
    playbook.set_threshold(dice.uniform(0.5, 0.8), review, no_review=review is None, who="ana")


def fit(playbook: BulletPlaybook, dice: random.Random) -> None:
    calibration = (
        playbook.snapshot().calibrations.get(NODE, GENERAL).model_copy(update={"intercept": dice.uniform(-3, 0)})
    )
    weights = {bullet.id: dice.uniform(-2, 2) for bullet in playbook if dice.random() < 0.5}
    playbook.record([Recalibrated(node=NODE, calibration=calibration, weights=weights)])


def scale(playbook: BulletPlaybook, dice: random.Random) -> None:
    odds = OddsScale(level=dice.uniform(-1, 1), slope=1.0, cases=10)
    playbook.record([OddsScaled(node=NODE, model=dice.choice(["a", "b"]), scale=odds)])


def move_level(playbook: BulletPlaybook, dice: random.Random) -> None:
    recent = RecentLevel(shift=dice.uniform(-2, 2), cases=100, frauds=9, expected=3.0)
    playbook.record([LevelMoved(node=NODE, recent=recent)])


def go_back(playbook: BulletPlaybook, dice: random.Random) -> None:
    playbook.rollback(dice.randrange(playbook.seq), who="bob")


EDITS: list[Edit] = [add, add, edit, edit, move, move, set_threshold, fit, scale, move_level, go_back]


@pytest.mark.parametrize("seed", range(rounds(24)))
def test_after_any_edits_the_playbook_decides_as_it_did_at_any_revision(seed: int) -> None:
    dice, playbook = random.Random(seed), BulletPlaybook()
    Learner(playbook).study(history(80, seed))
    add(playbook, dice)
    first = playbook.snapshot().revision
    for _ in range(30):
        dice.choice(EDITS)(playbook, dice)
    for _ in range(3):
        revision, before = dice.randrange(first, playbook.seq + 1), playbook.seq
        then = playbook.snapshot_at(revision)
        done = playbook.rollback(revision, who="ana", why="a bad week")
        assert_as_then(playbook.snapshot(), then)
        assert_decides_alike(playbook.snapshot(), then)
        assert done.changes_nothing == (playbook.seq == before)
        assert {event.who for event in playbook.ledger.read(before)} <= {"ana"}
        dice.choice(EDITS)(playbook, dice)


def test_the_same_holds_in_a_file_that_others_have_open(tmp_path: Path) -> None:
    with open_playbook(tmp_path / "book.db") as playbook, open_playbook(tmp_path / "book.db") as other:
        Learner(playbook).study(history(80))
        then = playbook.snapshot()
        dice = random.Random(1)
        for _ in range(20):
            dice.choice(EDITS)(playbook, dice)
        playbook.rollback(then.revision, who="ana")
        other.refresh()
        assert_as_then(other.snapshot(), then)
        assert_decides_alike(other.snapshot(), then)
    with open_playbook(tmp_path / "book.db") as again:
        assert again.snapshot().bullets == other.snapshot().bullets
        assert_as_then(again.snapshot(), then)


def test_before_the_first_calibration_there_is_none_again() -> None:
    playbook = BulletPlaybook()
    by_hand = playbook.add_bullet("VPN: decline")
    then = playbook.snapshot()
    Learner(playbook).study(history(80))
    playbook.set_threshold(0.6, ReviewRule(between=(0.4, 0.8)), who="ana")
    done = playbook.rollback(then.revision, who="ana")
    now = playbook.snapshot()
    assert (dict(now.calibrations), dict(now.reviews), now.mapping) == ({}, {}, "")
    assert done.also == ("calibration", "review rule")
    assert now.bullets[by_hand].weight is None
    assert_decides_alike(now, then)


def test_to_nothing_at_all() -> None:
    playbook = BulletPlaybook()
    bullet_id = playbook.add_bullet("VPN: decline")
    assert playbook.rollback(0, who="ana").retired == (bullet_id,)
    assert playbook.get_bullets_for_node(NODE) == []


def test_the_mapping_goes_back() -> None:
    playbook = BulletPlaybook()
    Learner(playbook).use_mapping(SchemaMapping(amount="TX_AMOUNT"))
    then = playbook.snapshot()
    Learner(playbook).study(history(80))
    assert playbook.snapshot().mapping != then.mapping
    playbook.rollback(then.revision, who="ana")
    assert playbook.snapshot().mapping == then.mapping
    assert Learner(playbook).facts_of([{"TX_AMOUNT": 250}]).rows() == [{"amount": 250.0}]


def test_an_edit_drops_the_weight_and_going_back_restores_it() -> None:
    playbook = BulletPlaybook()
    Learner(playbook).study(history(80))
    learnt = next(bullet for bullet in playbook if bullet.weight)
    then = playbook.snapshot().revision
    playbook.edit_bullet(learnt.id, "amount above 3999: approve", who="ana")
    assert playbook[learnt.id].weight is None
    done = playbook.rollback(then, who="ana")
    assert (done.edited, done.weights) == ((learnt.id,), {learnt.id: learnt.weight})
    assert playbook[learnt.id] == learnt


def test_twice_changes_nothing_more_and_the_current_revision_nothing_at_all() -> None:
    playbook = BulletPlaybook()
    playbook.add_bullet("VPN: decline")
    then = playbook.snapshot().revision
    playbook.add_bullet("An emulator: decline")
    assert playbook.rollback(playbook.snapshot().revision, who="ana").changes_nothing
    assert not playbook.rollback(then, who="ana").changes_nothing
    seq = playbook.seq
    assert playbook.rollback(then, who="ana").changes_nothing
    assert playbook.rollback(seq, who="ana").changes_nothing
    assert playbook.seq == seq


def test_going_back_can_be_undone() -> None:
    playbook = BulletPlaybook()
    Learner(playbook).study(history(80))
    playbook.add_bullet("An emulator: decline", weight=1.5)
    before = playbook.snapshot()
    playbook.rollback(1, who="ana")
    assert playbook.get_bullets_for_node(NODE) == []
    playbook.rollback(before.revision, who="ana")
    assert_as_then(playbook.snapshot(), before)
    assert_decides_alike(playbook.snapshot(), before)


@pytest.mark.parametrize("revision", [-1, 3, 1_000_000])
def test_a_revision_that_is_not_there_is_refused(revision: int) -> None:
    playbook = BulletPlaybook()
    playbook.add_bullet("VPN: decline")
    playbook.add_bullet("An emulator: decline")
    with pytest.raises(InputError, match=f"from 0 to 2, the current one, got {revision}"):
        playbook.rollback(revision, who="ana")
    assert playbook.seq == 2


def test_counters_and_records_stay_what_outcomes_made_them() -> None:
    playbook = BulletPlaybook()
    fires, retired = playbook.add_bullet("VPN: decline"), playbook.add_bullet("amount above 1: decline")
    learner, then = Learner(playbook), playbook.snapshot().revision
    for number in range(5):
        one = Transaction(id=f"t{number}", facts={"vpn": True, "amount": 10})
        learner.decide_sync(one)
        learner.hear_sync(Outcome(transaction_id=one.id, is_fraud=number > 0))
    playbook.set_status(retired, Status.RETIRED, who="ana")
    counted = {each.id: each.model_dump(include=STAYS - {"status_by"}) for each in playbook}
    assert counted[fires]["record"] == counted[retired]["record"] == {"support": 5, "frauds": 4}
    playbook.rollback(then, who="ana")
    assert playbook[retired].status is Status.ACTIVE
    assert {each.id: each.model_dump(include=STAYS - {"status_by"}) for each in playbook} == counted


def test_a_condition_that_comes_back_brings_its_record() -> None:
    playbook = BulletPlaybook()
    bullet_id = playbook.add_bullet("VPN: decline")
    learner = Learner(playbook)
    for number in range(40):
        one = Transaction(id=f"t{number}", facts={"vpn": True})
        learner.hear_sync(Outcome(transaction_id=one.id, is_fraud=True), one)
    then = playbook.snapshot()
    assert then.bullets[bullet_id].record.support == 40
    playbook.edit_bullet(bullet_id, "An emulator: decline", who="ana")
    assert playbook[bullet_id].record.support == 0
    playbook.rollback(then.revision, who="ana")
    assert playbook[bullet_id].record == then.bullets[bullet_id].record
    assert_decides_alike(playbook.snapshot(), then)


def test_lists_and_snoozes_stay() -> None:
    playbook = BulletPlaybook()
    policy = playbook.add_bullet("amount above 100", policy=Policy(verdict=Verdict.DECLINE))
    then = playbook.snapshot().revision
    playbook.snooze(policy, Snooze(key="card", value="c7", until=LATER), who="ana")
    playbook.create_list("blocked_cards", who="ana")
    playbook.change_list("blocked_cards", added=[ListItem(value="c1")], who="ana")
    assert playbook.rollback(then, who="ana").changes_nothing
    assert len(playbook[policy].snoozes) == 1
    assert list(playbook.get_list("blocked_cards").items) == ["c1"]


def test_what_happened_stays_in_the_ledger_with_author_and_reason() -> None:
    playbook = BulletPlaybook()
    bullet_id = playbook.add_bullet("VPN: decline")
    playbook.set_status(bullet_id, Status.RETIRED, who="bob", why="by mistake")
    before = list(playbook.ledger.read())
    playbook.rollback(1, who="ana", why="Bob was wrong")
    events = list(playbook.ledger.read())
    assert events[: len(before)] == before
    assert [event.payload.kind for event in events[len(before) :]] == ["status_changed", "rolled_back"]
    assert {(event.who, event.why) for event in events[len(before) :]} == {("ana", "Bob was wrong")}
    (*_, last) = playbook.ledger.history(bullet_id)
    assert isinstance(last.payload, StatusChanged)
    assert last.payload.reason == "rolled back to revision 1: Bob was wrong"


def test_an_edit_by_somebody_else_meanwhile_is_planned_for_and_not_lost_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_playbook(tmp_path / "book.db") as playbook, open_playbook(tmp_path / "book.db") as other:
        bullet_id = playbook.add_bullet("VPN: decline")
        then = playbook.snapshot()
        playbook.edit_bullet(bullet_id, "An emulator: decline")
        overtaken: list[str] = []
        snapshot_at = playbook.snapshot_at

        def slowly(revision: int) -> Snapshot:
            if not overtaken:
                overtaken.append(other.add_bullet("amount above 100: decline", who="bob"))
            return snapshot_at(revision)

        monkeypatch.setattr(playbook, "snapshot_at", slowly)
        done = playbook.rollback(then.revision, who="ana")
        assert done.retired == tuple(overtaken), "it was planned again, on what the other wrote"
        assert_as_then(playbook.snapshot(), then)


def test_a_plan_writes_nothing() -> None:
    playbook = BulletPlaybook()
    playbook.add_bullet("VPN: decline")
    assert [payload.kind for payload in plan_rollback(playbook, 0).payloads] == ["status_changed", "rolled_back"]
    assert playbook.seq == 1
