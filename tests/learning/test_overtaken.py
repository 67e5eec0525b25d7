"""Learners that share a playbook with people, threads and processes: nothing is decided, learnt or lost unseen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.learning.test_model_lessons import Scripted, proposal, world
from tests.learning.traffic import Traffic, hear, traffic
from tests.storage.acknowledged import Meanwhile
from tests.storage.replaying import cases_of, matches_replay

from acefraud.core.bullet import DEFAULT_NODE, Status
from acefraud.core.events import Reviewed, Trained
from acefraud.core.outcome import Outcome
from acefraud.core.transaction import Case, Transaction
from acefraud.engine.options import LearnerOptions
from acefraud.errors import StoreConflict
from acefraud.learning.hearing import Heard
from acefraud.learning.learner import Learner
from acefraud.learning.model_lessons import ReflectionPolicy
from acefraud.learning.reviewer import ATTEMPTS
from acefraud.roles.reflector import Reflector
from acefraud.selection.hybrid import HybridSelector
from acefraud.storage import open_playbook
from acefraud.storage.memory import MemoryLedger
from acefraud.storage.playbook import BulletPlaybook

pytestmark = pytest.mark.wide


class Shared:
    """A playbook, and the handle of somebody else who acts right before it writes."""

    def __init__(self) -> None:
        below = MemoryLedger()
        self.ledger: Any = Meanwhile(below)
        self.playbook = BulletPlaybook(self.ledger)
        self.theirs = BulletPlaybook(below)

    def meanwhile(self, *acts: Callable[[], object]) -> None:
        self.ledger.acts.extend(acts)

    def adding(self, times: int) -> list[Callable[[], object]]:
        return [lambda n=n: self.theirs.add_bullet(f"Note {n} of ana", who="ana") for n in range(times)]  # type: ignore[misc]


def studied(cases: Sequence[Case], shared: Shared) -> list[str]:
    return Learner(shared.playbook).study(cases, dataset="d")


# --- a training ---------------------------------------------------------------------------------------------------


def test_a_training_that_somebody_else_overtakes_is_worked_out_again_and_kept(toy: Any) -> None:
    cases, shared = toy.cases(120), Shared()
    shared.meanwhile(*shared.adding(1))
    added = studied(cases, shared)
    assert added == studied(cases, Shared()), "a note changes nothing of what the cases teach"
    assert sum(isinstance(event.payload, Trained) for event in shared.ledger.read()) == 1
    assert len(cases_of(shared.ledger)) == 120
    assert {bullet.content for bullet in shared.playbook.snapshot().bullets.values()} >= {"Note 0 of ana"}
    assert matches_replay(shared.playbook)


def test_a_training_that_is_overtaken_every_time_says_by_whom(toy: Any) -> None:
    shared = Shared()
    shared.meanwhile(*shared.adding(ATTEMPTS))
    with pytest.raises(StoreConflict, match=f"ana wrote event {ATTEMPTS} meanwhile"):
        studied(toy.cases(120), shared)
    assert shared.ledger.last_seq() == ATTEMPTS
    assert cases_of(shared.ledger) == []


def test_a_fit_that_somebody_else_overtakes_is_fitted_again(toy: Any) -> None:
    shared = Shared()
    learner = Learner(shared.playbook)
    (first, *_) = learner.study(toy.cases(120))
    shared.meanwhile(lambda: shared.theirs.set_status(first, Status.RETIRED, who="ana"))
    learner.refit()
    shared.playbook.refresh()
    bullet = shared.playbook.get_bullet(first)
    assert bullet is not None
    assert (bullet.status, bullet.status_by) == (Status.RETIRED, "ana")
    assert matches_replay(shared.playbook)


# --- a lesson -----------------------------------------------------------------------------------------------------


async def lived(learner: Learner, cases: Sequence[Case], before_hearing: Callable[[], object]) -> list[Heard]:
    heard = []
    for case in cases:
        await learner.decide(case.transaction)
        before_hearing()
        heard.append(await learner.hear(Outcome(transaction_id=case.transaction.id, is_fraud=case.is_fraud)))
    return heard


def test_a_lesson_that_meets_a_conflict_every_time_is_told_and_stands_in_the_ledger() -> None:
    """Whoever reflects: the lesson is not written, and nobody has to guess that there was one."""
    shared = Shared()
    reflector = Reflector(model=Scripted(lambda _: proposal("amount > 500 and vpn is true")))
    learner = Learner(shared.playbook, reflector=reflector, policy=ReflectionPolicy(together=1))
    notes = iter(range(10**6))

    def busy() -> None:
        """From the second writing on: the first is the outcome itself."""
        note = f"Note {next(notes)} of ana"
        shared.ledger.acts[:] = [lambda: None]
        shared.ledger.acts += [lambda n=n: shared.theirs.add_bullet(f"{note}, {n}", who="ana") for n in range(ATTEMPTS)]

    heard = asyncio.run(lived(learner, world(60), busy))
    shared.ledger.acts.clear()
    told = [each.review for each in heard if each.review is not None]
    assert told
    assert all(review.declined for review in told)
    assert f"given up after {ATTEMPTS} attempts: ana wrote event" in told[0].declined
    written = [event.payload for event in shared.ledger.read() if isinstance(event.payload, Reviewed)]
    assert written == told
    assert all(bullet.content.startswith("Note") for bullet in shared.playbook.snapshot().bullets.values())


def test_a_review_that_meets_a_conflict_every_time_is_told_and_stands_in_the_ledger() -> None:
    shared, stream = Shared(), traffic(400, 91, share=0.1)
    learner = Learner(shared.playbook)
    shared.meanwhile(lambda: None, *shared.adding(ATTEMPTS))
    (*_, last) = asyncio.run(learner.hear_all(stream.outcomes, stream.rows))
    assert last.review is not None
    assert last.review.declined.startswith(f"given up after {ATTEMPTS} attempts: ana wrote event ")
    assert [event.payload for event in shared.ledger.read() if isinstance(event.payload, Reviewed)] == [last.review]


# --- deciding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "file"])
def test_a_bullet_that_another_handle_retired_is_not_used_again(where: str, tmp_path: Path) -> None:
    if where == "memory":
        one = BulletPlaybook()
        other = BulletPlaybook(one.ledger)
    else:
        one, other = open_playbook(tmp_path / "book.db"), open_playbook(tmp_path / "book.db")
    with one, other:
        bullet_id = one.add_bullet("amount > 2000 and VPN: decline", weight=3.0)
        learner, seen = Learner(one), [Transaction(id=f"t{n}", facts={"amount": 2500, "vpn": True}) for n in range(4)]
        (before,) = asyncio.run(learner.decide_all(seen[:1]))
        assert bullet_id in [reason.bullet_id for reason in before.reasons]
        probability = learner.score_all(seen[:1]).probabilities[0]
        other.set_status(bullet_id, Status.RETIRED, who="ana")
        assert learner.score_all(seen[1:2]).probabilities[0] < probability
        other.set_status(bullet_id, Status.ACTIVE, who="ana")
        assert learner.score_all(seen[1:2]).probabilities[0] == probability
        other.set_status(bullet_id, Status.RETIRED, who="ana")
        after = asyncio.run(learner.decide_all(seen[1:3]))
        assert all(bullet_id not in [reason.bullet_id for reason in each.reasons] for each in after)
        assert all(each.revision == other.snapshot().revision for each in after)
        other.set_status(bullet_id, Status.ACTIVE, who="ana")
        again = asyncio.run(learner.decide(seen[3]))
        assert bullet_id in [reason.bullet_id for reason in again.reasons]


# --- what threads may share ---------------------------------------------------------------------------------------


def parts(stream: Traffic, count: int) -> list[Traffic]:
    size = len(stream) // count
    return [stream.part(slice(start, start + size)) for start in range(0, len(stream), size)]


def test_threads_that_share_a_learner_decide_as_one_would() -> None:
    learner, stream = Learner(BulletPlaybook()), traffic(1200, 92, share=0.1)
    learner.playbook.add_bullet("Nervous callers ask for gifts: decline")
    hear(learner, stream)
    fresh = traffic(400, 93, share=0.1)
    expected = [(d.id, d.probability, d.reasons) for d in asyncio.run(learner.decide_all(fresh.rows))]
    scored = learner.score_all(fresh.rows).probabilities
    other = Learner(BulletPlaybook(learner.playbook.ledger), selector=HybridSelector())

    def decide(part: Traffic) -> list[tuple[Any, ...]]:
        assert np.isfinite(other.score_all(part.rows).probabilities).all()
        return [(d.id, d.probability, d.reasons) for d in asyncio.run(other.decide_all(part.rows))]

    with ThreadPoolExecutor(4) as threads:
        decided = [each for some in threads.map(decide, parts(fresh, 8)) for each in some]
    assert decided == expected
    assert np.array_equal(other.score_all(fresh.rows).probabilities, scored)


def test_threads_that_share_a_learner_hear_of_everything_once(tmp_path: Path) -> None:
    stream = traffic(1600, 94, share=0.05)
    with open_playbook(tmp_path / "book.db") as playbook:
        learner = Learner(playbook, options=LearnerOptions(review_least=20))
        with ThreadPoolExecutor(4) as threads:
            heard = [
                each for some in threads.map(lambda part: hear(learner, part, 50), parts(stream, 4)) for each in some
            ]
        assert not any(each.already_known for each in heard)
        assert sorted(learner.remembered().ids.tolist()) == sorted(stream.rows.ids.tolist())
        assert playbook.outcomes == len(stream)
        told = [each.review for each in heard if each.review is not None]
        written = [event.payload for event in playbook.ledger.read() if isinstance(event.payload, Reviewed)]
        assert sorted(map(str, told)) == sorted(map(str, written))
        assert any(review.added for review in told)
        assert matches_replay(playbook)
        contents = [bullet.content for bullet in playbook.get_bullets_for_node(DEFAULT_NODE)]
        assert len(set(contents)) == len(contents)
