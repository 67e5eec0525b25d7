"""Replaying the ledger gives the same playbook, whatever was done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.storage.replaying import matches_replay

from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.calibration import Calibration
from acefraud.core.events import BulletCredited, Credit, OutcomeHeard, Recalibrated
from acefraud.core.events import Event as StoredEvent
from acefraud.core.outcome import Judgement, Outcome, Ruling
from acefraud.core.playbook import Checkpoint, CheckpointHeader, PlaybookState, Snapshot
from acefraud.errors import InputError, StoreConflict
from acefraud.storage import playbook_reading
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook

CONTENTS = ["VPN: decline", "amount > $1000 = DECLINE", "amount > $1000 = 95% fraud", "Nervous callers", "VIP: approve"]
Edit = tuple[str, int, int]
edits = st.lists(
    st.tuples(
        st.sampled_from(["add", "edit", "status", "stats", "outcome", "revise", "fit", "step", "failed step"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    max_size=25,
)


def ticking() -> Callable[[], datetime]:
    ticks = count()
    return lambda: datetime(2024, 5, 1, tzinfo=UTC) + timedelta(seconds=next(ticks))


def heard(credit: Credit, *, revised: bool = False) -> OutcomeHeard:
    return OutcomeHeard(
        kind="outcome_revised" if revised else "outcome_heard",
        outcome=Outcome(transaction_id="t", is_fraud=True),
        judgement=Judgement(ruling=Ruling.CORRECT),
        credits=(credit,),
    )


def do(playbook: BulletPlaybook, edit: Edit, credits: list[Credit]) -> None:
    kind, which, how = edit
    ids = list(playbook.snapshot().bullets)
    if kind == "add" or not ids:
        playbook.add_bullet(CONTENTS[which % 5], f"node{how % 2}", list(Source)[how % 3], who="ann" if how else "bob")
        return
    bullet_id = ids[which % len(ids)]
    match kind:
        case "edit":
            playbook.edit_bullet(bullet_id, CONTENTS[how % 5])
        case "status":
            playbook.set_status(bullet_id, list(Status)[how % 4], who="ann", why="looked at it")
        case "stats":
            playbook.update_stats(bullet_id, bool(how % 2))
        case "outcome":
            credit = Credit(bullet_id=bullet_id, helpful=how % 2, harmful=1 - how % 2, selected=1, fired=1)
            playbook.record([heard(credit)])
            credits.append(credit)
        case "revise" if credits:
            playbook.record([heard(credits.pop().reversed(), revised=True)])
        case "fit":
            frame = Calibration(intercept=-1.0 - how, cases=how)
            playbook.record([Recalibrated(node=f"node{how % 2}", calibration=frame, weights={bullet_id: how / 2})])
        case "step":
            with playbook.unit_of_work(who="ann"):
                playbook.update_stats(bullet_id, True)
                playbook.add_bullet(CONTENTS[how % 5], who="ann")
        case "failed step":
            before = playbook.snapshot()
            with suppress(ZeroDivisionError), playbook.unit_of_work():
                playbook.update_stats(bullet_id, True)
                raise ZeroDivisionError
            assert playbook.snapshot() == before


def written(given_edits: list[Edit]) -> BulletPlaybook:
    playbook, credits = BulletPlaybook(clock=ticking()), list[Credit]()
    for edit in given_edits:
        do(playbook, edit, credits)
    return playbook


def replayed(playbook: BulletPlaybook, *, start: Checkpoint | None = None, until: int | None = None) -> PlaybookState:
    state = PlaybookState(start)
    for event in playbook.ledger.read(until=until):
        state.apply(event)
    return state


def as_from_a_file(checkpoint: Checkpoint) -> Checkpoint:
    """The same, made anew of what is written to a file."""
    header = CheckpointHeader.model_validate_json(checkpoint.header.model_dump_json())
    return Checkpoint(header, checkpoint.bullets)


@given(edits)
def test_replaying_the_ledger_gives_the_playbook(given_edits: list[Edit]) -> None:
    playbook = written(given_edits)
    assert matches_replay(playbook)
    assert replayed(playbook).snapshot() == playbook.snapshot()


@given(edits, st.data())
def test_a_checkpoint_and_the_events_after_it_are_as_good_as_all_events(
    given_edits: list[Edit], data: st.DataObject
) -> None:
    playbook = written(given_edits)
    place = data.draw(st.integers(0, playbook.ledger.last_seq()))
    saved = as_from_a_file(replayed(playbook, until=place).checkpoint())
    assert replayed(playbook, start=saved).checkpoint() == replayed(playbook).checkpoint()
    assert replayed(playbook, start=saved).snapshot() == playbook.snapshot()


def test_a_branch_of_the_state_changes_independently() -> None:
    playbook = written([("add", 0, 0), ("add", 1, 1)])
    state = replayed(playbook)
    before = state.checkpoint()
    playbook.edit_bullet(next(iter(playbook.snapshot().bullets)), "VIP: approve")
    playbook.add_bullet("An emulator: decline", "a third node")
    branch = state.branch()
    for event in playbook.ledger.read(after=branch.seq):
        branch.apply(event)
    assert branch.checkpoint() == replayed(playbook).checkpoint()
    assert state.checkpoint() == before


@given(edits)
def test_an_old_snapshot_does_not_change_and_can_be_had_again(given_edits: list[Edit]) -> None:
    playbook, credits = BulletPlaybook(clock=ticking()), list[Credit]()
    taken: list[tuple[Snapshot, dict[str, Bullet]]] = []
    for edit in given_edits:
        do(playbook, edit, credits)
        snapshot = playbook.snapshot()
        taken.append((snapshot, {name: bullet.model_copy(deep=True) for name, bullet in snapshot.bullets.items()}))
    for snapshot, bullets in taken:
        assert dict(snapshot.bullets) == bullets
        assert playbook.snapshot_at(snapshot.revision) == snapshot


@given(st.lists(st.builds(dict, **{name: st.integers(0, 3) for name in ("helpful", "harmful", "selected", "fired")})))
def test_revising_outcomes_takes_the_counters_back_exactly(figures: list[dict[str, int]]) -> None:
    playbook = BulletPlaybook()
    bullet_id = playbook.add_bullet("VPN: decline")
    playbook.update_stats(bullet_id, is_helpful=True)
    before = playbook.get_bullet(bullet_id)
    given_credits = [Credit(bullet_id=bullet_id, fired_frauds=each["fired"] // 2, **each) for each in figures]
    for credit in given_credits:
        playbook.record([heard(credit)])
    counted = playbook.get_bullet(bullet_id)
    assert counted is not None
    assert counted.helpful_count == 1 + sum(each["helpful"] for each in figures)
    assert counted.record.support == sum(each["fired"] for each in figures)
    for credit in given_credits:
        playbook.record([heard(credit.reversed(), revised=True)])
    assert playbook.get_bullet(bullet_id) == before


def test_an_event_is_applied_once() -> None:
    playbook = BulletPlaybook()
    bullet_id = playbook.add_bullet("VPN: decline")
    playbook.update_stats(bullet_id, is_helpful=False)
    state = replayed(playbook)
    for event in playbook.ledger.read():
        state.apply(event)
    bullet = state.get(bullet_id)
    assert bullet is not None
    assert (bullet.harmful_count, bullet.times_selected) == (1, 1)


def test_deciding_leaves_the_revision_alone_and_learning_moves_it() -> None:
    playbook = BulletPlaybook()
    bullet_id = playbook.add_bullet("VPN: decline")
    before = playbook.snapshot()
    nothing = OutcomeHeard(
        outcome=Outcome(transaction_id="t", is_fraud=False), judgement=Judgement(ruling=Ruling.UNJUDGED)
    )
    playbook.record([nothing])
    assert playbook.snapshot() is before
    playbook.record([BulletCredited(credit=Credit(bullet_id=bullet_id, helpful=1))])
    assert playbook.snapshot().revision > before.revision


def test_bullets_are_found_by_node_and_source_and_retired_ones_are_not() -> None:
    playbook = BulletPlaybook()
    kept = playbook.add_bullet("VPN: decline", "one", "offline")
    playbook.add_bullet("VPN: decline", "two", "offline")
    online = playbook.add_bullet("VIP: approve", "one", Source.ONLINE)
    gone = playbook.add_bullet("An emulator: decline", "one", "offline")
    playbook.set_status(gone, Status.RETIRED, who="ann")
    assert [bullet.id for bullet in playbook.get_bullets_for_node("one")] == [kept, online]
    assert [bullet.id for bullet in playbook.get_bullets_for_node("one", "offline")] == [kept]
    retired = playbook.get_bullet(gone)
    assert retired is not None
    assert (retired.status, retired.status_by) == (Status.RETIRED, "ann")


def test_the_same_words_twice_are_two_bullets() -> None:
    playbook = BulletPlaybook()
    assert playbook.add_bullet("VPN: decline") != playbook.add_bullet("VPN: decline")
    assert len(playbook) == 2


def test_an_edited_bullet_keeps_its_counters_and_loses_its_weight() -> None:
    playbook = BulletPlaybook()
    bullet_id = playbook.add_bullet("amount > $1000 = DECLINE", weight=1.5)
    playbook.update_stats(bullet_id, is_helpful=True)
    playbook.edit_bullet(bullet_id, "amount > $2000 = 90% fraud")
    bullet = playbook.get_bullet(bullet_id)
    assert bullet is not None
    assert (str(bullet.condition), bullet.weight, bullet.helpful_count) == ("amount > 2000", None, 1)
    assert bullet.claim is not None


def test_a_bullet_that_is_not_there_cannot_be_edited() -> None:
    playbook = BulletPlaybook()
    acts: list[Callable[[], None]] = [
        lambda: playbook.edit_bullet("b-0", "VPN: decline"),
        lambda: playbook.set_status("b-0", Status.PINNED),
        lambda: playbook.update_stats("b-0", is_helpful=True),
    ]
    for act in acts:
        with pytest.raises(InputError, match="no bullet 'b-0'"):
            act()
    assert playbook.ledger.last_seq() == 0


def test_a_unit_of_work_that_conflicts_is_not_written() -> None:
    first = BulletPlaybook()
    other = BulletPlaybook(first.ledger)

    def slow_step() -> None:
        with first.unit_of_work():
            first.add_bullet("VPN: decline")
            other.add_bullet("VIP: approve")

    with pytest.raises(StoreConflict):
        slow_step()
    first.refresh()
    assert [bullet.content for bullet in first.snapshot().bullets.values()] == ["VIP: approve"]
    assert matches_replay(first)


def test_a_unit_of_work_has_one_author() -> None:
    playbook = BulletPlaybook()
    bullet_id = playbook.add_bullet("VPN: decline")
    with playbook.unit_of_work(who="ann"):
        playbook.set_status(bullet_id, Status.RETIRED)
    bullet = playbook.get_bullet(bullet_id)
    assert bullet is not None
    assert bullet.status_by == "ann"
    with pytest.raises(ValueError, match="one author"), playbook.unit_of_work():
        playbook.set_status(bullet_id, Status.ACTIVE, who="bob")
    unchanged = playbook.get_bullet(bullet_id)
    assert unchanged == bullet


def test_the_earlier_names_of_a_unit_of_work_still_work() -> None:
    playbook = BulletPlaybook()
    with playbook.one_step(who="ana"):
        bullet_id = playbook.run_step(lambda: playbook.add_bullet("VPN: decline"))
    assert [event.who for event in playbook.ledger.history(bullet_id)] == ["ana"]


class _SlowLedger(MemoryLedger):
    """One of whose calls waits, as for a database that does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = ""
        self.entered, self.go_on = Event(), Event()

    def _wait(self, call: str) -> None:
        if call == self.slow:
            self.entered.set()
            assert self.go_on.wait(10)

    def last_seq(self) -> int:
        self._wait("last_seq")
        return super().last_seq()

    def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[StoredEvent]:
        self._wait("read")
        return super().read(after, until, decisions=decisions)

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        self._wait("save_checkpoint")
        super().save_checkpoint(checkpoint)


