"""A writer is killed at random moments. What was acknowledged must be there, and nothing half written."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO

import psycopg
import pytest
from tests.effort import rounds
from tests.postgres import database_for
from tests.storage.replaying import cases_of

from acefraud.core.events import DecisionMade, OutcomeHeard
from acefraud.storage.database_address import is_database
from acefraud.storage.open_ledger import open_ledger

pytestmark = pytest.mark.wide

WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from acefraud.core.decision import Decision
from acefraud.core.decision import DecisionRecord
from acefraud.core.events import DecisionMade, OutcomeHeard
from acefraud.core.ledger import Entry, KnownCase
from acefraud.core.outcome import Judgement, Outcome
from acefraud.core.transaction import Case, Transaction
from acefraud.storage.open_ledger import open_ledger

def pair(n):
    transaction = Transaction(id=f"t{n}", facts={"number": n}, text="word " * (n * 37 % 400 + 1))
    decision = Decision(
        id=f"d{n}", transaction=transaction, verdict="APPROVE", probability=0.5, threshold=0.5, base=n, revision=0
    )
    outcome = OutcomeHeard(
        outcome=Outcome(transaction_id=f"t{n}", is_fraud=n % 3 == 0), judgement=Judgement(ruling="unjudged")
    )
    case = Case(transaction=transaction, is_fraud=n % 3 == 0)
    made = DecisionMade(DecisionRecord.whole(decision))
    return [made, outcome], [KnownCase(case, {"number": float(n), "words": n * 1.0}, "1")]

if "://" in sys.argv[1] or not Path(sys.argv[1]).exists():
    import acefraud.storage.migrations  # loaded beforehand, so that the kill falls into the creation
print("opening", flush=True)
with open_ledger(sys.argv[1]) as ledger:
    n = ledger.last_seq() // 2
    while True:
        n += 1
        payloads, cases = pair(n)
        events = ledger.append(Entry(payloads, at=datetime.now(UTC), who="writer", cases=cases))
        print(events[-1].seq, flush=True)
"""

DIES_WHILE_MIGRATING = """
import os, signal, sys
from alembic import op
from acefraud.storage.open_ledger import open_ledger

op.create_index = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
open_ledger(sys.argv[1])
"""


PLACES: dict[str, Callable[[Path, str], str]] = {
    "sqlite": lambda folder, name: str(folder / f"{name}.db"),
    "postgresql": database_for,
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Places for playbooks, by name."""
    return lambda name: PLACES[request.param](tmp_path, name)


def start(script: str, path: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def output(child: subprocess.Popen[str]) -> IO[str]:
    assert child.stdout is not None
    return child.stdout


def killed_after(path: str | Path, acknowledged: int, pause: float) -> int:
    """Kill a writer some time after so many acknowledgements; the last one it gave."""
    with start(WRITER, path) as child:
        lines = [output(child).readline() for _ in range(acknowledged + 1)]
        time.sleep(pause)
        child.send_signal(signal.SIGKILL)
        lines += output(child).readlines()
    assert child.returncode == -signal.SIGKILL
    # A line cut short by the kill acknowledges nothing.
    return max((int(line) for line in lines if line.strip().isdigit() and line.endswith("\n")), default=0)


def check(path: str | Path, acknowledged: int) -> None:
    with open_ledger(path, create=is_database(path)) as ledger:
        events = list(ledger.read())
        cases, remembered = cases_of(ledger), ledger.remembered(len(events))
    assert len(events) >= acknowledged
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len(events) == 2 * len(cases)  # what was appended together is there together
    for n, (first, second, case) in enumerate(zip(events[::2], events[1::2], cases, strict=True), 1):
        assert isinstance(first.payload, DecisionMade)
        assert isinstance(second.payload, OutcomeHeard)
        assert first.payload.decision.base == n
        assert first.payload.decision.transaction == case.transaction
        assert case.transaction.facts == {"number": n}
        assert case.transaction.text == "word " * (n * 37 % 400 + 1)
        assert second.payload.outcome.is_fraud is case.is_fraud is (n % 3 == 0)
        assert (remembered[n - 1].id, remembered[n - 1].facts) == (case.transaction.id, {"number": n, "words": n})
    if not is_database(path):
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def kill_writers(path: str | Path, times: int, seed: int) -> None:
    chance = random.Random(seed)
    last = 0
    for _ in range(times):
        last = max(last, killed_after(path, chance.randint(1, 60), chance.uniform(0, 0.02)))
        check(path, last)
    assert last > 0


def kill_creators(place: Callable[[str], str], times: int, seed: int) -> None:
    chance = random.Random(seed)
    for n in range(times):
        path = place(str(n))
        last = killed_after(path, 0, chance.uniform(0, 0.06))
        there = is_database(path) or Path(path).exists()
        if there:
            check(path, last)
        assert there or not last


def test_what_was_acknowledged_survives_a_few_kills(tmp_path: Path) -> None:
    kill_writers(database_for(tmp_path), times=2, seed=1)


@pytest.mark.long
def test_what_was_acknowledged_survives_many_kills(place: Callable[[str], str]) -> None:
    kill_writers(place("playbook"), times=rounds(100), seed=2)


@pytest.mark.long
def test_many_creations_cut_short_are_completed(place: Callable[[str], str]) -> None:
    kill_creators(place, times=rounds(80), seed=4)


def test_a_kill_within_a_migration_leaves_the_schema_before(place: Callable[[str], str]) -> None:
    path = place("playbook")
    with start(DIES_WHILE_MIGRATING, path) as child:
        child.wait(timeout=60)
    assert child.returncode == -signal.SIGKILL
    if is_database(path):
        with psycopg.connect(path) as server:
            there = "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
            assert server.execute(there).fetchall() == []
    else:
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    check(path, 0)
