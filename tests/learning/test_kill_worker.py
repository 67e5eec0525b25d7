"""A worker is killed at random moments: every received outcome is heard once, and the same is learnt."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.effort import rounds
from tests.learning.stores import heard_in_turn, learnt
from tests.storage.replaying import matches_replay

from acefraud.core.events import OutcomeHeard, OutcomeReceived
from acefraud.core.outcome import Outcome
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.storage import open_playbook
from acefraud.storage.playbook import BulletPlaybook

PORTION = 60
EAGER = LearnerOptions(review_least=3, watch_every=10)
WORKER = """
import sys
from pathlib import Path
from threading import Event
from acefraud import Learner, LearnerOptions, open_playbook
from acefraud.service.learning_worker import LearningWorker, WorkerOptions

with open_playbook(Path(sys.argv[1])) as book:
    worker = LearningWorker(
        Learner(book, options=LearnerOptions(review_least=3, watch_every=10)), WorkerOptions(batch=7, patience=0.05)
    )
    take_in = worker.take_in

    def reporting():
        taken = take_in()
        print(taken.count, flush=True)
        return taken

    worker.take_in = reporting
    worker.run(Event())
"""


def killed(path: Path, batches: int, pause: float) -> None:
    """Kill a worker some time after so many batches, which may be empty."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as child:
        assert child.stdout is not None
        for _ in range(batches):
            assert child.stdout.readline().strip().isdigit()
        time.sleep(pause)
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL


def check(book: BulletPlaybook) -> int:
    """Every received outcome was heard once, or still waits; how many were heard."""
    book.refresh()
    assert matches_replay(book)
    judged = book.taken_in(EAGER.node)
    events = list(book.ledger.read())
    done = Counter(e.payload.outcome.key for e in events if isinstance(e.payload, OutcomeReceived) and e.seq <= judged)
    heard = Counter(e.payload.outcome.key for e in events if isinstance(e.payload, OutcomeHeard))
    assert heard == done
    return heard.total()


def kill_workers(path: Path, times: int, seed: int, toy: Any) -> None:
    chance, cases = random.Random(seed), iter(toy.cases(times * PORTION, seed))
    with open_playbook(path) as book:
        book.add_bullet("VPN: decline", who="ana")
        learner, progress = Learner(book, options=EAGER), []
        for _ in range(times):
            some = [next(cases) for _ in range(PORTION)]
            learner.decide_all_sync([case.transaction for case in some])
            reports = [Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud) for case in some]
            revised = [each.model_copy(update={"is_fraud": not each.is_fraud}) for each in chance.sample(reports, 3)]
            learner.receive([*reports, *revised], who="the bank")
            killed(path, chance.randint(0, 8), chance.uniform(0, 0.2))
            progress.append(check(book))
        assert len(set(progress)) > times // 2, "workers came at least that far before they were killed"
        finishing = Learner(book, options=EAGER)
        while finishing.take_in_sync().left:
            time.sleep(0.01)
        assert check(book) == times * (PORTION + 3)
        assert learnt(book) == learnt(heard_in_turn(book, EAGER))


@pytest.mark.long
def test_a_worker_survives_many_kills(tmp_path: Path, toy: Any) -> None:
    kill_workers(tmp_path / "book.db", times=rounds(40), seed=2, toy=toy)
