"""Changes are written only if what they depend on has not changed; others do not see an open unit of work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.storage.acknowledged import Meanwhile, outcome_of
from tests.storage.replaying import matches_replay

from acefraud.core.bullet import DEFAULT_NODE, Bullet, NewBullet, Status
from acefraud.core.calibration import Calibration
from acefraud.core.condition import Condition
from acefraud.core.events import Recalibrated
from acefraud.core.ledger import Ledger, Precondition
from acefraud.core.transaction import Verdict
from acefraud.curation.curator import Curator
from acefraud.errors import InputError, StoreConflict
from acefraud.storage import open_playbook
from acefraud.storage.changes import ATTEMPTS
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.sqlite import SqliteLedger

AT = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)
T = TypeVar("T")


class TwoHandles:
    """Two playbooks on one store. What is passed to `meanwhile` happens right before `mine` writes."""

    def __init__(self, first: Ledger, second: Ledger) -> None:
        self._ledger = Meanwhile(first)
        mine: Any = self._ledger
        self.mine = BulletPlaybook(mine, clock=lambda: AT)
        self.theirs = BulletPlaybook(second, clock=lambda: AT)

    def meanwhile(self, *acts: Callable[[], object]) -> None:
        self._ledger.acts.extend(acts)

    def agreed(self) -> dict[str, Bullet]:
        """The bullets, which both see alike."""
        for each in (self.mine, self.theirs):
            each.refresh()
            assert matches_replay(each)
        assert self.mine.snapshot() == self.theirs.snapshot()
        return dict(self.mine.snapshot().bullets)


@pytest.fixture(params=["memory", "file"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TwoHandles]:
    if request.param == "memory":
        shared = MemoryLedger()
        yield TwoHandles(shared, shared)
        return
    path = tmp_path / "book.db"
    with SqliteLedger.open(path) as first, SqliteLedger.open(path) as second:
        yield TwoHandles(first, second)


def elsewhere(work: Callable[[], T]) -> T:
    """The result of some work in another thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result(timeout=60)


# --- a stale handle -----------------------------------------------------------------------------------------------


def test_merging_an_existing_bullet_from_a_stale_handle_keeps_its_status_and_counters(two: TwoHandles) -> None:
    bullet_id = Curator().merge_bullet("VPN: decline", DEFAULT_NODE, two.mine)
    assert bullet_id is not None
    two.mine.set_status(bullet_id, Status.PINNED, who="ana")
    for _ in range(7):
        two.mine.update_stats(bullet_id, is_helpful=True)
    assert Curator().merge_bullet("VPN: decline", DEFAULT_NODE, two.theirs) is None
    (bullet,) = two.agreed().values()
    assert (bullet.id, bullet.status, bullet.helpful_count) == (bullet_id, Status.PINNED, 7)


def test_merging_a_bullet_that_another_handle_just_added_adds_nothing(two: TwoHandles) -> None:
    def faster() -> None:
        bullet_id = Curator().merge_bullet("VPN: decline", DEFAULT_NODE, two.theirs, who="ana")
        assert bullet_id is not None
        two.theirs.set_status(bullet_id, Status.PINNED, who="ana")
        for _ in range(7):
            two.theirs.update_stats(bullet_id, is_helpful=True)

    two.meanwhile(faster)
    assert Curator().merge_bullet("VPN: decline", DEFAULT_NODE, two.mine) is None
    (bullet,) = two.agreed().values()
    assert (bullet.status, bullet.helpful_count) == (Status.PINNED, 7)


def test_merging_many_bullets_is_retried_on_the_newest_revision(two: TwoHandles) -> None:
    two.meanwhile(lambda: two.theirs.add_bullet("Nervous callers", who="ana"))
    new = [NewBullet("Nervous callers"), NewBullet("Refunds asked for twice")]
    said, added = Curator().merge_bullets(new, DEFAULT_NODE, two.mine)
    assert said is None
    assert [bullet.content for bullet in two.agreed().values()] == ["Nervous callers", "Refunds asked for twice"]
    assert added in two.agreed()


