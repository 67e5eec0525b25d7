"""The worker takes in what is received until it is told to stop, and outlives errors of the store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.learning.stores import STORES

from acefraud.core.outcome import Outcome
from acefraud.errors import StoreError
from acefraud.learning.learner import Learner
from acefraud.service.learning_worker import LearningWorker, WorkerOptions
from acefraud.storage.playbook import BulletPlaybook

QUICK = WorkerOptions(batch=5, patience=0.2, first_pause=0.01, longest_pause=0.05)
LONG = 60.0
"""Seconds after which a test gives up."""


@pytest.fixture(params=STORES)
def learner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Learner]:
    with BulletPlaybook(STORES[request.param](tmp_path)) as playbook:
        yield Learner(playbook)


@contextmanager
def running(learner: Learner, count: int = 1) -> Iterator[None]:
    """Workers that run within the block, and end with it."""
    stop = Event()
    workers = [
        Thread(target=LearningWorker(Learner(BulletPlaybook(learner.playbook.ledger)), QUICK).run, args=(stop,))
        for _ in range(count)
    ]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join(LONG)
    assert not any(worker.is_alive() for worker in workers)


def eventually(holds: Callable[[], bool]) -> bool:
    waited = Event()
    return any(holds() or waited.wait(0.01) for _ in range(int(LONG / 0.01)))


def receive(learner: Learner, start: int, end: int) -> None:
    outcomes = [Outcome(transaction_id=f"t{n}", is_fraud=n % 2 == 0, id=f"o{n}") for n in range(start, end)]
    learner.receive(outcomes, who="the bank")


def judged(learner: Learner) -> int:
    learner.playbook.refresh()
    return learner.playbook.outcomes


@pytest.mark.parametrize("workers", [1, 3])
def test_what_waits_and_what_comes_later_is_taken_in_once(learner: Learner, workers: int) -> None:
    receive(learner, 0, 30)
    with running(learner, workers):
        assert eventually(lambda: judged(learner) == 30)
        receive(learner, 30, 33)
        assert eventually(lambda: judged(learner) == 33)
    heard = learner.playbook.ledger.transaction_events([f"t{n}" for n in range(33)])
    assert [len(past.outcomes) for past in heard.values()] == [1] * 33


def test_a_worker_that_is_told_to_stop_finishes_its_batch_and_leaves_the_rest(learner: Learner) -> None:
    receive(learner, 0, 30)
    stop, worker = Event(), LearningWorker(learner, QUICK)
    take_in = worker.take_in

    def stopping() -> Any:
        stop.set()
        return take_in()

    worker.take_in = stopping  # type: ignore[method-assign]
    worker.run(stop)
    assert judged(learner) == QUICK.batch


def test_errors_of_the_store_are_logged_and_nothing_is_lost(
    learner: Learner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    receive(learner, 0, 12)
    append, failures = learner.playbook.ledger.append, iter(range(3))

    def failing(entry: Any) -> Any:
        if next(failures, None) is not None:
            raise StoreError("the disk is full")
        return append(entry)

    monkeypatch.setattr(learner.playbook.ledger, "append", failing)
    with caplog.at_level(logging.WARNING, "acefraud"), running(learner):
        assert eventually(lambda: judged(learner) == 12)
    said = [record.getMessage().partition(", trying again in ") for record in caplog.records]
    assert [before for before, _, _ in said] == ["taking in outcomes failed (StoreError)"] * 3
    pauses = [float(after.removesuffix(" s")) for _, _, after in said]
    assert all(longest / 2 <= pause <= longest for pause, longest in zip(pauses, (0.01, 0.02, 0.04), strict=True))


def test_upkeep_is_done_with_and_without_outcomes_and_after_errors(learner: Learner) -> None:
    stop, calls = Event(), list[int]()

    def upkeep() -> None:
        calls.append(learner.playbook.outcomes)
        if len(calls) == 2:
            raise StoreError("the disk is full")
        if len(calls) > 5:
            stop.set()

    receive(learner, 0, 7)
    LearningWorker(learner, QUICK, upkeep=upkeep).run(stop)
    assert calls[:2] == [5, 7]
    assert len(calls) == 6
