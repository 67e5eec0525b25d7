"""What contradicts what: the same from numbers as from asking every bullet."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.bullet import Bullet, Status
from acefraud.core.bullet_table import BulletTable, contradicted_in, opposed
from acefraud.core.condition import Condition, Op, Test
from acefraud.core.transaction import Verdict
from acefraud.storage.playbook import BulletPlaybook

NODES = ("fraud_detection", "another")
FACTS = st.sampled_from(["amount", "hour", "vpn", "channel"])
FIGURES = st.sampled_from([-1.0, -0.0, 0.0, 1.0, 1.04, 1.06, 2.0, 1e308, -1e308])
WORDS = st.sampled_from(["a", "b", "c"])
TESTS = st.one_of(
    st.builds(Test, FACTS, st.sampled_from([Op.ABOVE, Op.AT_LEAST, Op.BELOW, Op.AT_MOST]), FIGURES),
    st.builds(Test, FACTS, st.sampled_from([Op.IS, Op.IS_NOT]), FIGURES | WORDS | st.booleans()),
    st.builds(Test, FACTS, st.sampled_from([Op.IN, Op.NOT_IN]), st.lists(WORDS, min_size=1).map(tuple)),
    st.builds(Test, FACTS, st.sampled_from([Op.MISSING, Op.KNOWN])),
)
CONDITIONS = st.lists(TESTS, min_size=1, max_size=3).map(lambda tests: Condition.of(*tests))
BULLETS = st.builds(
    Bullet,
    id=st.just("b"),
    content=st.just("c"),
    node=st.sampled_from(NODES),
    status=st.sampled_from(Status),
    argues=st.none() | st.sampled_from(Verdict),
    condition=st.none() | CONDITIONS,
)


def numbered(bullets: list[Bullet]) -> list[Bullet]:
    return [bullet.model_copy(update={"id": f"b{index}"}) for index, bullet in enumerate(bullets)]


def plain_walk(table: BulletTable, node: str, condition: Condition, argues: Verdict) -> tuple[str, ...]:
    """As it is defined: every bullet of the node that is in use is asked."""
    in_use = [bullet for bullet in table.values() if bullet.node == node and bullet.status is not Status.RETIRED]
    return tuple(
        bullet.id
        for bullet in in_use
        if opposed(bullet.argues, argues)
        and bullet.condition is not None
        and (bullet.condition.implies(condition) or condition.implies(bullet.condition))
    )


@given(st.lists(st.lists(BULLETS, max_size=12), min_size=1, max_size=3), CONDITIONS, st.sampled_from(Verdict))
def test_the_same_as_by_asking_every_bullet(books: list[list[Bullet]], condition: Condition, argues: Verdict) -> None:
    for bullets in books:
        table = BulletTable.of(numbered(bullets))
        for node in NODES:
            assert contradicted_in(table, node, condition, argues) == plain_walk(table, node, condition, argues)


def random_condition(dice: random.Random) -> Condition:
    facts = dice.sample(["amount", "hour", "age", "distance", "orders", "failures"], dice.randint(1, 3))
    return Condition.of(
        *(Test(fact, dice.choice([Op.ABOVE, Op.AT_LEAST, Op.BELOW]), float(dice.randint(0, 50))) for fact in facts)
    )


def test_over_many_bullets_and_edits() -> None:
    dice, playbook = random.Random(7), BulletPlaybook()
    with playbook.unit_of_work():
        ids = [
            playbook.add_bullet(f"bullet {index}", condition=random_condition(dice), argues=dice.choice([*Verdict]))
            for index in range(1100)
        ]
    for _ in range(40):
        changed = dice.choice(ids)
        bullet = playbook.get_bullet(changed)
        assert bullet is not None
        if dice.random() < 0.5:  # another condition in the same words
            playbook.edit_bullet(changed, bullet.content, condition=random_condition(dice), argues=bullet.argues)
        else:
            playbook.set_status(changed, dice.choice([Status.RETIRED, Status.ACTIVE]))
        condition, argues = random_condition(dice), dice.choice([Verdict.APPROVE, Verdict.DECLINE])
        table = playbook.snapshot().table
        added = playbook.get_bullet(playbook.add_bullet("one more", condition=condition, argues=argues))
        assert added is not None
        assert added.contradicts == plain_walk(table, NODES[0], condition, argues)


def test_a_step_that_came_to_nothing_leaves_no_trace() -> None:
    playbook = BulletPlaybook()
    playbook.add_bullet("amount > 5: decline")
    with pytest.raises(RuntimeError), playbook.unit_of_work():  # noqa: PT012
        playbook.add_bullet("amount > 7: decline")
        raise RuntimeError
    wide = playbook.get_bullet(playbook.add_bullet("amount > 1: approve"))
    assert wide is not None
    assert wide.contradicts == tuple(bullet.id for bullet in playbook.get_bullets_for_node(NODES[0])[:1])


def test_only_conditions_that_share_their_facts_are_found() -> None:
    conditions = [Condition.of(Test(f"fact {index}", Op.ABOVE, 1.0)) for index in range(200)]
    bullets = [Bullet(id=f"b{index}", content="c", condition=each) for index, each in enumerate(conditions)]
    bullets = [bullet.model_copy(update={"argues": Verdict.DECLINE}) for bullet in bullets]
    table = BulletTable.of(bullets)
    for row, condition in enumerate(conditions):
        assert contradicted_in(table, NODES[0], condition, Verdict.APPROVE) == (f"b{row}",)