def test_reviving_a_bullet_is_atomic(two: TwoHandles) -> None:
    bullet_id = two.mine.add_bullet("amount > $1000 = DECLINE")
    two.mine.set_status(bullet_id, Status.RETIRED)
    two.meanwhile(lambda: two.theirs.set_status(bullet_id, Status.ACTIVE, who="ana", why="still true"))
    assert Curator().merge_bullet("Amount > $1,000 = DECLINE", DEFAULT_NODE, two.mine) is None
    assert two.agreed()[bullet_id].content == "amount > $1000 = DECLINE", "nothing of the revival was written"


def test_two_handles_that_add_the_same_words_add_two_bullets(two: TwoHandles) -> None:
    theirs: list[str] = []
    two.meanwhile(lambda: theirs.append(two.theirs.add_bullet("VPN: decline")))
    mine = two.mine.add_bullet("VPN: decline")
    assert set(two.agreed()) == {mine, *theirs}
    assert len(two.agreed()) == 2


def test_an_edit_is_retried_on_the_newest_revision(two: TwoHandles) -> None:
    bullet_id = two.mine.add_bullet("VPN: decline")

    def faster() -> None:
        two.theirs.edit_bullet(bullet_id, "amount > $9000 = APPROVE", who="ana")
        two.theirs.add_bullet("amount > $500 = APPROVE", who="ana")

    two.meanwhile(faster)
    two.mine.edit_bullet(bullet_id, "amount > $700 = DECLINE")
    bullets = two.agreed()
    assert bullets[bullet_id].content == "amount > $700 = DECLINE"
    (other,) = bullets.keys() - {bullet_id}
    assert bullets[bullet_id].contradicts == (other,), "it is held against what was added meanwhile"


def test_a_bullet_added_by_another_handle_can_be_edited_at_once(two: TwoHandles) -> None:
    bullet_id = two.theirs.add_bullet("VPN: decline")
    two.mine.edit_bullet(bullet_id, "VIP: approve")
    two.theirs.set_status(bullet_id, Status.PINNED)
    two.mine.update_stats(bullet_id, is_helpful=True)
    bullet = two.agreed()[bullet_id]
    assert (bullet.content, bullet.status, bullet.helpful_count) == ("VIP: approve", Status.PINNED, 1)


def test_a_status_that_another_handle_has_set_is_not_set_again(two: TwoHandles) -> None:
    bullet_id = two.mine.add_bullet("VPN: decline")
    two.meanwhile(lambda: two.theirs.set_status(bullet_id, Status.RETIRED, who="ana"))
    two.mine.set_status(bullet_id, Status.RETIRED, who="bob")
    assert two.agreed()[bullet_id].status_by == "ana"
    assert two.mine.ledger.last_seq() == 2


def test_outcomes_and_fits_do_not_conflict_with_edits(two: TwoHandles) -> None:
    bullet_id = two.mine.add_bullet("VPN: decline")
    fitted = Recalibrated(node=DEFAULT_NODE, calibration=Calibration(intercept=-1.0, cases=9))
    two.meanwhile(lambda: two.theirs.record([outcome_of(bullet_id, "t"), fitted]))
    two.mine.edit_bullet(bullet_id, "VIP: approve", why="once")
    assert [event.seq for event in two.mine.ledger.read() if event.why == "once"] == [4]
    assert two.agreed()[bullet_id].helpful_count == 1


# --- a conflict ---------------------------------------------------------------------------------------------------


def test_a_change_that_conflicts_every_time_says_with_whom_and_when(two: TwoHandles) -> None:
    bullet_id = two.mine.add_bullet("VPN: decline")
    two.meanwhile(*(lambda n=n: two.theirs.edit_bullet(bullet_id, f"text {n}", who="ana") for n in range(ATTEMPTS)))
    told = (
        rf"given up after {ATTEMPTS} attempts: ana wrote event {ATTEMPTS + 1} meanwhile "
        rf"\(bullet_edited of {bullet_id}\) at 2024-05-01 12:30:00 UTC"
    )
    with pytest.raises(StoreConflict, match=told) as raised:
        two.mine.edit_bullet(bullet_id, "mine", who="bob")
    assert (raised.value.who, raised.value.at) == ("ana", AT)
    assert two.agreed()[bullet_id].content == f"text {ATTEMPTS - 1}"
    two.mine.edit_bullet(bullet_id, "mine", who="bob")
    assert two.agreed()[bullet_id].content == "mine"