@pytest.mark.parametrize("slow", ["last_seq", "read", "save_checkpoint"])
def test_nobody_waits_for_a_snapshot_while_another_thread_waits_for_the_ledger(
    slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playbook_reading, "CHECKPOINT_EVERY", 1)
    ledger = _SlowLedger()
    mine, theirs = BulletPlaybook(ledger), BulletPlaybook(ledger)
    mine.add_bullet("VPN: decline")
    theirs.add_bullet("VIP: approve")
    ledger.slow = slow
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(mine.refresh)
        try:
            assert ledger.entered.wait(10)
            looked = pool.submit(lambda: (len(mine.snapshot().bullets), len(mine), mine.revision))
            seen = looked.result(5)
        finally:
            ledger.go_on.set()
        waiting.result(10)

    assert seen == ((2, 2, 2) if slow == "save_checkpoint" else (1, 1, 1))
    assert len(mine.snapshot().bullets) == 2
    saved = ledger.checkpoint()
    assert saved is not None
    assert saved.header.bullets == 2


def test_the_latest_outcomes_are_those_of_the_ledger_whoever_wrote_them() -> None:
    ledger = MemoryLedger()
    writer = BulletPlaybook(ledger)
    bullet_id = writer.add_bullet("VPN: decline")
    outcomes = playbook_reading.LATEST_OUTCOMES
    for written in (3, outcomes - 1, 5, 2 * outcomes):
        writer.record([heard(Credit(bullet_id, helpful=1))] * written)
        reader = BulletPlaybook(ledger)
        writer.record([heard(Credit(bullet_id, harmful=1))])
        reader.refresh()
        expected = ledger.find_events({"outcome_heard"}, limit=outcomes, newest_first=True)[::-1]
        assert reader.latest_outcomes() == writer.latest_outcomes() == expected


def test_a_snapshot_that_is_not_counted_says_what_the_playbook_says() -> None:
    playbook = BulletPlaybook()
    bullet_id = playbook.add_bullet("VPN: decline")
    before = playbook.snapshot()
    playbook.record([heard(Credit(bullet_id, helpful=1))])
    assert playbook.uncounted() is before
    assert playbook.snapshot().bullets[bullet_id].helpful_count == 1
    playbook.set_status(bullet_id, Status.RETIRED)
    assert playbook.uncounted().bullets[bullet_id].status is Status.RETIRED
