"""acefraud as its users run it: a learner on a playbook, with the shipped defaults."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

import numpy as np

from acefraud import BulletPlaybook, Cases, HybridSelector, Learner, LearnerOptions, Outcome, open_playbook
from benchmarks.arrays import UNKNOWN, Counts, Micros, Numbers
from benchmarks.quality.evidence import EvidenceHeld, evidence_held
from benchmarks.quality.streams import BATCH

NODE = "fraud_detection"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _learner(playbook: BulletPlaybook, seed: int, *, explore: bool = True) -> Learner:
    selector = HybridSelector(seed=seed, explore=explore)
    return Learner(playbook, selector=selector, options=LearnerOptions(seed=seed))


def _load_models() -> None:
    """Load the embedder and the reader of bullets before the clock starts, as the libraries of the others are."""
    HybridSelector().embedder.embed(["loads the model"])
    BulletPlaybook().add_bullet("Amount above 2,000 and a VPN: decline", NODE)


class Playbook:
    """Offline: learns a playbook from the training rows, then cites at most ten bullets per decision."""

    rows_cap = None
    fitted_as = "playbook"
    explore = True
    every_bullet = False

    def __init__(self, seed: int) -> None:
        _load_models()
        self._seed = seed
        self.learnt = BulletPlaybook()
        self.cited: Counts | None = None

    @property
    def settings(self) -> str:
        """The shipped defaults, and what differs from them."""
        picks = "every bullet that fires" if self.every_bullet else f"{LearnerOptions().n_bullets} bullets a decision"
        return f"shipped defaults, {picks}{'' if self.explore else ', without draws'}"

    @property
    def size(self) -> int:
        """Bullets in the playbook."""
        return len(self.learnt.get_bullets_for_node(NODE))

    def fit(self, train: Cases, mapping: str) -> None:
        """Learn from all rows at once."""
        _learner(self.learnt, self._seed).study(train, mapping=mapping, both_labels=False)

    def score(self, test: Cases) -> Numbers:
        """The probability of fraud."""
        learner = _learner(self.learnt, self._seed, explore=self.explore)
        scores = learner.score_all(test.transactions, every_bullet=self.every_bullet)
        self.cited = scores.cited
        return scores.probabilities

    def evidence_held(self, test: Cases) -> EvidenceHeld:
        """How many bullets stay inside the interval that was printed when they were learnt."""
        return evidence_held(self.learnt.get_bullets_for_node(NODE), test.facts, test.labels)


class PlaybookWithoutDraws(Playbook):
    """The same playbook without exploration: the selector uses expected values instead of random draws."""

    explore = False


class WholePlaybook(Playbook):
    """The same playbook, with every bullet that fires instead of ten."""

    every_bullet = True


class OnlinePlaybook:
    """Online only: starts empty and learns from labels as they arrive. Everything is recorded in a file."""

    settings = f"shipped defaults, starts empty, decides and hears {BATCH} rows at a time, all recorded in a file"

    def __init__(self, seed: int) -> None:
        _load_models()
        folder = Path(mkdtemp(prefix="acefraud-online-"))
        playbook = open_playbook(folder / "book.db")
        self._learner = _learner(playbook, seed)
        self._loop = asyncio.new_event_loop()  # one for all batches, as in a service
        finalize(self, _discard, self._loop, playbook, folder)
        self._cited: list[int] = []

    @property
    def size(self) -> int:
        """Bullets in the playbook."""
        return len(self._learner.playbook.get_bullets_for_node(NODE))

    @property
    def cited(self) -> Counts | None:
        """How many bullets each decision cited."""
        return np.array(self._cited, dtype=np.int64) if self._cited else None

    def learn(self, rows: Cases) -> None:
        """Learn from rows whose labels have arrived."""
        self._loop.run_until_complete(self._learner.hear_all(outcomes_of(rows), rows.transactions))

    def predict(self, rows: Cases) -> Numbers:
        """The probability of fraud."""
        decisions = list(self._loop.run_until_complete(self._learner.decide_all(rows.transactions)))
        self._cited += [len(decision.cited) for decision in decisions]
        return np.array([decision.probability for decision in decisions])


def _discard(loop: asyncio.AbstractEventLoop, playbook: BulletPlaybook, folder: Path) -> None:
    loop.close()
    playbook.close()
    rmtree(folder, ignore_errors=True)


def outcomes_of(cases: Cases) -> list[Outcome]:
    """The outcome of each case, with the time at which it became known."""
    return [
        Outcome(transaction_id=name, is_fraud=label, at=at)
        for name, label, at in zip(cases.transactions.ids, cases.labels.tolist(), _times(cases.known_at), strict=True)
    ]


def _times(micros: Micros) -> list[datetime | None]:
    return [None if each == UNKNOWN else _EPOCH + timedelta(microseconds=each) for each in micros.tolist()]