def test_an_unknown_id_is_not_retried(two: TwoHandles) -> None:
    with pytest.raises(InputError, match="no bullet 'b-0'"):
        two.mine.edit_bullet("b-0", "VPN: decline")


def test_a_unit_of_work_checks_the_preconditions_recorded_in_it(two: TwoHandles) -> None:
    bullet_id = two.mine.add_bullet("VPN: decline")

    def heard_twice() -> None:
        with two.mine.unit_of_work():
            two.mine.add_bullet("Nervous callers")
            two.mine.record(
                [outcome_of(bullet_id, "t")], preconditions=[Precondition.no_outcomes_since(two.mine.seq, ["t"])]
            )
            two.theirs.record([outcome_of(bullet_id, "t")], who="bank")

    with pytest.raises(StoreConflict, match="bank wrote event 2 meanwhile"):
        heard_twice()
    assert two.agreed()[bullet_id].helpful_count == 1


# --- the inside of a step -----------------------------------------------------------------------------------------


def contents(playbook: BulletPlaybook) -> list[str]:
    return [bullet.content for bullet in playbook.snapshot().bullets.values()]


def test_another_thread_does_not_see_an_open_unit_of_work_and_its_own_edit_stays(two: TwoHandles) -> None:
    kept = two.mine.add_bullet("VPN: decline")
    seq = two.mine.seq
    with suppress(ZeroDivisionError), two.mine.unit_of_work():
        inside = two.mine.add_bullet("Nervous callers")
        two.mine.set_status(kept, Status.RETIRED)
        two.theirs.refresh()
        assert elsewhere(lambda: contents(two.mine)) == contents(two.theirs) == ["VPN: decline"]
        assert elsewhere(lambda: (len(two.mine), inside in two.mine, two.mine.seq)) == (1, False, seq)
        assert elsewhere(lambda: two.mine.get_bullets_for_node(DEFAULT_NODE)[0].status) is Status.ACTIVE
        with pytest.raises(InputError, match="no bullet"):
            elsewhere(lambda: two.mine.edit_bullet(inside, "theirs"))
        elsewhere(lambda: two.mine.edit_bullet(kept, "VPN and a new device: decline", who="ana"))
        assert contents(two.mine) == ["VPN: decline", "Nervous callers"], "a step goes on from where it began"
        raise ZeroDivisionError
    assert [bullet.content for bullet in two.agreed().values()] == ["VPN and a new device: decline"]


def test_a_unit_of_work_that_conflicts_with_another_thread_is_not_written(two: TwoHandles) -> None:
    kept = two.mine.add_bullet("VPN: decline")

    def overtaken() -> None:
        with two.mine.unit_of_work():
            two.mine.add_bullet("Nervous callers")
            elsewhere(lambda: two.mine.set_status(kept, Status.PINNED, who="ana"))

    with pytest.raises(StoreConflict, match="ana wrote event 2"):
        overtaken()
    assert [(bullet.content, bullet.status) for bullet in two.agreed().values()] == [("VPN: decline", Status.PINNED)]


def test_each_thread_has_its_own_unit_of_work(two: TwoHandles) -> None:
    begun = threading.Barrier(2, timeout=60)

    def step(name: str) -> list[str]:
        with two.mine.unit_of_work(who=name):
            begun.wait()
            two.mine.record([outcome_of("b", name)], who=name)  # outcomes are in nobody's way
            seen = two.mine.outcomes
            begun.wait()
        return [name, str(seen)]

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(step, ["ana", "bob"])) == [["ana", "1"], ["bob", "1"]]
    assert two.mine.outcomes == 2


