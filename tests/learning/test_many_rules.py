"""Many rules by hand, and books that are full: learning goes on, and what people wrote stays.

Before, a book with as many bullets as it may have learnt nothing more, whoever had written them: 150 rules by hand
switched learning off for good.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from tests.learning.traffic import bullets_of, hear, names_it, traffic
from tests.storage.replaying import matches_replay

from acefraud.core.bullet import DEFAULT_NODE, Bullet, Evidence, Record, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.events import StatusChanged
from acefraud.core.transaction import Verdict
from acefraud.core.transactions import Cases
from acefraud.engine.options import LearnerOptions
from acefraud.learning.learner import Learner
from acefraud.storage.playbook import BulletPlaybook

pytestmark = pytest.mark.wide

SHOPS = ("books", "food", "fuel", "games", "gifts", "toys")
CHANNELS = ("app", "shop", "web")
SELDOM = LearnerOptions(review_least=40)
"""Fewer reviews than usual, where it does not matter how many there are."""


def rules(count: int, seed: int) -> dict[str, Verdict]:
    """Conditions on the facts of the stream and what they argue for, at random: most are beside the point."""
    dice = np.random.default_rng(seed)
    found: dict[str, Verdict] = {}
    while len(found) < count:
        more, less = dice.choice([">", "<"], 2)
        tests = [
            f"amount_paid {more} {dice.lognormal(4, 1):.2f}",
            f"customer_age {less} {dice.exponential(300):.0f}",
            f"tries_made {more} {dice.integers(0, 5)}",
            f'shop_kind is "{dice.choice(SHOPS)}"',
            f'channel_used is "{dice.choice(CHANNELS)}"',
        ]
        chosen = dice.choice(len(tests), size=dice.integers(1, 4), replace=False)
        found[" and ".join(tests[at] for at in chosen)] = Verdict.of(bool(dice.random() < 0.5))
    return found


def book_with(count: int, seed: int) -> BulletPlaybook:
    playbook = BulletPlaybook()
    with playbook.unit_of_work(who="ana"):
        for condition, argues in rules(count, seed).items():
            content = f"{condition}: {argues.lower()}"
            playbook.add_bullet(content, condition=Condition.parse(condition), argues=argues, who="ana")
    return playbook


def learnt_in(learner: Learner) -> list[Bullet]:
    return [bullet for bullet in bullets_of(learner) if bullet.source is not Source.MANUAL]


def average_precision(p: npt.NDArray[np.float64], labels: npt.NDArray[np.bool_]) -> float:
    hits = labels[np.argsort(-p, kind="stable")]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())


def after_a_stream(playbook: BulletPlaybook, seed: int) -> tuple[Learner, float, float]:
    """A learner that heard of some traffic; its accuracy and average precision on what comes next."""
    learner = Learner(playbook, options=LearnerOptions(seed=seed))
    hear(learner, traffic(3000, 100 + seed, share=0.08))
    fresh = traffic(4000, 200 + seed, share=0.08)
    p = learner.score_all(fresh.rows).probabilities
    return learner, float(np.mean((p >= 0.5) == fresh.labels)), average_precision(p, fresh.labels)


@cache
def without_rules(seed: int) -> tuple[Learner, float, float]:
    return after_a_stream(BulletPlaybook(), seed)


@pytest.mark.parametrize(
    ("count", "seed"),
    [
        (150, 1),
        pytest.param(300, 2, marks=pytest.mark.long),
        *(pytest.param(1000, seed, marks=pytest.mark.long) for seed in (1, 2, 3)),
    ],
)
def test_learning_goes_on_beside_many_rules_by_hand(count: int, seed: int) -> None:
    alone, right_alone, precise_alone = without_rules(seed)
    beside, right, precise = after_a_stream(book_with(count, seed), seed)
    print(f"{count} rules, seed {seed}: {right:.4f} beside {right_alone:.4f}, {precise:.3f} beside {precise_alone:.3f}")
    assert learnt_in(beside)
    # Where a rule by hand holds on nearly the same cases as the pattern, only a part of it is learnt as well.
    assert names_it(learnt_in(beside), seed, least=0.5)
    assert right >= right_alone - 0.02
    assert precise >= precise_alone - 0.03
    by_hand = [each for each in beside.playbook.snapshot().bullets.values() if each.source is Source.MANUAL]
    assert len(by_hand) == count
    assert {bullet.status for bullet in by_hand} == {Status.ACTIVE}
    assert len(learnt_in(alone)) <= 150
    assert matches_replay(beside.playbook)


def test_the_same_rule_by_hand_and_learnt_counts_once() -> None:
    """Each used to get the whole weight that was fitted for their condition, so that it counted twice."""
    learner = Learner(BulletPlaybook(), options=SELDOM)
    past, more = traffic(2000, 31, share=0.08), traffic(2000, 32, share=0.08)
    hear(learner, past)
    strongest = max(learnt_in(learner), key=lambda one: abs(one.weight or 0.0))
    assert strongest.condition is not None
    mine = learner.playbook.add_bullet(
        "My own words", condition=strongest.condition, argues=strongest.argues, who="ana"
    )
    also_mine = learner.playbook.add_bullet("Said again", condition=strongest.condition, argues=strongest.argues)
    hear(learner, more)
    bullets = learner.playbook.snapshot().bullets
    in_use = [
        bullet
        for bullet in bullets.values()
        if bullet.condition == strongest.condition and bullet.status is Status.ACTIVE
    ]
    assert {each.id for each in in_use} == {mine, also_mine}
    assert sum(each.weight != 0 for each in in_use) == 1
    assert bullets[strongest.id].status is Status.RETIRED


def test_the_words_of_people_are_not_rewritten() -> None:
    """A rule by hand that the engine had questioned came back in the words of the engine."""
    learner = Learner(BulletPlaybook(), options=SELDOM)
    condition = Condition.parse('tries_made > 3 and shop_kind is "gifts"')
    evidence = Evidence(learnt=Record(support=100, frauds=100), base_rate=0.03, cases=2000)
    mine = learner.playbook.add_bullet(
        "Many tries in the gift shop", condition=condition, argues=Verdict.DECLINE, evidence=evidence, who="ana"
    )
    learner.playbook.set_status(mine, Status.CANDIDATE, why="outside its interval")
    hear(learner, traffic(2000, 33, share=0.05, fraud=0.8))
    found = learner.playbook.get_bullet(mine)
    assert found is not None
    assert (found.content, found.argues) == ("Many tries in the gift shop", Verdict.DECLINE)
    assert found.status is Status.ACTIVE
    assert found.evidence is not None
    low, high = found.evidence.interval
    assert low <= 0.8 <= high < 1.0, "what was measured is what holds now"
    learner.playbook.set_status(mine, Status.CANDIDATE, why="outside its interval")
    hear(learner, traffic(2000, 34, share=0.05, fraud=0.8))
    moves = [
        event.payload for event in learner.playbook.ledger.history(mine) if isinstance(event.payload, StatusChanged)
    ]
    assert [move.status for move in moves] == [Status.CANDIDATE, Status.ACTIVE] * 2, "back for good each time"


# --- a full book --------------------------------------------------------------------------------------------------


def strength(learner: Learner, bullet: Bullet) -> float:
    assert bullet.condition is not None
    support = int(bullet.condition.holds_in(learner.remembered().facts).sum())
    return float(abs(bullet.weight or 0.0) * np.sqrt(support))


def test_in_a_full_book_stronger_newcomers_take_the_place_of_the_weakest() -> None:
    """Before, a full book asked for nothing new: a pattern that came later was never named."""
    playbook = BulletPlaybook()
    mine = [playbook.add_bullet(f"amount_paid > {800 + n}: decline", who="ana") for n in range(12)]
    learner = Learner(playbook, options=LearnerOptions(most_bullets=10))
    learner.study(Cases((past := traffic(4000, 41)).rows, past.labels))
    pinned = learnt_in(learner)[-1].id
    playbook.set_status(pinned, Status.PINNED, who="ana", why="ours")
    for start in range(0, 4000, 500):
        hear(learner, traffic(4000, 42, share=0.05).part(slice(start, start + 500)))
        learnt = [each for each in learnt_in(learner) if each.status is not Status.PINNED]
        assert len(learnt) <= 10
    assert names_it(bullets_of(learner), 4), "the newcomers are there"
    bullets = playbook.snapshot().bullets
    assert bullets[pinned].status is Status.PINNED
    assert {bullets[each].status for each in mine} == {Status.ACTIVE}
    changes = [event.payload for event in playbook.ledger.read() if isinstance(event.payload, StatusChanged)]
    reason = "the playbook holds at most 10 learnt bullets, and stronger ones took its place"
    dropped = [change.bullet_id for change in changes if change.reason == reason]
    assert dropped
    assert not {*mine, pinned} & set(dropped)
    assert matches_replay(playbook)


def test_those_that_go_are_the_weakest() -> None:
    learner = Learner(BulletPlaybook(), options=SELDOM)
    hear(learner, traffic(3000, 43, share=0.05))
    assert len(learnt_in(learner)) > 6
    small = Learner(learner.playbook, options=LearnerOptions(most_bullets=5))
    before = {each.id for each in learnt_in(learner)}
    reviewed = small.review()
    stay = learnt_in(small)
    assert len(stay) == 5
    gone = [bullet for each in reviewed.retired if (bullet := learner.playbook.get_bullet(each)) is not None]
    crowded_out = [each for each in gone if "at most 5" in _why(learner, each.id) and each.id in before]
    assert crowded_out
    assert max(strength(small, each) for each in crowded_out) <= min(strength(small, each) for each in stay)


def _why(learner: Learner, bullet_id: str) -> str:
    last = learner.playbook.ledger.history(bullet_id)[-1].payload
    return last.reason if isinstance(last, StatusChanged) else ""


def test_the_limit_is_per_node() -> None:
    playbook = BulletPlaybook()
    one, other = (
        Learner(playbook, options=replace(SELDOM, node=node, most_bullets=3)) for node in (DEFAULT_NODE, "payouts")
    )
    hear(one, traffic(1500, 44, share=0.05))
    hear(other, traffic(1500, 45, share=0.05))
    for learner in (one, other):
        assert 1 <= len(playbook.get_bullets_for_node(learner.options.node)) <= 3


def test_a_limit_set_in_training_holds_for_later_learners() -> None:
    playbook = BulletPlaybook()
    past = traffic(3000, 46, share=0.05)
    Learner(playbook, options=LearnerOptions(most_bullets=4)).study(Cases(past.rows, past.labels))
    assert 1 <= len(playbook.get_bullets_for_node(DEFAULT_NODE)) <= 4
    later = Learner(playbook, options=SELDOM)
    hear(later, traffic(2000, 47, share=0.05))
    later.review()
    assert len(playbook.get_bullets_for_node(DEFAULT_NODE)) <= 4
    calibration = playbook.snapshot().calibration(DEFAULT_NODE)
    assert calibration is not None
    assert calibration.most_bullets == 4
