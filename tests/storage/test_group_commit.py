"""Threads that write at the same time share a commit; each still gets its own answer."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.effort import rounds

from acefraud.core.ledger import Entry, Precondition, RowStore
from acefraud.errors import StoreConflict
from acefraud.storage.sqlite import SqliteLedger

AT = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)
THREADS = 8

WRITER = """
import os, sys, threading
from datetime import UTC, datetime
from pathlib import Path
from acefraud.core.bullet import Bullet
from acefraud.core.events import BulletAdded
from acefraud.core.ledger import Entry
from acefraud.storage.sqlite import SqliteLedger

path, saying = Path(sys.argv[1]), threading.Lock()
log = Path(f"{path}-wal")
ledger = SqliteLedger.open(path)

def write(thread):
    n = 0
    while True:
        n += 1
        added = BulletAdded(bullet=Bullet(id=f"{thread}-{n}", content="word " * (n * 37 % 100 + 1)))
        ledger.append(Entry([added], at=datetime.now(UTC), who="writer"))
        with saying:
            print(f"{thread}-{n} {log.stat().st_size}", flush=True)

for thread in range(4):
    threading.Thread(target=write, args=(thread,), daemon=True).start()
threading.Event().wait()
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger.open(tmp_path / "playbook.db") as opened:
        yield opened


@pytest.fixture
def commits(ledger: SqliteLedger) -> list[str]:
    """A list that grows with every commit of a write."""
    seen: list[str] = []

    def note(statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            seen.append(statement)

    ledger._writer = ledger._connect()
    ledger._writer.set_trace_callback(note)
    return seen


def test_those_who_wait_are_written_together(ledger: SqliteLedger, commits: list[str], sample: Any) -> None:
    go, entered = threading.Event(), threading.Event()

    def hold(_: RowStore) -> None:
        entered.set()
        go.wait(10)

    with ThreadPoolExecutor(THREADS + 1) as pool:
        first = pool.submit(ledger.append, Entry([sample.bullet("first")], at=AT, who="ana", rows=hold))
        entered.wait(10)
        others = [pool.submit(ledger.append, Entry([sample.bullet(f"b{n}")], at=AT, who="ana")) for n in range(THREADS)]
        while len(ledger._queue) < THREADS:
            pass
        go.set()
        written = [event for each in (first, *others) for event in each.result()]
    assert len(commits) == 2
    assert sorted(each.seq for each in written) == list(range(1, THREADS + 2))
    assert {each.seq: each for each in ledger.read()} == {each.seq: each for each in written}


def test_a_conflict_and_a_failure_reach_only_their_own_caller(ledger: SqliteLedger, sample: Any) -> None:
    go, entered = threading.Event(), threading.Event()

    def hold(_: RowStore) -> None:
        entered.set()
        go.wait(10)

    def fail(_: RowStore) -> None:
        raise ZeroDivisionError

    outdated = [Precondition.no_edits_since(0)]
    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(ledger.append, Entry([sample.bullet("first")], at=AT, who="ana", rows=hold))
        entered.wait(10)
        fine = [pool.submit(ledger.append, Entry([sample.bullet(f"b{n}")], at=AT, who="ana")) for n in range(3)]
        late = pool.submit(ledger.append, Entry([sample.bullet("late")], at=AT, who="ana", preconditions=outdated))
        bad = pool.submit(ledger.append, Entry([sample.bullet("bad")], at=AT, who="ana", rows=fail))
        while len(ledger._queue) < 5:
            pass
        go.set()
        with pytest.raises(StoreConflict):
            late.result()
        with pytest.raises(ZeroDivisionError):
            bad.result()
        for each in (first, *fine):
            each.result()
    assert {event.payload.subject for event in ledger.read()} == {"first", "b0", "b1", "b2"}


@contextmanager
def writing(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with four threads that write until it is killed, and say what was acknowledged."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as child:
        yield child
        child.send_signal(signal.SIGKILL)


def acknowledged_by(child: subprocess.Popen[str], count: int) -> list[tuple[str, int]]:
    """The next bullets that were acknowledged, each with the size of the log then."""
    assert child.stdout is not None
    lines = [child.stdout.readline().split() for _ in range(count)]
    return [(name, int(size)) for name, size in lines]


def check(path: Path, acknowledged: list[str]) -> None:
    with SqliteLedger.open(path, create=False) as ledger:
        events = list(ledger.read())
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    there = [event.payload.subject for event in events]
    assert set(acknowledged) <= set(there)
    assert len(there) == len(set(there))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def lose_power(directory: Path, times: int, seed: int) -> None:
    """Stop a writer, copy the file and its log, and cut the log after the last commit that was acknowledged."""
    chance = random.Random(seed)
    for turn in range(times):
        path, copy = directory / f"{turn}.db", directory / f"{turn}-copy.db"
        with writing(path) as child:
            acknowledged = acknowledged_by(child, chance.randint(20, 120))
            child.send_signal(signal.SIGSTOP)
            shutil.copy(path, copy)
            log = Path(shutil.copy(f"{path}-wal", f"{copy}-wal"))
        size = log.stat().st_size
        with log.open("r+b") as file:
            file.truncate(chance.randint(min(size, max(synced for _, synced in acknowledged)), size))
        check(copy, [name for name, _ in acknowledged])


def kill_writers(directory: Path, times: int, seed: int) -> None:
    chance = random.Random(seed)
    for turn in range(times):
        path = directory / f"{turn}.db"
        with writing(path) as child:
            acknowledged = acknowledged_by(child, chance.randint(1, 60))
        check(path, [name for name, _ in acknowledged])


def test_what_was_acknowledged_survives_a_power_cut_and_a_kill(tmp_path: Path) -> None:
    for name, loss in (("power", lose_power), ("kill", kill_writers)):
        (tmp_path / name).mkdir()
        loss(tmp_path / name, times=1, seed=1)


@pytest.mark.long
def test_what_was_acknowledged_survives_many_power_cuts(tmp_path: Path) -> None:
    lose_power(tmp_path, times=rounds(20), seed=2)


@pytest.mark.long
def test_what_was_acknowledged_survives_many_kills(tmp_path: Path) -> None:
    kill_writers(tmp_path, times=rounds(30), seed=3)
