"""Threads and processes write to one playbook at once. It holds what was acknowledged, in some order."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import pytest
from tests.postgres import database_for
from tests.storage.acknowledged import Act, Done, folded, in_some_order, perform, plain
from tests.storage.replaying import matches_replay

from acefraud.core.bullet import Status
from acefraud.core.events import THE_ENGINE, Event
from acefraud.core.ledger import Entry
from acefraud.curation.curator import Curator
from acefraud.errors import StoreConflict
from acefraud.storage import open_playbook
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.postgres import PostgresLedger
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.storage.sqlite import SqliteLedger
from acefraud.support.database_address import is_database

pytestmark = pytest.mark.wide

WORDS = [hashlib.sha256(str(n).encode()).hexdigest()[:24] for n in range(40)]  # none of them like another
CONTENTS = [*WORDS, *(f"amount > ${n * 1000} = {verdict}" for n in range(1, 6) for verdict in ("DECLINE", "APPROVE"))]
ABANDONED = "given up: "


PLACES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: str(folder / "book.db"),
    "postgresql": database_for,
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return PLACES[request.param](tmp_path)


class Counting(SqlLedger):
    """Counts how often somebody else was faster."""

    conflicts = 0

    def append(self, entry: Entry) -> list[Event]:
        try:
            return super().append(entry)
        except StoreConflict:
            self.conflicts += 1  # by one more or less where threads meet; it only has to be seen that there are some
            raise


class CountingFile(Counting, SqliteLedger):
    pass


class CountingDatabase(Counting, PostgresLedger):
    pass


def counting(place: str) -> Counting:
    return CountingDatabase.open(place) if is_database(place) else CountingFile.open(Path(place))


class GivenUpOnPurpose(Exception):
    pass


@dataclass
class Report:
    """What one writer was told."""

    done: list[Done] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    given_up: int = 0
    conflicts: int = 0


class Writer:
    """Does this and that, with dice of its own."""

    def __init__(self, name: str, playbook: BulletPlaybook) -> None:
        self._name = name
        self._playbook = playbook
        self._curator = Curator()
        self._dice = random.Random(name)
        self.report = Report()

    def write(self, count: int) -> Report:
        for turn in range(count):
            token = f"{self._name}-{turn}"
            seen = self._playbook.snapshot().bullets.values()
            assert not any(bullet.content.startswith(ABANDONED) for bullet in seen), "the inside of a step"
            try:
                self._write(token)
            except StoreConflict as conflict:
                self.report.raised.append(f"{conflict.who}: {conflict}")
            except GivenUpOnPurpose:
                self.report.given_up += 1
        return self.report

    def _write(self, token: str) -> None:
        luck = self._dice.random()
        if luck < 0.05:
            self._give_up(token)
        elif luck < 0.15:
            planned = [self._act() for _ in range(3)]
            with self._playbook.unit_of_work(who=self._name, why=token):
                done = [self._perform(act, token) for act in planned]
            self.report.done.append(Done(token, tuple(done)))
        elif luck < 0.2:
            planned = [self._act() for _ in range(3)]
            again = self._playbook.run_unit_of_work(
                lambda: [self._perform(act, token) for act in planned], who=self._name, why=token
            )
            self.report.done.append(Done(token, tuple(again)))
        else:
            self.report.done.append(Done(token, (self._perform(self._act(), token),)))

    def _give_up(self, token: str) -> None:
        with self._playbook.unit_of_work(who=self._name, why=token):
            inside = self._playbook.add_bullet(f"{ABANDONED}{token}", who=self._name, why=token)
            self._playbook.set_status(inside, Status.PINNED, who=self._name, why=token)
            assert inside in self._playbook
            self._perform(self._act(), token)
            raise GivenUpOnPurpose

    def _perform(self, act: Act, token: str) -> Act:
        return perform(act, self._playbook, self._curator, token)

    def _act(self) -> Act:
        ids = list(self._playbook.snapshot().bullets)
        kind = self._dice.choice(["add", "merge", "merge", "edit", "edit", "move", "move", "use"])
        content = self._dice.choice(CONTENTS)
        if kind in ("add", "merge") or not ids:
            return Act("merge" if kind == "merge" else "add", content=content, who=self._name)
        status = self._dice.choice([Status.PINNED, Status.RETIRED, Status.ACTIVE])
        return Act(kind, self._dice.choice(ids), content, status, self._name)


def written_by_threads(place: str, names: Sequence[str], count: int) -> list[Report]:
    """What threads that share one playbook were told."""
    with BulletPlaybook(counting(place)) as playbook:
        writers = [Writer(name, playbook) for name in names]
        with ThreadPoolExecutor(len(names)) as threads:
            reports = list(threads.map(lambda writer: writer.write(count), writers))
        playbook.refresh()
        assert matches_replay(playbook)
        assert isinstance(playbook.ledger, Counting)
        reports[0].conflicts = playbook.ledger.conflicts
    return reports


def written_by_a_process(place: str, name: str, count: int) -> Report:
    return written_by_threads(place, [name], count)[0]


def written(place: str, threads: int, processes: int, count: int) -> list[Report]:
    """What all of them were told, who wrote at the same time."""
    with open_playbook(place) as playbook, suppress(StoreConflict):
        first = playbook.add_bullet(WORDS[0], why="first")
        playbook.set_status(first, Status.RETIRED, who=THE_ENGINE, why="first retired")
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        awaited = [pool.submit(written_by_a_process, place, f"p{n}", count) for n in range(processes)]
        reports = written_by_threads(place, [f"t{n}" for n in range(threads)], count)
        return [*reports, *(each.result(timeout=1200) for each in awaited)]


def check(place: str, reports: Sequence[Report]) -> None:
    with open_playbook(place) as playbook:
        events = list(playbook.ledger.read())
        first = events[0].payload.subject
        begun = [
            Done("first", (Act("add", first, WORDS[0]),)),
            Done("first retired", (Act("move", first, status=Status.RETIRED),)),
        ]
        expected = in_some_order([*begun, *(done for report in reports for done in report.done)], events)
        assert folded(playbook.ledger) == expected
        assert plain(playbook.snapshot().bullets.values()) == expected
        assert matches_replay(playbook)
    raised = [conflict for report in reports for conflict in report.raised]
    conflicts = sum(report.conflicts for report in reports)
    print(f"{len(events)} events, {conflicts} conflicts met, {len(raised)} raised: {raised[:1]}")
    assert all(each[0] in "pt" for each in raised), "who was faster is named"
    assert len(raised) <= conflicts, "each was met by somebody who was told, or tried again"


@pytest.mark.parametrize("place", [pytest.param("sqlite", marks=pytest.mark.long), "postgresql"], indirect=True)
def test_a_few_threads_and_processes_that_write_at_once(place: str) -> None:
    reports = written(place, threads=3, processes=2, count=40)
    assert all(len(report.done) + len(report.raised) + report.given_up == 40 for report in reports)
    check(place, reports)


@pytest.mark.long
def test_eight_threads_and_eight_processes_that_write_at_once(place: str) -> None:
    reports = written(place, threads=8, processes=8, count=313)
    assert sum(len(report.done) + len(report.raised) + report.given_up for report in reports) >= 5_000
    assert sum(report.given_up for report in reports) > 100
    assert sum(report.conflicts for report in reports) > 100
    check(place, reports)
