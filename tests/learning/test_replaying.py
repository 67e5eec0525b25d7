"""Learning is a function of the ledger: the same events give the same book, and the same stream the same events."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.learning.traffic import hear, traffic
from tests.storage.replaying import matches_replay

from acefraud.core.playbook import PlaybookState
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.learning.review import review
from acefraud.roles.embedded.reflector import EmbeddedReflector
from acefraud.roles.reflector import Reflector
from acefraud.storage import open_playbook
from acefraud.storage.playbook import BulletPlaybook
from acefraud.storage.sqlite import SqliteLedger

pytestmark = pytest.mark.wide

ROOT = Path(__file__).parents[2]
START = datetime(2024, 3, 1, tzinfo=UTC)


def lived(playbook: BulletPlaybook, seed: int, most_bullets: int = 150) -> BulletPlaybook:
    """A playbook after a stream with a pattern that comes and goes."""
    reflector = Reflector(seed=seed)
    learner = Learner(playbook, reflector=reflector, options=LearnerOptions(seed=seed, most_bullets=most_bullets))
    some = traffic(300, 103).rows
    asyncio.run(learner.decide_all(some))
    for index, share in enumerate((0.05, 0.0, 0.05)):
        hear(learner, traffic(600, 101 + index, share=share))
    return playbook


@pytest.fixture(scope="module")
def book() -> BulletPlaybook:
    """A playbook that lived with the seed 1; nobody writes into it."""
    return lived(BulletPlaybook(clock=lambda: START), 1)


def bytes_of(playbook: BulletPlaybook) -> str:
    """All of a book, down to the bytes that a checkpoint keeps."""
    state = PlaybookState()
    for event in playbook.ledger.read():
        state.apply(event)
    kept = state.checkpoint()
    return hashlib.sha256(kept.header.model_dump_json().encode() + kept.bullets).hexdigest()


def test_the_same_events_give_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    with BulletPlaybook(SqliteLedger.open(path), clock=lambda: START) as book:
        lived(book, 1)
        assert matches_replay(book)
        written = bytes_of(book)
        state = book._state.checkpoint()
    with open_playbook(path) as again:
        assert matches_replay(again)
        assert again._state.checkpoint() == state, "from a checkpoint and the events after it"
        assert bytes_of(again) == written


def test_the_same_stream_with_the_same_seed_gives_the_same_events(book: BulletPlaybook) -> None:
    same, other = (lived(BulletPlaybook(clock=lambda: START), seed) for seed in (1, 2))
    assert list(book.ledger.read()) == list(same.ledger.read())
    assert bytes_of(book) == bytes_of(same) != bytes_of(other)
    assert book.get_bullets_for_node("fraud_detection")


def test_a_review_is_a_function_of_cases_book_and_seed(book: BulletPlaybook) -> None:
    learner = Learner(book)
    cases, snapshot, turn = learner.remembered(), book.snapshot(), book.learning().reviews
    before = book.ledger.last_seq()
    plans = [review(cases, snapshot, EmbeddedReflector(seed=1), LearnerOptions(), turn=turn) for _ in range(2)]
    assert plans[0] == plans[1]
    assert plans[0].weights
    assert (book.ledger.last_seq(), book.snapshot()) == (before, snapshot), "nothing is written"


PRINTED = """
from acefraud.storage.playbook import BulletPlaybook
from tests.learning.test_replaying import START, bytes_of, lived
print(bytes_of(lived(BulletPlaybook(clock=lambda: START), 1, most_bullets=6)))
"""


@pytest.mark.long
def test_the_book_is_the_same_in_every_process() -> None:
    """What made room for stronger bullets used to go in the order of a set, another one in each process."""
    books = set()
    for hash_seed in ("1", "2", "3"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        books.add(subprocess.check_output([sys.executable, "-c", PRINTED], text=True, cwd=ROOT, env=env))
    assert len(books) == 1
