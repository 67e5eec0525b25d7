"""The five stages one by one, each against a plain reading of what it promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acefraud.core.book import Book
from acefraud.core.bullet import Bullet, Source, Status
from acefraud.core.condition import Condition
from acefraud.core.playbook import Snapshot
from acefraud.core.roles import EmbedsInProcess, Vectors
from acefraud.core.transaction import FactValue, Transaction
from acefraud.selection import stages
from acefraud.selection.axis import ROUNDING, Axis, Bins
from acefraud.selection.contest import Pick, Weights, hybrid, picks_of
from acefraud.selection.hybrid import HybridSelector
from acefraud.selection.stages import Asked, Kept
from acefraud.selection.vectors import BookVectors
from acefraud.selection.worth import Column, Rows

NODE = "fraud_detection"
HOLDS = Condition.parse("amount > 100")


class ByText(EmbedsInProcess):
    """An embedder that was told the direction of each text."""

    name = "by-text"
    threshold = 0.5

    def __init__(self, directions: Mapping[str, tuple[float, ...]]) -> None:
        self._directions = directions

    def embed(self, texts: Sequence[str]) -> Vectors:
        return vectors(*(self._directions[text] for text in texts))


@dataclass(frozen=True)
class Scored:
    """Entrants whose score is their draw, with vectors of length one."""

    scores: Column
    rows: Vectors

    @property
    def success(self) -> Column:
        return np.zeros(len(self.scores))

    @property
    def relevance(self) -> Column:
        return np.zeros(len(self.scores))

    def draws(self, places: Rows) -> Column:
        return self.scores[places]

    def vectors(self, places: Rows) -> Vectors:
        return self.rows[places]

    def exact(self, places: Rows, vectors: Vectors) -> Column:
        assert len(places) == len(vectors)
        return np.zeros(len(places))

    def likeness(self, vector: Vectors) -> Vectors:
        raise AssertionError(f"{len(self.scores)} are few enough to be looked at, got {vector}")

    def axis(self) -> tuple[Axis, Bins] | None:
        raise AssertionError(f"{len(self.scores)} are few enough to be looked at")


def bullet(name: str, **more: object) -> Bullet:
    return Bullet(id=name, content=f"bullet {name}").model_copy(update=more)


def vectors(*rows: tuple[float, ...]) -> Vectors:
    array = np.array(rows, dtype=np.float32)
    unit: Vectors = array / np.linalg.norm(array, axis=1, keepdims=True)
    return unit


def kept_of(
    bullets: Sequence[Bullet],
    facts: Mapping[str, FactValue] | None = None,
    *,
    threshold: float = 0.0,
    wanted: int = 100,
    node: str = NODE,
    source: Source | None = None,
) -> tuple[Book, Kept]:
    """What stages 1 and 2 leave of a book, where fraud is as common as honesty."""
    book = Book.of(bullets)
    return book, stages.contextual_and_good(Asked(book, book.node(node), source, 0.5, wanted), facts or {}, threshold)


def names(book: Book, rows: Sequence[int] | Rows) -> list[str]:
    return [book.at(int(row)).id for row in rows]


def left(book: Book, kept: Kept) -> tuple[list[str], list[str]]:
    """Those that are proven to apply, and those that may be relevant by resemblance."""
    prose: Rows = np.flatnonzero(np.concatenate(kept.prose)) if kept.prose else stages.NONE
    return names(book, kept.proven), names(book, prose)


def picked(
    scores: Sequence[float], rows: Vectors, wanted: int, weight: float, before: Vectors | None = None
) -> list[Pick]:
    """Stages 4 and 5 where only the draw counts."""
    earlier = [] if before is None else list(before)
    picks, all_picked = picks_of(Scored(np.array(scores), rows), wanted, Weights(0.0, 0.0, 1.0), weight, earlier)
    assert np.array_equal([*earlier, *(rows[pick.place] for pick in picks)], all_picked)
    return picks


# --- stage 1 -----------------------------------------------------------------------------------------------------


def test_a_condition_that_is_false_is_out_one_left_open_stays_and_what_is_proven_is_told_apart() -> None:
    book, kept = kept_of(
        [
            bullet("false", condition=Condition.parse("amount > 5000")),
            bullet("open", condition=Condition.parse("amount > 100 and vpn is true")),
            bullet("true", condition=HOLDS),
            bullet("prose"),
        ],
        {"amount": 300.0},
    )
    assert left(book, kept) == (["true"], ["open", "prose"])
    assert (kept.in_context, kept.good) == (3, 3)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(["", "amount > 100", "amount < 100", "vpn is true", "amount > 100 and vpn is true"])),
    st.sampled_from([50.0, 300.0, None]),
    st.sampled_from([True, False, None]),
)
def test_standing_is_what_each_condition_says_by_itself(
    conditions: list[str], amount: float | None, vpn: bool | None
) -> None:
    facts: dict[str, FactValue] = {
        name: value for name, value in (("amount", amount), ("vpn", vpn)) if value is not None
    }
    bullets = [
        bullet(f"b{n}", condition=Condition.parse(words) if words else None) for n, words in enumerate(conditions)
    ]
    book, kept = kept_of(bullets, facts)
    truths = {each.id: each.condition.truth(facts) if each.condition else None for each in bullets}
    assert left(book, kept) == (
        [name for name, truth in truths.items() if truth is True],
        [name for name, truth in truths.items() if truth is None],
    )


def test_only_this_node_and_source_and_never_a_retired_bullet() -> None:
    bullets = [
        bullet("here", source=Source.ONLINE),
        bullet("elsewhere", node="other", source=Source.ONLINE),
        bullet("retired", status=Status.RETIRED, source=Source.ONLINE),
        bullet("offline", source=Source.OFFLINE),
    ]
    for source, node, expected in [
        (None, NODE, ["here", "offline"]),
        (Source.ONLINE, NODE, ["here"]),
        (None, "other", ["elsewhere"]),
        (Source.OFFLINE, "other", []),
        (None, "nobody wrote for this one", []),
    ]:
        book, kept = kept_of(bullets, source=source, node=node)
        assert left(book, kept) == ([], expected)
        assert kept.in_context == len(expected)


def test_prose_is_looked_at_only_where_too_few_are_proven_to_apply() -> None:
    bullets = [bullet("prose"), bullet("one", condition=HOLDS), bullet("two", condition=HOLDS)]
    for wanted, expected in ((3, ["prose"]), (2, []), (1, [])):
        book, kept = kept_of(bullets, {"amount": 300.0}, wanted=wanted)
        assert left(book, kept) == (["one", "two"], expected)
        assert (kept.in_context, kept.good) == (3, 3)


def test_of_an_empty_book_nothing_is_left() -> None:
    book, kept = kept_of([])
    assert (left(book, kept), kept.in_context, kept.good) == (([], []), 0, 0)


# --- stage 2 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (1, ["good"]),
        (2, ["good", "nearly"]),  # 0.25 is at least 0.8 x 0.3, and only asked for when too few are left
        (9, ["good", "nearly"]),  # never the whole book again
    ],
)
@pytest.mark.parametrize("proven", [False, True])
def test_quality_is_relaxed_once_and_only_where_too_few_are_left(
    wanted: int, expected: list[str], proven: bool
) -> None:
    record = {"good": (3, 7), "nearly": (1, 3), "bad": (23, 77)}
    bullets = [
        bullet(name, helpful_count=helpful, harmful_count=harmful, condition=HOLDS if proven else None)
        for name, (helpful, harmful) in record.items()
    ]
    book, kept = kept_of(bullets, {"amount": 300.0}, threshold=0.3, wanted=wanted)
    assert left(book, kept) == ((expected, []) if proven else ([], expected))
    assert (kept.in_context, kept.good) == (3, len(expected))


def test_the_proven_and_those_in_prose_count_together_for_whether_too_few_are_left() -> None:
    bullets = [
        bullet("proven", condition=HOLDS),
        bullet("prose"),
        bullet("nearly", helpful_count=1, harmful_count=3),
        bullet("out", condition=Condition.parse("amount < 100")),
    ]
    for wanted, expected in ((2, ["prose"]), (3, ["prose", "nearly"])):
        assert left(*kept_of(bullets, {"amount": 300.0}, threshold=0.3, wanted=wanted)) == (["proven"], expected)


def test_quality_counts_a_bullet_without_a_record_as_one_half() -> None:
    assert left(*kept_of([bullet("fresh")], threshold=0.5, wanted=1)) == ([], ["fresh"])
    assert left(*kept_of([bullet("fresh")], threshold=0.7, wanted=1)) == ([], [])


def test_what_an_analyst_pinned_stays_whatever_its_record() -> None:
    pinned = bullet("pinned", status=Status.PINNED, harmful_count=50)
    assert left(*kept_of([pinned], threshold=0.3, wanted=1)) == ([], ["pinned"])


# --- stage 3 -----------------------------------------------------------------------------------------------------


def test_proof_is_relevance_by_contribution_and_prose_is_relevant_by_resemblance() -> None:
    weights = {"weak": 0.5, "strong": -2.0, "none": 0.0, "alike": 9.0, "unlike": 9.0}
    bullets = [
        bullet(name, weight=weight, condition=HOLDS if abs(weight) < 9 else None) for name, weight in weights.items()
    ]
    embedder = ByText(
        {"query": (1, 0), "bullet alike": (3, 4), "bullet unlike": (-1, 0)}
        | {f"bullet {name}": (0, 1) for name in ("weak", "strong", "none")}
    )
    selector = HybridSelector(embedding_model=embedder, explore=False)
    chosen = selector.select(
        Transaction(id="t", text="query"), {"amount": 300.0}, Snapshot(1, {each.id: each for each in bullets})
    )
    found = {score.bullet_id: score.semantic for score in chosen.scores}
    # What merely resembles does not set the scale.
    assert found == pytest.approx({"weak": 0.625, "strong": 1.0, "none": 0.5, "alike": 0.6}, abs=1e-6)


def test_where_no_bullet_moves_the_decision_all_that_are_proven_are_equally_relevant() -> None:
    assert stages.relevance_by_proof(np.zeros(2), 0.3).tolist() == [1.0, 1.0]
    assert stages.relevance_by_proof(np.zeros(0), 0.3).tolist() == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 6), min_size=1, max_size=8), st.floats(0, 1))
def test_the_larger_the_contribution_the_more_relevant_and_never_below_the_threshold(
    weights: list[float], threshold: float
) -> None:
    strength = np.array(weights)
    relevance = stages.relevance_by_proof(strength, threshold)
    assert (np.diff(relevance[np.argsort(strength)]) >= 0).all()
    assert relevance.min() >= threshold - 1e-12
    assert relevance.max() == pytest.approx(1.0)


def resembling(
    bullets: Sequence[Bullet], embedder: ByText, queries: Sequence[str | None], threshold: float
) -> list[dict[str, float]]:
    """For each query the bullets that resemble it, and roughly how much."""
    book, kept = kept_of(bullets)
    asked = Asked(book, book.node(NODE), None, 0.5, 100)
    vectors = [None if query is None else embedder.embed([query])[0] for query in queries]
    found = stages.resembling(asked, [kept] * len(queries), vectors, threshold, BookVectors(embedder))
    return [dict(zip(names(book, each.rows), each.cosines.tolist(), strict=True)) for each in found]


def test_prose_resembles_each_of_many_transactions_by_itself() -> None:
    embedder = ByText({"east": (1, 0), "north": (0, 1), "bullet e": (5, 1), "bullet n": (1, 5), "bullet w": (-1, 0)})
    bullets = [bullet("e"), bullet("n"), bullet("w")]
    together = resembling(bullets, embedder, ["east", "north", None, "east"], 0.5)
    assert [list(each) for each in together] == [["e"], ["n"], [], ["e"]]
    for query, expected in (("east", ["e"]), ("north", ["n"]), (None, [])):
        assert [list(each) for each in resembling(bullets, embedder, [query], 0.5)] == [expected]


def test_how_much_prose_resembles_is_the_cosine_up_to_rounding() -> None:
    dice = np.random.default_rng(5)
    directions = {f"bullet b{place}": tuple(dice.normal(size=8)) for place in range(200)}
    embedder = ByText(directions | {"query": tuple(dice.normal(size=8)), "another": tuple(dice.normal(size=8))})
    bullets = [bullet(f"b{place}") for place in range(200)]
    own = embedder.embed([each.content for each in bullets]).astype(np.float64)
    for queries in (["query", "another"], ["query"]):
        for found, query in zip(resembling(bullets, embedder, queries, -1.0), queries, strict=True):
            exact = own @ embedder.embed([query])[0].astype(np.float64)
            assert list(found) == [each.id for each in bullets]
            assert np.abs(np.array(list(found.values())) - exact).max() < ROUNDING


@pytest.mark.parametrize("companions", [0, 1, 700])
def test_whether_prose_reaches_the_threshold_does_not_depend_on_what_is_looked_at_beside_it(companions: int) -> None:
    dice = np.random.default_rng(11)
    near = {f"bullet b{place}": tuple(dice.normal(size=64)) for place in range(60)}
    others = {f"bullet c{place}": tuple(dice.normal(size=64)) for place in range(companions)}
    embedder = ByText(near | others | {"query": tuple(dice.normal(size=64)), "more": tuple(dice.normal(size=64))})
    query = embedder.embed(["query"])[0]
    for text in near:
        (own,) = embedder.embed([text])
        at_the_border = float(np.vecdot(own, query))
        bullets = [bullet(f"c{place}") for place in range(companions)] + [bullet(text.removeprefix("bullet "))]
        if companions < 2 or text == "bullet b0":
            for queries in (["query"], ["query", "more"]):
                found = resembling(bullets, embedder, queries, at_the_border)[0]
                assert bullets[-1].id in found
                above = float(np.nextafter(np.float32(at_the_border), np.float32(2)))
                assert bullets[-1].id not in resembling(bullets, embedder, queries, above)[0]


# --- stage 4 -----------------------------------------------------------------------------------------------------


def test_the_hybrid_score_is_the_weighted_sum() -> None:
    score = hybrid(np.array([0.5]), np.array([0.25]), np.array([0.75]), Weights(0.2, 0.4, 0.6))
    assert score.tolist() == pytest.approx([0.2 * 0.5 + 0.4 * 0.25 + 0.6 * 0.75])


# --- stage 5 -----------------------------------------------------------------------------------------------------


def test_diversity_is_weighed_as_picks_are_made() -> None:
    # A and B say the same. Ranked by score alone the order is A, B, C; a bonus added to that order afterwards
    # leaves B second (0.99 + 0). Weighed place by place, C (0.90 + 0.15) takes the second place from B.
    picks = picked([1.00, 0.99, 0.90], vectors((1, 0), (1, 0), (0, 1)), 3, 0.15)
    assert [pick.place for pick in picks] == [0, 2, 1]
    assert [pick.diversity for pick in picks] == pytest.approx([0.0, 0.15, 0.075])
    assert [pick.combined for pick in picks] == [1.00, 0.90, 0.99]


def test_the_first_pick_has_no_bonus_and_without_weight_nobody_has() -> None:
    picks = picked([0.2, 0.9, 0.5], vectors((1, 0), (0, 1), (1, 1)), 2, 0.0)
    assert [(pick.place, pick.diversity) for pick in picks] == [(1, 0.0), (2, 0.0)]


def test_those_picked_before_count_as_picked() -> None:
    picks = picked([0.9, 0.8], vectors((1, 0), (0, 1)), 2, 0.5, vectors((1, 0)))
    assert [pick.place for pick in picks] == [1, 0]
    assert [pick.diversity for pick in picks] == pytest.approx([0.5, 0.25])


def test_the_first_of_equals_wins() -> None:
    picks = picked([0.5, 0.7, 0.7, 0.7], vectors(*[(1, 0)] * 4), 3, 0.15)
    assert [pick.place for pick in picks] == [1, 2, 3]


def test_nobody_is_picked_where_nobody_is_wanted_or_there_is_nobody() -> None:
    assert picked([0.5], vectors((1, 0)), 0, 0.15) == []
    assert picked([], np.zeros((0, 2), dtype=np.float32), 5, 0.15) == []


def test_what_merely_resembles_never_takes_the_place_of_what_is_proven() -> None:
    bad, good = {"harmful_count": 2, "helpful_count": 1}, {"helpful_count": 90}
    bullets = [bullet("p1", **good), bullet("c1", condition=HOLDS, **bad), bullet("p2", **good)]
    bullets.append(bullet("c2", condition=HOLDS, weight=9.0, **bad))
    embedder = ByText({"query": (1, 0)} | {each.content: (1, 0) for each in bullets})
    for explore in (False, True):
        selector = HybridSelector(embedding_model=embedder, explore=explore, weights={"semantic": 2.0})
        chosen = selector.select(
            Transaction(id="t", text="query"),
            {"amount": 300.0},
            Snapshot(1, {each.id: each for each in bullets}),
            n_bullets=3,
        )
        assert [each.id for each in chosen.bullets][:2] == ["c2", "c1"]
        assert chosen.bullets[2].id in {"p1", "p2"}


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=8),
    st.integers(0, 10),
    st.floats(0, 1),
    st.integers(0, 2**32 - 1),
)
def test_every_place_goes_to_the_best_sum_of_those_left_and_first_to_those_of_the_first_field(
    entrants: list[tuple[float, bool]], wanted: int, weight: float, seed: int
) -> None:
    scores = [score for score, _ in entrants]
    rows = np.random.default_rng(seed).normal(size=(len(scores), 3)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    places: list[int] = []
    bonuses: list[float] = []
    for first in (True, False):
        field = [place for place, (_, own) in enumerate(entrants) if own is first]
        some = [scores[place] for place in field]
        for pick in picked(some, rows[field], wanted - len(places), weight, rows[places]):
            places.append(field[pick.place])
            bonuses.append(pick.diversity)
    assert len(set(places)) == len(places) == min(wanted, len(scores))
    for turn, (place, bonus) in enumerate(zip(places, bonuses, strict=True)):
        before = places[:turn]

        def total(of: int, before: list[int] = before) -> float:
            likeness = [sum(float(a) * float(b) for a, b in zip(rows[of], rows[p], strict=True)) for p in before]
            return scores[of] + (weight * (1 - sum(likeness) / len(before)) if before else 0.0)

        rivals = [i for i in range(len(scores)) if i not in before and entrants[i][1] == entrants[place][1]]
        assert scores[place] + bonus == pytest.approx(total(place), abs=1e-5)
        assert all(total(place) >= total(i) - 1e-5 for i in rivals)
