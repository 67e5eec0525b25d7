"""Earlier revisions, asked for in any order: each equals a replay from the start."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from acefraud.core.events import Event
from acefraud.core.playbook import PlaybookState, Snapshot
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.playbook_reading import EarlierRevisions


class CountingLedger(MemoryLedger):
    """Counts the events that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def read(self, after: int = 0, until: int | None = None, *, decisions: bool = True) -> Iterator[Event]:
        events = list(super().read(after, until, decisions=decisions))
        self.count += len(events)
        return iter(events)


@pytest.fixture
def ledger() -> CountingLedger:
    ledger = CountingLedger()
    playbook = BulletPlaybook(ledger)
    bullet = playbook.add_bullet("Amount above 1: decline")
    for number in range(100):
        playbook.edit_bullet(bullet, f"Amount above {number + 2}: decline")
    ledger.count = 0
    return ledger


def replayed(ledger: MemoryLedger, revision: int) -> Snapshot:
    state = PlaybookState()
    for event in ledger.read(0, revision, decisions=False):
        state.apply(event)
    return state.snapshot()


@pytest.mark.parametrize("distance", [1, 7, 1_000])
def test_any_order_gives_what_a_replay_gives(ledger: CountingLedger, distance: int) -> None:
    earlier, dice = EarlierRevisions(ledger, distance=distance), random.Random(18)
    for _ in range(20):
        revision = dice.randint(0, 101)
        assert earlier.at(revision) == replayed(ledger, revision)


def test_only_the_first_look_goes_all_the_way(ledger: CountingLedger) -> None:
    earlier = EarlierRevisions(ledger, distance=10)
    earlier.at(101)
    assert ledger.count == 101
    for revision in (100, 11, 50, 30):
        ledger.count = 0
        assert earlier.at(revision).revision == revision
        assert ledger.count <= 10
