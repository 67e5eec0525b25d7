"""Selecting for many rows at once gives what selecting for one after another gives."""

from __future__ import annotations

import random

import numpy as np
import pytest

from acefraud.core.bullet import Bullet, Evidence, Record, Status
from acefraud.core.bullet_table import packed_flags, unpacked
from acefraud.core.calibration import Calibration
from acefraud.core.condition import Condition
from acefraud.core.playbook import Snapshot
from acefraud.core.table import FactTable
from acefraud.core.transaction import FactValue, Transaction, Verdict
from acefraud.selection.hybrid import HybridSelector
from acefraud.support.arrays import BoolArray

NODE = "fraud_detection"
WANTED = 10
IDS = [f"t{index}" for index in range(60)]
WORDS = ["VPN", "gift cards", "night", "new payee", "large amount", "old account"]


def random_bullet(dice: random.Random, place: int) -> Bullet:
    support = dice.choice([0, 12, 300])
    frauds = round(support * dice.choice([0.0, 0.01, 0.2]))
    below = dice.random() < 0.5
    return Bullet(
        id=f"b{place}",
        content=f"{dice.choice(WORDS)} and {dice.choice(WORDS)} {place}",
        status=Status.PINNED if dice.random() < 0.1 else Status.ACTIVE,
        argues=dice.choice([Verdict.DECLINE, Verdict.APPROVE]),
        condition=Condition.parse(f"amount {'<' if below else '>'} {dice.randrange(1000)}"),
        evidence=Evidence(learnt=Record(support=support, frauds=frauds), base_rate=0.02),
        weight=dice.choice([None, dice.uniform(-3, 3)]),
        helpful_count=dice.choice([0, 2, 40]),
        harmful_count=dice.choice([0, 5, 90]),
    )


def cited_of(
    selector: HybridSelector, bullets: list[Bullet], fired: BoolArray, wanted: int, *, revision: int = 0
) -> BoolArray:
    snapshot = Snapshot(revision, {each.id: each for each in bullets}, {})
    ids = [f"t{index}" for index in range(len(fired))]
    return unpacked(selector.cite(packed_flags(fired), ids, snapshot, node=NODE, n_bullets=wanted), len(bullets))


def one_by_one(selector: HybridSelector, snapshot: Snapshot, rows: list[dict[str, FactValue]]) -> list[list[str]]:
    found = []
    for name, facts in zip(IDS, rows, strict=True):
        chosen = selector.select_many(
            [Transaction(id=name, facts=facts)], [facts], snapshot, node=NODE, n_bullets=WANTED
        )[0]
        found.append(sorted(bullet.id for bullet in chosen.bullets))
    return found


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_columns_give_what_rows_give(seed: int, explore: bool) -> None:
    dice = random.Random(seed)
    base_rate = dice.choice([0.5, 0.05, 0.005])
    bullets = [random_bullet(dice, index) for index in range(dice.choice([1, 9, 50]))]
    calibrations = {NODE: Calibration(intercept=-1.0, base_rate=base_rate)}
    snapshot = Snapshot(dice.randrange(100), {each.id: each for each in bullets}, calibrations)
    rows: list[dict[str, FactValue]] = [{"amount": float(dice.randrange(0, 1000, 40))} for _ in IDS]
    table = FactTable(rows)
    fired = np.column_stack([each.condition.holds_in(table) for each in bullets if each.condition is not None])
    selector = HybridSelector(embedding_model="hashing", seed=seed, explore=explore)
    sets = selector.cite(packed_flags(fired), IDS, snapshot, node=NODE, n_bullets=WANTED)
    cited = unpacked(sets, len(bullets))
    found = [sorted(bullets[at].id for at in np.flatnonzero(row)) for row in cited]
    assert found == one_by_one(selector, snapshot, rows)
    assert not (cited & ~fired).any()
    if len(bullets) == 50:
        assert (fired.sum(axis=1) > WANTED).any()
        assert cited.sum(axis=1).max() == WANTED


