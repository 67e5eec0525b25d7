"""Several learners on one file: one memory, one schedule, and as good a book as that of one learner alone.

Before, each process remembered what was there when it began and what it heard itself. Of two that took turns with 400
outcomes one remembered 200 and the other 240, and both wrote to the same book.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.learning.traffic import Traffic, bullets_of, hear, names_it, traffic
from tests.storage.replaying import matches_replay

from acefraud.core.events import OutcomeHeard, Reviewed
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.storage import open_playbook
from acefraud.storage.playbook import BulletPlaybook

pytestmark = pytest.mark.wide

ROOT = Path(__file__).parents[2]


def test_two_learners_that_hear_half_of_a_stream_each_remember_all_of_it(tmp_path: Path) -> None:
    path, stream = tmp_path / "book.db", traffic(1600, 51, share=0.05)
    with open_playbook(path) as one, open_playbook(path) as other:
        learners = [Learner(book, options=LearnerOptions(review_least=30)) for book in (one, other)]
        for turn, start in enumerate(range(0, len(stream), 40)):
            hear(learners[turn % 2], stream.part(slice(start, start + 40)))
        first, second = (learner.remembered() for learner in learners)
        assert first.ids.tolist() == second.ids.tolist() == stream.rows.ids.tolist()
        assert first.labels.tolist() == second.labels.tolist() == stream.labels.tolist()
        assert [first.facts.row(n) for n in range(0, 1600, 37)] == [second.facts.row(n) for n in range(0, 1600, 37)]
        for playbook in (one, other):
            playbook.refresh()
            assert matches_replay(playbook)
        assert one.snapshot() == other.snapshot()
        reviews = [event.payload for event in one.ledger.read() if isinstance(event.payload, Reviewed)]
        assert not any(review.declined for review in reviews)
        assert max(review.cases for review in reviews) > 1000, "of all cases, whoever heard them"
        assert names_it(bullets_of(learners[0]), 51)


def test_taking_turns_makes_the_same_book_as_one_learner_alone(tmp_path: Path) -> None:
    stream = traffic(800, 52, share=0.06)
    alone = Learner(BulletPlaybook())
    hear(alone, stream, 40)
    with open_playbook(tmp_path / "book.db") as one, open_playbook(tmp_path / "book.db") as other:
        learners = [Learner(one), Learner(other)]
        for turn, start in enumerate(range(0, len(stream), 40)):
            hear(learners[turn % 2], stream.part(slice(start, start + 40)), 40)
        one.refresh()
        same = [(b.id, b.content, b.weight, b.status, b.record) for b in one.snapshot().bullets.values()]
    book = alone.playbook.snapshot().bullets.values()
    assert same == [(b.id, b.content, b.weight, b.status, b.record) for b in book]
    assert same


def test_a_review_that_another_learner_did_meanwhile_is_not_done_again(tmp_path: Path) -> None:
    stream = traffic(400, 53, share=0.1)
    with open_playbook(tmp_path / "book.db") as one, open_playbook(tmp_path / "book.db") as other:
        first, second = Learner(one), Learner(other)
        hear(first, stream.part(slice(0, 300)))
        done = [event for event in one.ledger.read() if isinstance(event.payload, Reviewed)]
        assert done
        (heard,) = hear(second, stream.part(slice(300, 301)))
        assert heard.review is None
        assert len([event for event in one.ledger.read() if isinstance(event.payload, Reviewed)]) == len(done)


# --- processes of their own ---------------------------------------------------------------------------------------

HEARING = """
import sys
from pathlib import Path
from acefraud import Learner, open_playbook
from tests.learning.traffic import hear, traffic

path, seed, count, place, of = Path(sys.argv[1]), *map(int, sys.argv[2:])
stream = traffic(count, seed, share=0.05)
with open_playbook(path) as book:
    learner = Learner(book)
    print("opened", flush=True)
    sys.stdin.readline()
    for turn, start in enumerate(range(0, count, 20)):
        if turn % of == place:
            for one in hear(learner, stream.part(slice(start, start + 20)), 20):
                if one.review is not None and one.review.declined:
                    print(f"declined: {one.review.declined}", flush=True)
"""


def heard_by(path: Path, seed: int, count: int, processes: int) -> list[str]:
    """Let processes of their own hear of a stream between them; what they said of reviews that came to nothing."""
    with open_playbook(path):
        pass
    children = [
        subprocess.Popen(
            [sys.executable, "-c", HEARING, str(path), str(seed), str(count), str(index), str(processes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        )
        for index in range(processes)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "opened\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    said = [child.communicate(timeout=600)[0] for child in children]
    assert [child.returncode for child in children] == [0] * processes
    return [line for lines in said for line in lines.splitlines()]


def accuracy(learner: Learner, fresh: Traffic) -> float:
    return float(np.mean((learner.score_all(fresh.rows).probabilities >= 0.5) == fresh.labels))


@cache
def accuracy_alone(seed: int, count: int) -> float:
    """That of one learner, which the runs with several processes are held against."""
    single = Learner(BulletPlaybook())
    hear(single, traffic(count, seed, share=0.05), 20)
    return accuracy(single, traffic(2000, seed + 1000, share=0.05))


@pytest.mark.long
@pytest.mark.parametrize("processes", [2, 8])
def test_processes_on_one_file_learn_as_well_as_one_learner(tmp_path: Path, processes: int) -> None:
    seeds, count = (61, 62, 63), 4000
    alone, together = [], []
    for seed in seeds:
        fresh, stream = traffic(2000, seed + 1000, share=0.05), traffic(count, seed, share=0.05)
        alone.append(accuracy_alone(seed, count))
        path = tmp_path / f"{seed}.db"
        declined = heard_by(path, seed, count, processes)
        with open_playbook(path) as book:
            learner = Learner(book)
            heard = Counter(
                event.payload.subject for event in book.ledger.read() if isinstance(event.payload, OutcomeHeard)
            )
            assert heard == Counter(stream.rows.ids.tolist()), "each once"
            assert matches_replay(book)
            remembered = learner.remembered()
            truth = dict(zip(stream.rows.ids.tolist(), stream.labels.tolist(), strict=True))
            assert dict(zip(remembered.ids.tolist(), remembered.labels.tolist(), strict=True)) == truth
            together.append(accuracy(learner, fresh))
            reviews = [event.payload for event in book.ledger.read() if isinstance(event.payload, Reviewed)]
            assert names_it(bullets_of(learner), seed)
        print(f"{processes} processes, seed {seed}: {together[-1]:.4f}, alone {alone[-1]:.4f}; ", end="")
        print(f"{len(reviews)} reviews, {len(declined)} declined {declined[:1]}")
    assert np.mean(together) >= np.mean(alone) - 0.015


def test_an_outcome_that_reaches_two_learners_counts_once(tmp_path: Path) -> None:
    stream = traffic(60, 54, share=0.1)
    with open_playbook(tmp_path / "book.db") as one, open_playbook(tmp_path / "book.db") as other:
        first, second = (Learner(each, options=LearnerOptions(review_least=10**9)) for each in (one, other))
        asyncio.run(first.hear_all(stream.outcomes, stream.rows))
        again = asyncio.run(second.hear_all(stream.outcomes, stream.rows))
        assert all(heard.already_known for heard in again)
        assert len(second.remembered()) == len(first.remembered()) == 60
        assert one.ledger.last_seq() == 60
