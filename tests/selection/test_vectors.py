"""Vectors are worked out once for each text that is said, and every revision sees its own."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acefraud.core.book import Book, Draft
from acefraud.core.bullet import Bullet, Status
from acefraud.core.condition import Condition
from acefraud.core.events import Recalibrated
from acefraud.core.page import REMEMBERED_CHANGES
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import EmbedsInProcess, Vectors
from acefraud.core.scoring import Calibration
from acefraud.core.transaction import FactValue, Transaction
from acefraud.selection.axis import ROUNDING
from acefraud.selection.hybrid import HybridSelector
from acefraud.selection.vectors import BookVectors
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
    for place in range(count):
        playbook.add_bullet(f"nervous caller {place}")
    return playbook


def select(selector: HybridSelector, snapshot: Snapshot) -> list[str]:
    return [each.id for each in selector.select(QUERY, {}, snapshot).bullets]


def all_vectors(vectors: BookVectors, book: Book) -> Vectors:
    return vectors.at(book, np.arange(len(book)))


def expected(book: Book) -> Vectors:
    return Counting().embed([each.content for each in book.values()])


def check(vectors: BookVectors, book: Book) -> None:
    assert np.array_equal(all_vectors(vectors, book), expected(book))


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
    added = [playbook.add_bullet(f"a late call {place}") for place in range(3)]
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


def test_a_second_page_leaves_the_vectors_of_the_first_alone() -> None:
    draft, embedder = Draft(), Counting()
    vectors = BookVectors(embedder)
    for place in range(1_023):
        draft.put(bullet(place))
    check(vectors, draft.book())
    embedder.since()
    for place in (1_023, 1_024, 1_025):
        draft.put(bullet(place))
        check(vectors, draft.book())
        assert embedder.since() == [f"bullet {place}"]
    draft.put(bullet(5, "something else"))
    check(vectors, draft.book())
    assert embedder.since() == ["something else"]


def test_a_selector_with_another_embedder_does_not_make_the_first_begin_anew() -> None:
    draft, embedders = Draft(), (Counting(), Counting())
    for place in range(20):
        draft.put(bullet(place))
    both = [BookVectors(embedder) for embedder in embedders]
    for turn in range(3):
        draft.put(bullet(20 + turn))
        book = draft.book()
        for vectors, embedder in zip(both, embedders, strict=True):
            check(vectors, book)
            asked = embedder.since()
            assert not turn or asked == [f"bullet {20 + turn}"]


def test_more_changes_than_are_remembered_between_two_looks_still_give_the_right_vectors() -> None:
    draft, embedder = Draft(), Counting()
    vectors = BookVectors(embedder)
    held = []
    for place in range(2):
        draft.put(bullet(place))
    check(vectors, draft.book())
    for turn in range(2 * REMEMBERED_CHANGES + 5):
        draft.put(bullet(turn % 3, f"said in turn {turn}"))
        held.append(draft.book())
    check(vectors, held[-1])
    for book in held:
        check(vectors, book)


# --- every revision sees its own ---------------------------------------------------------------------------------


def test_old_snapshots_still_see_their_own_vectors_after_edits() -> None:
    playbook, embedder = playbook_of(6), Counting()
    vectors = BookVectors(embedder)
    taken = []
    for turn, each in enumerate(list(playbook.snapshot().bullets)):
        taken.append(playbook.snapshot())
        check(vectors, taken[-1].book)
        playbook.edit_bullet(each, f"said in turn {turn}")
        playbook.add_bullet(f"added in turn {turn}")
    embedder.since()
    for snapshot in taken:
        check(vectors, snapshot.book)
    assert embedder.since() == []  # they are still there


def test_a_step_that_is_given_up_leaves_no_trace() -> None:
    playbook, embedder = playbook_of(6), Counting()
    selector = HybridSelector(embedding_model=embedder)
    before = playbook.snapshot()
    first = select(selector, before)
    embedder.since()
    with suppress(ZeroDivisionError), playbook.one_step():
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


def test_two_branches_that_add_to_the_same_row_do_not_see_each_other() -> None:
    draft, embedder = Draft(), Counting()
    vectors = BookVectors(embedder)
    for place in range(3):
        draft.put(bullet(place))
    check(vectors, draft.book())
    books = [draft.book()]
    for name in ("one", "two", "three"):
        branch = draft.branched()
        branch.put(bullet(9, f"added by {name}"))
        books.append(branch.book())
        check(vectors, books[-1])
        branch.put(bullet(10, f"and more by {name}"))
        books.append(branch.book())
    draft.put(bullet(3, "added by the draft itself"))
    books.append(draft.book())
    for book in [*reversed(books), *books]:
        check(vectors, book)


moves = st.lists(
    st.tuples(st.sampled_from(["add", "say", "count", "branch", "back", "look", "look back"]), st.integers(0, 7)),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(moves)
def test_whatever_is_written_and_whenever_it_is_looked_at_the_vectors_are_those_of_the_words(
    given_moves: list[tuple[str, int]],
) -> None:
    draft, vectors = Draft(), BookVectors(Counting())
    draft.put(bullet(0))
    drafts, held = [draft], [draft.book()]
    for turn, (move, which) in enumerate(given_moves):
        draft = drafts[-1]
        here = [each.id for each in draft]
        place = int(here[which % len(here)][1:])
        old = draft.get(f"b{place}")
        assert old is not None
        match move:
            case "add":
                draft.put(bullet(len(here) + 100 * len(drafts), f"added in turn {turn}"))
            case "say":
                draft.put(old.model_copy(update={"content": f"said in turn {turn % 6}"}))
            case "count":
                draft.put(old.model_copy(update={"helpful_count": turn}))
            case "branch":
                drafts.append(draft.branched())
            case "back" if len(drafts) > 1:
                drafts.pop()
            case "look":
                check(vectors, draft.book())
            case "look back":
                check(vectors, held[which % len(held)])
        held.append(drafts[-1].book())
    for book in held:
        check(vectors, book)


def three_revisions() -> list[Book]:
    """Of three pages: as they were, with the second one reworded, and with one more bullet at the end."""
    draft = Draft()
    for place in range(2_100):
        draft.put(bullet(place))
    books = [draft.book()]
    draft.put(bullet(1_024, "something else"))
    books.append(draft.book())
    draft.put(bullet(2_100))
    return [*books, draft.book()]


def test_how_far_vectors_lean_to_the_axis_is_that_of_the_very_revision() -> None:
    vectors, books = BookVectors(Counting()), three_revisions()
    axes = set()
    for book in (*books, books[0]):
        known = all_vectors(vectors, book)
        rows = np.array([0, 7, 1_023, 1_024, 1_025, 2_048, len(book) - 1])
        found = vectors.axis(book, rows)
        assert found is not None
        axis, bins = found
        assert bins.tolist() == axis.bins(known[rows]).tolist()
        axes.add(axis.direction.tobytes())
    assert len(axes) == 1


def test_products_are_those_with_the_vectors_of_the_very_revision_up_to_rounding() -> None:
    vectors, books = BookVectors(Counting()), three_revisions()
    other = Counting().embed(["one", "two", "three"])
    for book in (*books, books[0]):
        known = expected(book).astype(np.float64)
        for vector in (other[0], -other[1], other.sum(axis=0)):
            for rows in (np.arange(len(book)), np.array([0, 1_023, 1_024, 2_047, len(book) - 1]), np.array([1_024])):
                found = vectors.products(book, rows, vector)
                exact = known[rows] @ vector.astype(np.float64)
                assert np.abs(found - exact).max() < ROUNDING * np.linalg.norm(vector)


def test_there_is_no_axis_where_vectors_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder, book, rows = FarAway(), Book.of(bullet(place) for place in range(6)), np.arange(6)
    assert BookVectors(embedder).axis(book, rows) is None
    assert embedder.since() == []
    monkeypatch.setattr("acefraud.selection.vectors.LARGE", 6)
    assert BookVectors(Counting(), hold_all=False).axis(book, rows) is None
    assert BookVectors(Counting()).axis(book, rows) is not None


# --- embedders that are asked over a network ---------------------------------------------------------------------


def test_what_comes_over_a_network_is_asked_for_where_it_is_wanted_and_once() -> None:
    embedder = FarAway()
    vectors, book = BookVectors(embedder), Book.of(bullet(place) for place in range(6))
    for rows, asked in ([1, 4], [1, 4]), ([4], []), ([0, 1, 5], [0, 5]), ([0, 1, 2, 3, 4, 5], [2, 3]):
        found = vectors.at(book, np.array(rows))
        assert embedder.since() == [f"bullet {place}" for place in asked]
        assert np.array_equal(found, Counting().embed([f"bullet {place}" for place in rows]))


def test_what_may_not_be_seen_is_not_asked_for() -> None:
    embedder = FarAway()
    hidden = bullet(0, "card 1234: decline", condition=Condition.parse('card is "1234" and amount > 5'))
    vectors, book = BookVectors(embedder), Book.of([hidden, bullet(1)])
    all_vectors(vectors, book)
    assert embedder.since() == ["amount and card", "bullet 1"]
    assert vectors.text_of(hidden) == "amount and card"


def test_a_condition_that_changes_what_may_be_seen_is_asked_for_anew() -> None:
    embedder, draft = FarAway(), Draft()
    draft.put(bullet(0, "a certain card: decline", condition=Condition.parse('card is "1234"')))
    vectors = BookVectors(embedder)
    assert np.array_equal(all_vectors(vectors, draft.book()), embedder.embed(["card"]))
    draft.put(bullet(0, "a certain card: decline", condition=Condition.parse('card is "1234" and amount > 5')))
    assert np.array_equal(all_vectors(vectors, draft.book()), embedder.embed(["amount and card"]))


def test_rows_wanted_bit_by_bit_over_revisions_are_those_of_the_words() -> None:
    dice, embedder, draft = random.Random(3), FarAway(), Draft()
    vectors, held = BookVectors(embedder), list[Book]()
    for turn in range(120):
        draft.put(bullet(dice.randrange(12), f"said in turn {dice.randrange(9)}"))
        held.append(draft.book())
        for book in (held[-1], dice.choice(held)):
            rows = np.flatnonzero(np.array([dice.random() < 0.4 for _ in range(len(book))]))
            if len(rows):
                words = [book.at(int(row)).content for row in rows]
                assert np.array_equal(vectors.at(book, rows), Counting().embed(words)), turn
