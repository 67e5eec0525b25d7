"""Learning in the background: outcomes are received by one process and judged by another, or by another thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from acefraud.errors import AcefraudError
from acefraud.learning.learner import Learner
from acefraud.learning.received_outcomes import TakenIn
from acefraud.support.backoff import wait_after

LOG = logging.getLogger(__name__)


class Stop(Protocol):
    """What says that a worker should end, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether it should end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it should end, or for so many seconds. Returns whether it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker works."""

    batch: int = 100
    """Outcomes that are taken in before it looks whether it should end."""
    patience: float = 1.0
    """Seconds that it waits for new events before it looks by itself, as after another worker was killed."""
    first_pause: float = 0.5
    """Seconds before it tries again after an error. The pause doubles with every error in a row..."""
    longest_pause: float = 30.0
    """...up to this."""


class LearningWorker:
    """Judges received outcomes and learns from them until it is told to stop.

    Several may run on one playbook: one at a time takes in outcomes, and the others are there if it ends. A worker may
    be killed at any moment; whoever comes next goes on where it was.

    >>> from threading import Event
    >>> from acefraud import BulletPlaybook, Learner, Outcome
    >>> learner, stop = Learner(BulletPlaybook()), Event()
    >>> _ = learner.receive([Outcome(transaction_id="t1", is_fraud=True)], who="the bank")
    >>> worker = LearningWorker(learner)
    >>> worker.take_in().count, worker.take_in().count
    (1, 0)
    >>> stop.set()
    >>> worker.run(stop)
    """

    def __init__(
        self, learner: Learner, options: WorkerOptions | None = None, *, upkeep: Callable[[], object] = lambda: None
    ) -> None:
        """`upkeep` is called after every batch, and now and then while there is none. It should take little time."""
        self._learner = learner
        self._upkeep = upkeep
        self._options = options or WorkerOptions()
        self._random = Random()

    def run(self, stop: Stop) -> None:
        """Take in outcomes as they come. When told to stop, the batch at hand is finished first."""
        ledger, failures = self._learner.playbook.ledger, 0
        while not stop.is_set():
            try:
                seen = ledger.last_seq()
                if not self.take_in().count:
                    ledger.wait_for_events(seen, self._options.patience)
                self._upkeep()
                failures = 0
            except AcefraudError as problem:  # nothing is lost: what was not recorded still waits
                failures += 1
                first, longest = self._options.first_pause, self._options.longest_pause
                pause = wait_after(failures, first=first, longest=longest, random=self._random)
                LOG.warning("taking in outcomes failed (%s), trying again in %g s", type(problem).__name__, pause)
                stop.wait(pause)

    def take_in(self) -> TakenIn:
        """Take in one batch, and log what was learnt from it."""
        taken = self._learner.take_in_sync(self._options.batch)
        silent = self._learner.hear_silence_sync()
        for told in (*taken.announced, *silent.announced):
            LOG.warning("%s", told)
        for review in (*taken.reviews, *silent.reviews):
            if review.declined:
                LOG.info("nothing was learnt from %d cases: %s", review.cases, review.declined)
            else:
                added, retired = len(review.added), len(review.retired)
                LOG.info("learnt from %d cases: %d bullets added, %d retired", review.cases, added, retired)
        return taken