def test_a_unit_of_work_belongs_to_the_task_that_began_it() -> None:
    playbook = BulletPlaybook()

    async def step() -> list[list[str]]:
        async def other() -> list[str]:
            with suppress(ZeroDivisionError), playbook.unit_of_work(who="bob"):
                playbook.add_bullet("VIP: approve", who="bob")
                await asyncio.sleep(0)
                raise ZeroDivisionError
            return contents(playbook)

        with playbook.unit_of_work(who="ana"):
            playbook.add_bullet("VPN: decline", who="ana")
            seen = await asyncio.gather(other(), asyncio.to_thread(contents, playbook), asyncio.create_task(other()))
            return [*seen, contents(playbook)]

    assert asyncio.run(step()) == [[], [], [], ["VPN: decline"]]
    assert contents(playbook) == ["VPN: decline"]


def test_a_unit_of_work_begun_outside_an_event_loop_covers_its_tasks() -> None:
    playbook = BulletPlaybook()

    async def add() -> str:
        return playbook.add_bullet("VPN: decline")

    with suppress(ZeroDivisionError), playbook.unit_of_work():
        assert asyncio.run(add()) in playbook
        raise ZeroDivisionError
    assert len(playbook) == 0


def test_a_nested_unit_of_work_that_fails_is_undone(two: TwoHandles) -> None:
    kept = two.mine.add_bullet("VPN: decline")
    with two.mine.unit_of_work(why="both"):
        two.mine.add_bullet("Nervous callers")
        before = two.mine.snapshot()
        with suppress(ZeroDivisionError), two.mine.unit_of_work():
            two.mine.set_status(kept, Status.RETIRED)
            two.mine.add_bullet("Refunds asked for twice")
            raise ZeroDivisionError
        assert two.mine.snapshot() == before
        with two.mine.unit_of_work():
            two.mine.add_bullet("VIP: approve")
        assert contents(two.mine) == ["VPN: decline", "Nervous callers", "VIP: approve"]
    assert [bullet.content for bullet in two.agreed().values()] == ["VPN: decline", "Nervous callers", "VIP: approve"]
    assert [event.why for event in two.mine.ledger.read()] == ["", "both", "both"]


# --- threads that share a playbook, a curator ---------------------------------------------------------------------


def test_threads_that_merge_the_same_bullets_add_each_once(tmp_path: Path) -> None:
    texts = [f"amount > ${n * 1000} = DECLINE" for n in range(1, 9)] + ["Nervous callers", "Refunds asked for twice"]
    curator = Curator()
    with open_playbook(tmp_path / "book.db") as playbook:

        def merge(turn: int) -> list[str | None]:
            ours = texts[turn:] + texts[:turn]
            return [curator.merge_bullet(text, DEFAULT_NODE, playbook) for text in ours]

        with ThreadPoolExecutor(5) as threads:
            merged = [each for some in threads.map(merge, range(5)) for each in some if each is not None]
        assert sorted(merged) == sorted(playbook.snapshot().bullets)
        assert sorted(contents(playbook)) == sorted(texts)
        assert matches_replay(playbook)


def test_words_beside_a_condition_and_a_verdict_are_read_only_for_their_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("acefraud.storage.changes.read_bullet_with")
    playbook, condition = BulletPlaybook(), Condition.parse("vpn is true")
    added = playbook.add_bullet("VPN is 95% fraud", condition=condition, argues=Verdict.APPROVE)
    bullet = playbook.snapshot().bullets[added]
    assert (bullet.condition, bullet.argues) == (condition, Verdict.APPROVE)
    assert bullet.claim is not None
    assert bullet.claim.fraud_share == 0.95


def test_readers_see_only_complete_units_of_work() -> None:
    playbook, done = BulletPlaybook(), threading.Event()

    def write() -> None:
        for n in range(40):
            with playbook.unit_of_work():
                for part in range(4):
                    playbook.add_bullet(f"{n} of {part}")
        done.set()

    def read() -> int:
        looks = 0
        while not done.is_set():
            snapshot = playbook.snapshot()
            assert len(snapshot.bullets) % 4 == 0
            assert len(list(snapshot.bullets.values())) == len(snapshot.bullets)
            looks += 1
        return looks

    with ThreadPoolExecutor(3) as threads:
        looks = [threads.submit(read) for _ in range(2)]
        threads.submit(write).result(timeout=120)
        assert all(each.result(timeout=60) > 0 for each in looks)
    assert len(playbook) == 160