@pytest.mark.parametrize("explore", [False, True])
def test_a_bullet_that_an_unknown_fact_leaves_open_changes_nothing_for_those_that_fire(explore: bool) -> None:
    dice = random.Random(3)
    firing = [random_bullet(dice, index) for index in range(16)]
    left_open = [
        each.model_copy(update={"id": f"open-{each.id}", "condition": Condition.parse("hour < 6")}) for each in firing
    ]
    mixed = {each.id: each for pair in zip(left_open, firing, strict=True) for each in pair}
    calibrations = {NODE: Calibration(intercept=-1.0, base_rate=0.05)}
    rows: list[dict[str, FactValue]] = [{"amount": float(dice.randrange(1000))} for _ in IDS]
    # No quality is asked for here: the number of all bullets that pass decides whether a little less will do.
    selector = HybridSelector(0.0, 0.0, embedding_model="hashing", explore=explore)
    for name, facts in zip(IDS, rows, strict=True):
        alone, together = (
            selector.select_many(
                [Transaction(id=name, facts=facts)], [facts], Snapshot(1, book, calibrations), n_bullets=WANTED
            )[0]
            for book in ({each.id: each for each in firing}, mixed)
        )
        found, expected = ([(score.bullet_id, score.thompson) for score in made.scores] for made in (together, alone))
        assert found[: len(expected)] == expected
        assert all(each.id.startswith("open-") for each in together.bullets[len(alone.scores) :])
        assert len(together.bullets) == WANTED


def test_a_bullet_with_a_bad_record_is_not_cited_unless_it_is_pinned() -> None:
    bad = Bullet(id="bad", content="x", condition=Condition.parse("amount > 0"), harmful_count=90)
    pinned = bad.model_copy(update={"id": "pinned", "status": Status.PINNED})
    selector = HybridSelector(embedding_model="hashing", explore=False)
    fired = np.ones((2, 2), dtype=np.bool_)
    assert cited_of(selector, [bad, pinned], fired, 5).tolist() == [[False, True]] * 2


@pytest.mark.parametrize("wanted", [0, 1, 3])
@pytest.mark.parametrize("explore", [False, True])
def test_no_more_are_cited_than_are_wanted(wanted: int, explore: bool) -> None:
    bullets = [random_bullet(random.Random(index), index) for index in range(70)]
    fired = np.random.default_rng(4).random((50, 70)) < 0.1
    selector = HybridSelector(0.0, embedding_model="hashing", explore=explore)
    cited = cited_of(selector, bullets, fired, wanted)
    assert cited.sum(axis=1).tolist() == np.minimum(fired.sum(axis=1), wanted).tolist()


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 2)])
@pytest.mark.parametrize("explore", [False, True])
def test_no_rows_and_no_bullets(shape: tuple[int, int], explore: bool) -> None:
    selector = HybridSelector(embedding_model="hashing", explore=explore)
    bullets = [random_bullet(random.Random(index), index) for index in range(shape[1])]
    assert cited_of(selector, bullets, np.zeros(shape, dtype=np.bool_), 5).shape == shape


def test_with_draws_rows_with_the_same_facts_may_differ_and_ids_and_revision_make_them_the_same_again() -> None:
    bullets = [
        random_bullet(random.Random(index), index).model_copy(update={"harmful_count": 0}) for index in range(30)
    ]
    fired = np.ones((40, 30), dtype=np.bool_)
    selector = HybridSelector(embedding_model="hashing")
    first = cited_of(selector, bullets, fired, 5, revision=3)
    assert len(np.unique(first, axis=0)) > 1
    assert (cited_of(selector, bullets, fired, 5, revision=3) == first).all()
    assert (cited_of(selector, bullets, fired, 5, revision=4) != first).any()
    without = cited_of(selector.without_draws(), bullets, fired, 5, revision=3)
    assert len(np.unique(without, axis=0)) == 1
