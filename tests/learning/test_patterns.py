"""Patterns that come, stop and come back in a stream, and what a learner makes of tables.

Before there was one learner, only the loop of the benchmark over columns did all this. The one that people use was not
held to it: a pattern that had ended was still named 3,000 outcomes later.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.learning.traffic import Traffic, bullets_of, hear, names_it, traffic, until

from acefraud.core.bullet import Status
from acefraud.core.events import THE_ENGINE, Reviewed, StatusChanged
from acefraud.core.transactions import Cases
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.roles.embedded.reflector import ReflectorOptions
from acefraud.roles.reflector import Reflector
from acefraud.rules.induction.boosting import InductionOptions
from acefraud.storage.playbook import BulletPlaybook

pytestmark = pytest.mark.wide

QUICK = ReflectorOptions(induction=InductionOptions(rounds=12, searches=1))
WITHIN_CASES = 200
"""Labelled cases of a pattern after which it must be named."""
WITHIN_OUTCOMES = 2_000
"""Outcomes after which a pattern that ended must no longer be named."""


def quick(seed: int = 1, **options: Any) -> Learner:
    return Learner(BulletPlaybook(), reflector=Reflector(QUICK, seed=seed), options=LearnerOptions(**options))


def study(learner: Learner, past: Traffic) -> list[str]:
    return learner.study(Cases(past.rows, past.labels))


@pytest.fixture(scope="module")
def studied() -> Learner:
    learner = quick()
    study(learner, traffic(4000, 1, share=0.03, timed=True))
    return learner


# --- a whole history ----------------------------------------------------------------------------------------------


def test_studying_and_scoring_are_repeatable(studied: Learner) -> None:
    fresh, again = traffic(500, 2, share=0.03), quick()
    study(again, traffic(4000, 1, share=0.03, timed=True))
    assert [(b.id, b.weight) for b in bullets_of(again)] == [(b.id, b.weight) for b in bullets_of(studied)]
    one, other = studied.score_all(fresh.rows), again.score_all(fresh.rows)
    assert (one.probabilities == other.probabilities).all()
    assert (one.cited == other.cited).all()


def test_what_was_studied_tells_frauds_apart(studied: Learner) -> None:
    fresh = traffic(4000, 3, share=0.03)
    p = studied.score_all(fresh.rows).probabilities
    assert p[fresh.planted].min() > np.quantile(p[~fresh.planted], 0.9)
    assert p.mean() == pytest.approx(fresh.labels.mean(), abs=0.02)
    assert names_it(bullets_of(studied), 1)


def test_no_more_are_cited_than_asked_for(studied: Learner) -> None:
    fresh = traffic(1000, 4, share=0.03)
    assert studied.score_all(fresh.rows).cited.max() <= 10
    learner = Learner(studied.playbook, options=LearnerOptions(n_bullets=2))
    assert learner.score_all(fresh.rows).cited.max() == 2
    assert studied.score_all(fresh.rows, every_bullet=True).cited.max() > 2


def test_an_empty_playbook_says_the_same_of_all() -> None:
    learner, rows = Learner(BulletPlaybook()), traffic(5, 0).rows
    scores = learner.score_all(rows)
    assert len(set(scores.probabilities.tolist())) == 1
    assert scores.cited.tolist() == [0] * 5


def test_bullets_learnt_from_a_history_say_when_they_were_seen(studied: Learner) -> None:
    for bullet in bullets_of(studied):
        assert bullet.evidence is not None
        assert bullet.evidence.first_seen is not None


def test_a_studied_playbook_is_not_lost_to_the_first_few_outcomes() -> None:
    learner = quick(2)
    study(learner, traffic(4000, 8, share=0.03, timed=True))
    assert len(learner.remembered()) == 4000
    hear(learner, traffic(500, 9, share=0.03))
    assert names_it(bullets_of(learner), 8)
    fresh = traffic(2000, 10, share=0.03)
    assert learner.score_all(fresh.rows).probabilities[fresh.planted].mean() > 0.5


# --- hearing and remembering --------------------------------------------------------------------------------------


def test_batches_between_reviews_may_be_of_any_size() -> None:
    past, never = traffic(1500, 6, share=0.05), 10**9
    books = []
    for batch in (50, 250):
        learner = quick(review_least=never, watch_every=never, review_at_last=500)
        hear(learner, past, batch)
        books.append([(bullet.id, bullet.weight, bullet.record) for bullet in bullets_of(learner)])
    assert books[0] == books[1]
    assert books[0]


def test_no_more_is_remembered_than_asked_for() -> None:
    options = ReflectorOptions(memory=800, review=InductionOptions(searches=1, rounds=1))
    learner = Learner(BulletPlaybook(), reflector=Reflector(options))
    past = traffic(2500, 7, share=0.03)
    for start in range(0, 2500, 100):
        hear(learner, past.part(slice(start, start + 100)))
        assert len(learner.remembered()) == min(800, start + 100)
    assert learner.remembered().ids.tolist() == past.rows.ids[-800:].tolist()


# --- patterns that come, stop and come back -----------------------------------------------------------------------


def silent_about(learner: Learner, seed: int) -> list[str]:
    """Why the bullets that once named the pattern no longer do, from the ledger."""
    every = learner.playbook.snapshot().bullets.values()
    active = [bullet.model_copy(update={"status": Status.ACTIVE}) for bullet in every]
    once = {bullet.id for bullet in names_it(active, seed)}
    changes = [event.payload for event in learner.playbook.ledger.read() if isinstance(event.payload, StatusChanged)]
    return [change.reason for change in changes if change.bullet_id in once and change.status is not Status.ACTIVE]


def test_a_pattern_is_named_ends_and_comes_back() -> None:
    learner = quick()
    hear(learner, traffic(1000, 11), 250)
    begun = until(learner, traffic(2000, 12, share=0.04), 1, named=True)
    assert begun is not None
    assert begun[1] <= WITHIN_CASES
    hear(learner, traffic(1500, 13, share=0.04), 250)
    ended = until(learner, traffic(2000, 14), 1, named=False)
    assert ended is not None
    assert any("would be usual" in reason for reason in silent_about(learner, 1))
    hear(learner, traffic(500, 15), 250)
    again = until(learner, traffic(2000, 16, share=0.04), 1, named=True)
    assert again is not None
    assert again[1] <= WITHIN_CASES
    for bullet in names_it(bullets_of(learner), 1):
        assert bullet.status_by == THE_ENGINE


def test_what_a_person_retired_stays_retired() -> None:
    learner = quick()
    hear(learner, traffic(2000, 17, share=0.04), 500)
    (named, *_) = names_it(bullets_of(learner), 1)
    learner.playbook.set_status(named.id, Status.RETIRED, who="ana", why="a partner's test cards")
    hear(learner, traffic(1000, 18, share=0.04), 500)
    found = learner.playbook.get_bullet(named.id)
    assert found is not None
    assert (found.status, found.status_by) == (Status.RETIRED, "ana")


def told(name: str, figures: object) -> None:
    """A figure for whoever runs with -s."""
    print(f"{name}: {figures}")


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("before", [6_000, 20_000], ids=["young", "full memory"])
def test_a_new_pattern_is_named_within_two_hundred_of_its_cases(seed: int, before: int) -> None:
    learner = Learner(BulletPlaybook(), options=LearnerOptions(seed=seed))
    hear(learner, traffic(before, seed), 500)
    begun = until(learner, traffic(12_000, seed + 100, share=0.02), seed, named=True)
    told(f"named, {before} before, seed {seed}", begun)
    assert begun is not None
    assert begun[1] <= WITHIN_CASES


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("still_occurs", [False, True])
@pytest.mark.parametrize(("before", "during"), [(3000, 5000), (15_000, 8000)], ids=["young", "full memory"])
def test_a_pattern_that_stops_is_no_longer_named(seed: int, still_occurs: bool, before: int, during: int) -> None:
    learner = Learner(BulletPlaybook(), options=LearnerOptions(seed=seed))
    hear(learner, traffic(before, seed), 500)
    hear(learner, traffic(during, seed + 100, share=0.02), 500)
    assert names_it(bullets_of(learner), seed)
    now = traffic(4000, seed + 200, share=0.02, fraud=0.02) if still_occurs else traffic(4000, seed + 200)
    ended = until(learner, now, seed, named=False)
    told(f"gone, {before} before, still occurs {still_occurs}, seed {seed}", ended)
    assert ended is not None
    assert ended[0] <= WITHIN_OUTCOMES
    assert any("outcomes" in reason for reason in silent_about(learner, seed))
    for start in itertools.count(ended[0], 500):
        if start >= len(now):
            break
        hear(learner, now.part(slice(start, start + 500)))
        if start >= WITHIN_OUTCOMES:
            assert not names_it(bullets_of(learner), seed), "it is not learnt again from what is remembered of it"


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("length", [3_000, 8_000], ids=["young", "full memory"])
def test_a_pattern_that_comes_back_is_named_again(seed: int, length: int) -> None:
    learner = Learner(BulletPlaybook(), options=LearnerOptions(seed=seed))
    for index, share in enumerate((0.0, 0.02, 0.0)):
        hear(learner, traffic(length, seed + 100 * index, share=share), 500)
    assert not names_it(bullets_of(learner), seed)
    again = until(learner, traffic(12_000, seed + 300, share=0.02), seed, named=True)
    told(f"back, {length} each, seed {seed}", again)
    assert again is not None
    assert again[1] <= WITHIN_CASES


def test_every_review_is_in_the_ledger_and_with_the_outcome_that_it_followed() -> None:
    learner = quick()
    heard = hear(learner, traffic(1500, 21, share=0.04))
    reviews = [each.review for each in heard if each.review is not None]
    assert reviews == [event.payload for event in learner.playbook.ledger.read() if isinstance(event.payload, Reviewed)]
    assert any(review.whole for review in reviews)
    assert {each for review in reviews for each in review.added} == set(learner.playbook.snapshot().bullets)
