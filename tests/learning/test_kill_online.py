"""An online run is killed at random moments: what it acknowledged is there, and it goes on from there."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.effort import rounds
from tests.storage.replaying import cases_of, matches_replay

from acefraud.storage import open_playbook

ONLINE_RUN = """
import asyncio, random, sys
from pathlib import Path
from acefraud import Case, Learner, LearnerOptions, Outcome, Transaction, open_playbook

def case(n):
    chance = random.Random(n)
    amount, vpn = chance.randint(10, 4000), chance.random() < 0.5
    fraud = (amount > 2000 and vpn) != (chance.random() < 0.05)
    return Transaction(id=f"t{n}", facts={"amount": amount, "vpn": vpn}), fraud

async def go_on(book):
    learner = Learner(book, options=LearnerOptions(review_least=3, watch_every=10))
    print("opened", flush=True)
    n = sum(event.payload.kind == "decision_made" for event in book.ledger.read())
    if n and not book.ledger.transaction_events([f"t{n - 1}"])[f"t{n - 1}"].outcomes:
        n -= 1  # the run was cut short between a decision and its outcome
    while True:
        transaction, fraud = case(n)
        await learner.decide(transaction)
        print(f"decided t{n}", flush=True)
        await learner.hear(Outcome(transaction_id=f"t{n}", is_fraud=fraud))
        print(f"heard t{n}", flush=True)
        n += 1

with open_playbook(Path(sys.argv[1])) as book:
    asyncio.run(go_on(book))
"""


def killed(path: Path, acknowledged: int, pause: float) -> list[str]:
    """Kill an online run some time after so many acknowledgements; all that it acknowledged."""
    with subprocess.Popen(
        [sys.executable, "-c", ONLINE_RUN, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(acknowledged + 1)]
        time.sleep(pause)
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    assert lines[0] == "opened\n"
    return [line.strip() for line in lines[1:] if line.endswith("\n")]  # a line cut short acknowledges nothing


def check(path: Path, acknowledged: set[str]) -> int:
    """Everything acknowledged is there, once, and the counters are what the ledger says; how many bullets it has."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with open_playbook(path, create=False) as book:
        assert matches_replay(book)
        for line in acknowledged:
            what, name = line.split()
            events = book.ledger.transaction_events([name])[name]
            found = events.decisions if what == "decided" else events.outcomes
            assert found, f"{line} was acknowledged and is gone"
            assert what == "decided" or len(found) == 1
        cases = {case.transaction.id for case in cases_of(book.ledger)}
        assert {line.split()[1] for line in acknowledged if line.startswith("heard")} <= cases
        return len(book)


def kill_runs(path: Path, times: int, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged: set[str] = set()
    bullets = 0
    for _ in range(times):
        fresh = killed(path, chance.randint(1, 60), chance.uniform(0, 0.03))
        assert not set(fresh) & {line for line in acknowledged if line.startswith("heard")}, "it went on, not again"
        acknowledged |= set(fresh)
        bullets = check(path, acknowledged)
    assert len(acknowledged) > 20 * times
    assert bullets > 0


@pytest.mark.long
def test_an_online_run_survives_many_kills(tmp_path: Path) -> None:
    kill_runs(tmp_path / "book.db", times=rounds(50), seed=2)
