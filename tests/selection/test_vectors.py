"""Vectors are worked out once for each text that is said, and every revision sees its own."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acefraud.core.bullet import Bullet, Status
from acefraud.core.bullet_table import BulletTable
from acefraud.core.calibration import Calibration
from acefraud.core.condition import Condition
from acefraud.core.events import Recalibrated
from acefraud.core.playbook import Snapshot
from acefraud.core.transaction import FactValue, Transaction
from acefraud.roles.embedded.embedder import whole
from acefraud.roles.protocols import EmbedsInProcess, Vectors
from acefraud.selection.hybrid import HybridSelector
from acefraud.selection.stages import BulletVectors, Directions
from acefraud.storage.playbook import BulletPlaybook

NODE = "fraud_detection"
QUERY = Transaction(id="t", text="the query")


class Counting(EmbedsInProcess):
    """An embedder that notes what it is asked for. A vector depends on the text alone."""

    name = "counting"
    threshold = 0.0

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.extend(texts)
        raw = [np.frombuffer(hashlib.sha256(text.encode()).digest()[:6], np.uint8) for text in texts]
        rows = np.array(raw, dtype=np.float32) + 1
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def since(self) -> list[str]:
        """The texts of bullets that were asked for since the last time."""
        asked, self.asked = self.asked, []
        return sorted(text for text in asked if text != QUERY.text)


class FarAway(Counting):
    """One whose vectors come over a network, and which is not told what bullets with a condition say."""

    fetches_ahead = True

    def presentable(self, text: str, facts: Mapping[str, FactValue]) -> str:
        return text or str(facts)

    def presentable_bullet(self, bullet: Bullet) -> str:
        return bullet.content if bullet.condition is None else " and ".join(sorted(bullet.condition.facts))

    async def fetch(self, texts: Sequence[str]) -> None:
        self.asked.extend(texts)


def bullet(place: int, words: str = "", **more: object) -> Bullet:
    return Bullet(id=f"b{place}", content=words or f"bullet {place}").model_copy(update=more)


def playbook_of(count: int) -> BulletPlaybook:
    playbook = BulletPlaybook()
    for index in range(count):
        playbook.add_bullet(f"nervous caller {index}")
    return playbook


def select(selector: HybridSelector, snapshot: Snapshot) -> list[str]:
    return [each.id for each in selector.select_many([QUERY], [{}], snapshot)[0].bullets]


def all_vectors(vectors: BulletVectors, table: BulletTable) -> Vectors:
    return vectors.matrix(table, np.arange(len(table))).vectors


def expected(table: BulletTable) -> Vectors:
    return whole(Counting().embed([each.content for each in table.bullets]))


def check(vectors: BulletVectors, table: BulletTable) -> None:
    assert np.array_equal(all_vectors(vectors, table), expected(table))


@pytest.mark.parametrize("dimensions", [1, 2, 256, 1536, 20_000])
def test_products_of_vectors_have_no_rounding_errors(dimensions: int) -> None:
    dice = np.random.default_rng(dimensions)
    ones = np.ones((1, dimensions))
    given = np.concatenate([ones, ones * 1e-30, ones.cumsum(axis=1), dice.normal(size=(20, dimensions)), 0 * ones])
    rows = whole(given.astype(np.float32))
    products = rows.astype(np.int64) @ rows.T.astype(np.int64)
    assert products.max() < 2**24
    for found in (rows @ rows.T, rows[:, ::-1] @ rows[:, ::-1].T, np.vecdot(rows[:, None], rows)):
        assert (found == products).all()
    cosines = Directions.of(given.astype(np.float32)).cosines(Directions.of(given.astype(np.float32)))
    assert cosines.tolist() == [1.0] * 23 + [0.0]


# --- what is embedded --------------------------------------------------------------------------------------------


def test_what_changes_counters_status_or_weights_embeds_nothing() -> None:
    playbook, embedder = playbook_of(10), Counting()
    selector = HybridSelector(embedding_model=embedder)
    first = next(iter(playbook.snapshot().bullets))
    select(selector, playbook.snapshot())
    assert len(embedder.since()) == 10
    calibration = Calibration(intercept=-1.0, base_rate=0.05)
    acts: list[Callable[[], object]] = [
        lambda: playbook.update_stats(first, is_helpful=True),
        lambda: playbook.update_stats(first, is_helpful=False),
        lambda: playbook.set_status(first, Status.PINNED),
        lambda: playbook.set_status(first, Status.RETIRED),
        lambda: playbook.set_status(first, Status.ACTIVE),
        lambda: playbook.record([Recalibrated(node=NODE, calibration=calibration, weights={first: 0.5})]),
    ]
    for act in acts:
        before = playbook.snapshot().revision
        act()
        assert playbook.snapshot().revision > before
        select(selector, playbook.snapshot())
        assert embedder.since() == []


def test_a_bullet_that_is_added_or_edited_embeds_one_text() -> None:
    playbook, embedder = playbook_of(10), Counting()
    selector = HybridSelector(embedding_model=embedder)
    select(selector, playbook.snapshot())
    embedder.since()
    added = playbook.add_bullet("a late call")
    select(selector, playbook.snapshot())
    assert embedder.since() == ["a late call"]
    playbook.edit_bullet(added, "a very late call")
    select(selector, playbook.snapshot())
    assert embedder.since() == ["a very late call"]
    playbook.edit_bullet(added, "a very late call")  # the same words again
    select(selector, playbook.snapshot())
    assert embedder.since() == []


def test_revisions_that_nobody_looked_at_cost_nothing_of_their_own() -> None:
    playbook, embedder = playbook_of(5), Counting()
    selector = HybridSelector(embedding_model=embedder)
    select(selector, playbook.snapshot())
    embedder.since()
    added = [playbook.add_bullet(f"a late call {index}") for index in range(3)]
    playbook.edit_bullet(added[0], "said first")
    playbook.snapshot()
    playbook.edit_bullet(added[0], "said last")
    playbook.update_stats(added[1], is_helpful=True)
    select(selector, playbook.snapshot())
    assert embedder.since() == ["a late call 1", "a late call 2", "said last"]


def test_the_same_revision_is_looked_at_once() -> None:
    playbook, embedder = playbook_of(5), Counting()
    selector = HybridSelector(embedding_model=embedder)
    first = select(selector, playbook.snapshot())
    embedder.since()
    assert select(selector, playbook.snapshot()) == first
    assert embedder.since() == []


def test_two_selectors_embed_each_text_once_by_themselves() -> None:
    table, embedders = BulletTable.of(bullet(index) for index in range(20)), (Counting(), Counting())
    both = [BulletVectors(embedder) for embedder in embedders]
    for turn in range(3):
        table = table.updated([bullet(20 + turn)])
        for vectors, embedder in zip(both, embedders, strict=True):
            check(vectors, table)
            asked = embedder.since()
            assert not turn or asked == [f"bullet {20 + turn}"]


# --- every revision sees its own ---------------------------------------------------------------------------------


def test_old_snapshots_still_see_their_own_vectors_after_edits() -> None:
    playbook, embedder = playbook_of(6), Counting()
    vectors = BulletVectors(embedder)
    taken = []
    for turn, each in enumerate(list(playbook.snapshot().bullets)):
        taken.append(playbook.snapshot())
        check(vectors, taken[-1].table)
        playbook.edit_bullet(each, f"said in turn {turn}")
        playbook.add_bullet(f"added in turn {turn}")
    embedder.since()
    for snapshot in taken:
        check(vectors, snapshot.table)
    assert embedder.since() == []  # they are still there


def test_a_step_that_is_given_up_leaves_no_trace() -> None:
    playbook, embedder = playbook_of(6), Counting()
    selector = HybridSelector(embedding_model=embedder)
    before = playbook.snapshot()
    first = select(selector, before)
    embedder.since()
    with suppress(ZeroDivisionError), playbook.unit_of_work():
        playbook.add_bullet("a late call")
        playbook.edit_bullet(next(iter(before.bullets)), "said in a step")
        select(selector, playbook.snapshot())
        assert embedder.since() == ["a late call", "said in a step"]
        raise ZeroDivisionError
    assert playbook.snapshot() is before
    assert select(selector, before) == first
    assert embedder.since() == []
    playbook.add_bullet("another call")  # stands in the row that the bullet of the step had
    assert select(selector, playbook.snapshot()) == select(
        HybridSelector(embedding_model=Counting()), playbook.snapshot()
    )
    assert embedder.since() == ["another call"]


moves = st.lists(st.tuples(st.sampled_from(["add", "say", "count", "back", "look"]), st.integers(0, 7)), max_size=40)


@given(moves)
def test_whatever_is_written_and_whenever_it_is_looked_at_the_vectors_are_those_of_the_words(
    given_moves: list[tuple[str, int]],
) -> None:
    vectors, held = BulletVectors(Counting()), [BulletTable.of([bullet(0)])]
    for turn, (move, which) in enumerate(given_moves):
        table = held[-1]
        old = table.bullets[which % len(table)]
        match move:
            case "add":
                held.append(table.updated([bullet(100 + turn, f"added in turn {turn}")]))
            case "say":
                held.append(table.updated([old.model_copy(update={"content": f"said in turn {turn % 6}"})]))
            case "count":
                held.append(table.updated([old.model_copy(update={"helpful_count": turn})]))
            case "back":
                held.append(held[which % len(held)])
            case "look":
                check(vectors, table)
    for table in held:
        check(vectors, table)


# --- embedders that are asked over a network ---------------------------------------------------------------------


def test_what_comes_over_a_network_is_asked_for_where_it_is_wanted_and_once() -> None:
    embedder = FarAway()
    vectors, table = BulletVectors(embedder), BulletTable.of(bullet(index) for index in range(6))
    for rows, asked in ([1, 4], [1, 4]), ([4], []), ([0, 1, 5, 0], [0, 5]), ([0, 1, 2, 3, 4, 5], [2, 3]):
        found = vectors.matrix(table, np.array(rows)).vectors[rows]
        assert embedder.since() == [f"bullet {at}" for at in asked]
        assert np.array_equal(found, whole(Counting().embed([f"bullet {row}" for row in rows])))


def test_what_may_not_be_seen_is_not_asked_for() -> None:
    embedder = FarAway()
    hidden = bullet(0, "card 1234: decline", condition=Condition.parse('card is "1234" and amount > 5'))
    all_vectors(BulletVectors(embedder), BulletTable.of([hidden, bullet(1)]))
    assert embedder.since() == ["amount and card", "bullet 1"]


def test_a_condition_that_changes_what_may_be_seen_is_asked_for_anew() -> None:
    embedder = FarAway()
    vectors = BulletVectors(embedder)
    first = BulletTable.of([bullet(0, "a certain card: decline", condition=Condition.parse('card is "1234"'))])
    assert np.array_equal(all_vectors(vectors, first), whole(embedder.embed(["card"])))
    condition = Condition.parse('card is "1234" and amount > 5')
    second = first.updated([bullet(0, "a certain card: decline", condition=condition)])
    assert np.array_equal(all_vectors(vectors, second), whole(embedder.embed(["amount and card"])))


def test_rows_wanted_bit_by_bit_over_revisions_are_those_of_the_words() -> None:
    dice = random.Random(3)
    vectors, held = BulletVectors(FarAway()), [BulletTable.of([])]
    for turn in range(120):
        held.append(held[-1].updated([bullet(dice.randrange(12), f"said in turn {dice.randrange(9)}")]))
        for table in (held[-1], dice.choice(held)):
            rows = np.flatnonzero(np.array([dice.random() < 0.4 for _ in range(len(table))]))
            if len(rows):
                words = [table.bullets[row].content for row in rows]
                assert np.array_equal(vectors.matrix(table, rows).vectors[rows], whole(Counting().embed(words))), turn
