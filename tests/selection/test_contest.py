"""In a field too large to look at as a whole, what is picked is what looking at everybody would pick."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acefraud.core.roles import Vectors
from acefraud.selection.axis import BINS, ROUNDING, Axis, Bins
from acefraud.selection.contest import DRAWN_FOR, FIELD, Known, Weights, picks_of
from acefraud.selection.worth import Column, Rows


@dataclass
class Crowd:
    """Entrants that note who was drawn for, who was looked at and what all were compared with."""

    success: Column
    true_relevance: Column
    all_draws: Column
    rows: Vectors
    relevance: Column
    known_by_axis: bool = True
    drawn: list[int] = field(default_factory=list)
    looked_at: list[int] = field(default_factory=list)
    compared: list[Vectors] = field(default_factory=list)

    def draws(self, places: Rows) -> Column:
        self.drawn.extend(places.tolist())
        return self.all_draws[places]

    def vectors(self, places: Rows) -> Vectors:
        self.looked_at.extend(places.tolist())
        return self.rows[places]

    def exact(self, places: Rows, vectors: Vectors) -> Column:
        assert (vectors == self.rows[places]).all()
        return self.true_relevance[places]

    def likeness(self, vector: Vectors) -> Vectors:
        assert self.known_by_axis
        self.compared.append(vector)
        return roughly(self.rows, vector)

    @cached_property
    def leaning(self) -> tuple[Axis, Bins]:
        axis = Axis.through(self.rows)
        return axis, axis.bins(self.rows)

    def axis(self) -> tuple[Axis, Bins] | None:
        return self.leaning if self.known_by_axis else None


def unit(rows: Column) -> Vectors:
    made: Vectors = (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)
    return made


def roughly(rows: Vectors, vector: Vectors) -> Vectors:
    """Products that are wrong by as much as they may be, each in its own way."""
    wrong = np.random.default_rng(len(rows)).uniform(-1, 1, len(rows)) * ROUNDING * np.linalg.norm(vector)
    products: Vectors = (exactly(rows, vector) + 0.95 * wrong).astype(np.float32)
    return products


def exactly(rows: Vectors, other: Vectors | Column) -> Column:
    products: Column = rows.astype(np.float64) @ other.astype(np.float64)
    return products


def crowd(size: int, seed: int, *, together: float = 1.0, ties: bool = False, width: int = 6) -> Crowd:
    """Random entrants; the larger ``together``, the more alike they are. With ties, many are equal in all."""
    dice = np.random.default_rng(seed)
    kinds = max(1, size // 20) if ties else size
    which = dice.integers(0, kinds, size) if ties else np.arange(size)
    middle = np.zeros(width)
    middle[0] = together
    relevance = dice.uniform(0.2, 0.9, kinds)[which]
    return Crowd(
        success=dice.choice([0.0, 0.3, 0.5, 0.9, 1.0], kinds)[which],
        true_relevance=relevance,
        all_draws=dice.beta(2, 2, kinds)[which],
        rows=unit(dice.normal(size=(kinds, width)) + middle)[which],
        relevance=relevance + dice.uniform(-0.9, 0.9, size) * ROUNDING,
    )


def everybody(
    entrants: Crowd, wanted: int, weights: Weights, diversity: float, before: Vectors
) -> list[tuple[int, float]]:
    """The places and totals that looking at everybody gives."""
    combined = (
        weights.quality * entrants.success
        + weights.semantic * entrants.true_relevance
        + weights.thompson * entrants.all_draws
    )
    likeness = np.zeros(len(combined))
    for vector in before:
        likeness += np.vecdot(entrants.rows, vector)
    found: list[tuple[int, float]] = []
    for count in range(len(before), len(before) + min(wanted, len(combined))):
        totals = combined + ((1 - likeness / count) * diversity if count else 0.0)
        totals[[place for place, _ in found]] = -np.inf
        best = int(totals.argmax())
        found.append((best, float(totals[best])))
        likeness += np.vecdot(entrants.rows, entrants.rows[best])
    return found


def check(
    entrants: Crowd, wanted: int, diversity: float, weights: Weights | None = None, before: Vectors | None = None
) -> None:
    weights = weights or Weights()
    earlier = np.zeros((0, entrants.rows.shape[1]), dtype=np.float32) if before is None else before
    picks, picked = picks_of(entrants, wanted, weights, diversity, list(earlier))
    expected = everybody(entrants, wanted, weights, diversity, earlier)
    assert [pick.place for pick in picks] == [place for place, _ in expected]
    assert [pick.combined + pick.diversity for pick in picks] == [total for _, total in expected]
    assert np.array_equal(picked, [*earlier, *(entrants.rows[pick.place] for pick in picks)])
    for pick in picks:
        assert pick.quality == entrants.success[pick.place]
        assert pick.semantic == entrants.true_relevance[pick.place]
        assert pick.thompson == entrants.all_draws[pick.place]


@pytest.mark.parametrize("size", [FIELD - 1, FIELD, FIELD + 1, 300, DRAWN_FOR, DRAWN_FOR + 1, 3_000])
@pytest.mark.parametrize("diversity", [0.0, 0.15, 0.5, 1.0])
@pytest.mark.parametrize("ties", [False, True])
def test_the_picks_and_their_scores_are_what_looking_at_everybody_gives(
    size: int, diversity: float, ties: bool
) -> None:
    for seed, together in enumerate((0.0, 1.0, 6.0)):
        check(crowd(size, seed, together=together, ties=ties), 8, diversity)


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(FIELD + 1, 1_500),
    seed=st.integers(0, 2**32 - 1),
    wanted=st.integers(0, 12),
    diversity=st.sampled_from([0.0, 0.05, 0.15, 0.5, 1.0]),
    weights=st.sampled_from([(0.3, 0.4, 0.3), (0.1, 0.1, 0.8), (0.0, 0.0, 1.0), (1.0, 1.0, 0.0), (0, 1, 0), (0, 0, 0)]),
    together=st.sampled_from([0.0, 0.5, 2.0, 20.0]),
    ties=st.booleans(),
    known_by_axis=st.booleans(),
    earlier=st.integers(0, 3),
)
def test_whatever_the_weights_and_however_alike_they_are(
    *,
    size: int,
    seed: int,
    wanted: int,
    diversity: float,
    weights: tuple[float, float, float],
    together: float,
    ties: bool,
    known_by_axis: bool,
    earlier: int,
) -> None:
    entrants = crowd(size, seed, together=together, ties=ties, width=4)
    entrants.known_by_axis = known_by_axis
    before = unit(np.random.default_rng(seed).normal(size=(earlier, 4)))
    check(entrants, wanted, diversity, Weights(*weights), before)


@pytest.mark.parametrize("semantic", [0.4, 2.0, 5.0, 100.0])
def test_rough_relevance_decides_nothing_however_much_relevance_counts(semantic: float) -> None:
    size = 400
    for seed in range(10):
        entrants, dice = crowd(size, seed), np.random.default_rng(seed)
        entrants.success[:] = entrants.all_draws[:] = 0.5
        entrants.true_relevance = 0.5 + dice.uniform(0, 2, size) * ROUNDING
        entrants.relevance = entrants.true_relevance + dice.uniform(-1, 1, size) * ROUNDING
        check(entrants, 3, 0.15, Weights(0.3, semantic, 0.3))


@pytest.mark.parametrize("diversity", [0.15, 1.0])
def test_one_that_lies_far_behind_is_found_where_being_different_makes_up_for_it(diversity: float) -> None:
    size = 2_000
    rows = np.zeros((size, 3))
    rows[:, 0] = 1.0
    rows[1_500] = [-1.0, 0.0, 0.0]
    rows[1_501] = [0.0, 1.0, 0.0]
    scores = np.linspace(0.9, 0.8, size)
    scores[1_500] = 0.9 - 1.9 * diversity  # the likeness of the rest costs them nothing, of this one it gives twice
    scores[1_501] = 0.9 - 0.9 * diversity
    entrants = Crowd(np.zeros(size), np.zeros(size), scores, unit(rows), np.zeros(size))
    picks, _ = picks_of(entrants, 2, Weights(0.0, 0.0, 1.0), diversity)
    assert [pick.place for pick in picks] == [0, 1_500]
    check(entrants, 6, diversity, Weights(0.0, 0.0, 1.0))


def test_the_first_of_equals_wins_however_many_there_are() -> None:
    size = 3_000
    entrants = Crowd(
        success=np.full(size, 0.5),
        true_relevance=np.full(size, 0.6),
        all_draws=np.full(size, 0.5),
        rows=unit(np.tile([1.0, 2.0, 3.0], (size, 1))),
        relevance=0.6 + np.linspace(-0.9, 0.9, size) * ROUNDING,  # by rough relevance the last would come first
    )
    picks, _ = picks_of(entrants, 5, Weights(), 0.15)
    assert [pick.place for pick in picks] == [0, 1, 2, 3, 4]


def test_those_too_far_behind_are_neither_drawn_for_nor_looked_at() -> None:
    size = 20_000
    entrants = crowd(size, seed=3, together=3.0)
    entrants.success[:] = 0.5
    entrants.true_relevance[:] = np.linspace(0.99, 0.0, size)
    entrants.relevance = entrants.true_relevance.copy()
    check(entrants, 5, 0.15, Weights(0.3, 1.0, 0.3))
    assert max(entrants.drawn) < 0.6 * size  # the best draw and the greatest bonus do not make up for more
    assert len(entrants.looked_at) < 0.1 * size


def test_nobody_is_drawn_for_or_looked_at_twice() -> None:
    for seed in range(5):
        entrants = crowd(2_500, seed, together=0.5)
        picks_of(entrants, 10, Weights(0.1, 0.1, 0.8), 0.5)
        for noted in (entrants.drawn, entrants.looked_at):
            assert len(set(noted)) == len(noted)


@pytest.mark.parametrize("wanted", [0, 1, 2, FIELD, 10 * FIELD])
@pytest.mark.parametrize("known_by_axis", [False, True])
@pytest.mark.parametrize("earlier", [0, 1])
def test_as_many_of_a_large_field_are_picked_as_are_wanted(wanted: int, known_by_axis: bool, earlier: int) -> None:
    entrants = crowd(FIELD + 40, seed=1)
    entrants.known_by_axis = known_by_axis
    check(entrants, wanted, 0.15, before=unit(np.random.default_rng(2).normal(size=(earlier, 6))))


def test_what_is_known_of_the_likeness_of_all_saves_looking_at_most_of_them() -> None:
    with_axis, without = crowd(5_000, seed=4, together=3.0), crowd(5_000, seed=4, together=3.0)
    without.known_by_axis = False
    for entrants in (with_axis, without):
        check(entrants, 5, 0.5)
    assert len(with_axis.looked_at) < 0.5 * len(without.looked_at)
    assert len(with_axis.drawn) <= len(without.drawn)


@pytest.mark.parametrize("earlier", [0, 1, 3])
def test_all_are_compared_at_once_with_those_picked_before_or_with_the_first_only(earlier: int) -> None:
    for seed in range(5):
        entrants = crowd(2_500, seed, together=0.5)
        before = unit(np.random.default_rng(seed).normal(size=(earlier, 6)))
        picks, _ = picks_of(entrants, 10, Weights(0.1, 0.1, 0.8), 0.5, list(before))
        last = before.sum(axis=0) if earlier else entrants.rows[picks[0].place]
        assert np.allclose(entrants.compared[-1], last, atol=1e-6)
        assert len({vector.tobytes() for vector in entrants.compared}) == len(entrants.compared)
        assert len(entrants.compared) == 1 or not earlier


def test_a_field_that_is_looked_at_as_a_whole_is_compared_with_nothing() -> None:
    entrants = crowd(FIELD, seed=1)
    check(entrants, 5, 0.15)
    assert not entrants.compared


# --- bounds ------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([1, 2, 5, 40]),
    together=st.sampled_from([0.0, 0.5, 3.0, -3.0, 1e4]),
    before=st.integers(0, 3),
    wanted=st.integers(1, 8),
    diversity=st.sampled_from([0.0, 0.15, 0.5, 1.0]),
    known=st.booleans(),
)
def test_nobody_would_need_less_than_the_bounds_say(
    *, seed: int, width: int, together: float, before: int, wanted: int, diversity: float, known: bool
) -> None:
    dice = np.random.default_rng(seed)
    rows = unit(dice.normal(size=(200, width)) + together)
    vectors = [*unit(dice.normal(size=(before, width))), *rows[dice.integers(0, 200, wanted)]]
    enough = dice.uniform(0, 1, wanted)
    products = exactly(rows, np.array(vectors).T)
    truly = np.full(len(rows), np.inf)
    for place, level in enumerate(enough):
        picked = before + place
        bonus = (1 - products[:, :picked].sum(axis=1) / picked) * diversity if picked else 0.0
        truly = np.minimum(truly, level - bonus)
    count = max(1, before)
    base: Vectors = np.add.reduce(vectors[:count])
    axis = Axis.through(rows)
    likeness, leaning = (roughly(rows, base), (axis, axis.bins(rows))) if known else (None, None)
    bounds = Known(base, count, before, likeness, leaning).bounds(enough, vectors, diversity)
    needed = bounds.needed(np.arange(len(rows)))
    assert (needed <= truly + diversity * ROUNDING + 1e-12).all()  # by so much likeness is known only roughly
    assert (bounds.roughly() <= needed).all()
    some = np.flatnonzero(dice.random(len(rows)) < 0.1)
    assert bounds.needed(some).tolist() == needed[some].tolist()


@pytest.mark.parametrize("before", [0, 1])
def test_where_only_the_base_was_picked_what_is_needed_is_known_for_sure(before: int) -> None:
    rows = unit(np.random.default_rng(1).normal(size=(50, 4)))
    axis, vectors = Axis.through(rows), [rows[0], rows[1]]
    likeness: Vectors = np.vecdot(rows, rows[0])
    enough = np.array([0.7]) if before else np.array([9.0, 0.7])  # the first place takes more than the second one
    bounds = Known(rows[0], 1, before, likeness, (axis, axis.bins(rows))).bounds(enough, vectors, 0.5)
    expected = 0.7 - (1 - likeness) * 0.5
    assert bounds.needed(np.arange(50)) == pytest.approx(expected, abs=1e-6)
    assert bounds.roughly() == pytest.approx(expected, abs=2 * ROUNDING)


def test_a_first_place_is_won_without_a_bonus() -> None:
    rows = unit(np.random.default_rng(1).normal(size=(50, 4)))
    axis = Axis.through(rows)
    for likeness, leaning in ((None, None), (np.vecdot(rows, rows[0]), (axis, axis.bins(rows)))):
        bounds = Known(rows[0], 1, 0, likeness, leaning).bounds(np.array([0.7]), [rows[0]], 0.5)
        assert bounds.needed(np.arange(50)).tolist() == [0.7] * 50
        assert bounds.roughly() == pytest.approx(0.7, abs=2 * ROUNDING)


# --- the axis ----------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.sampled_from([1, 3, 40, 300]),
    width=st.sampled_from([1, 2, 40]),
    together=st.floats(-3, 3),
    other_axis=st.booleans(),
)
def test_an_axis_never_promises_more_likeness_than_there_is(
    *, seed: int, count: int, width: int, together: float, other_axis: bool
) -> None:
    dice = np.random.default_rng(seed)
    rows = unit(dice.normal(size=(count, width)) + together)
    axis = Axis.through(unit(dice.normal(size=(5, width))) if other_axis else rows)
    bins = axis.bins(rows)
    others = unit(dice.normal(size=(6, width)) - together).astype(np.float64)
    others[1:3] *= dice.uniform(0, 1, size=(2, 1))
    others[3:5] *= 9  # as long as the sum of several
    others = np.array([*others, axis.direction, -axis.direction, np.zeros(width), rows.sum(axis=0, dtype=np.float64)])
    least = axis.least(others)
    assert least.shape == (len(others), BINS)
    assert (least[:, bins] <= exactly(rows, others.T).T).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 40]), st.floats(-3, 3))
def test_a_bin_holds_the_cosine_with_the_axis(seed: int, width: int, together: float) -> None:
    rows = unit(np.random.default_rng(seed).normal(size=(100, width)) + together)
    axis = Axis.through(rows)
    rows = np.concatenate([rows, axis.direction[None], -axis.direction[None]])
    cosines, bins = exactly(rows, axis.direction), axis.bins(rows)
    assert (bins < BINS).all()
    assert (np.abs(cosines - ((bins + 0.5) * 2 / BINS - 1)) <= 1 / BINS + ROUNDING).all()


def test_a_vector_that_leans_like_the_axis_is_known_to_within_its_bin() -> None:
    axis = Axis(unit(np.array([1.0, 2.0, 3.0])))
    edges = np.arange(BINS) * 2 / BINS - 1
    along, against = axis.least(np.outer([1.0, -1.0], axis.direction))
    assert along == pytest.approx(edges, abs=1e-3)
    assert against == pytest.approx(-edges - 2 / BINS, abs=1e-3)


def test_vectors_that_have_no_direction_in_common_promise_nothing() -> None:
    rows = unit(np.array([[1.0, 0.0], [-1.0, 0.0]]))
    axis = Axis.through(rows)
    assert (axis.least(rows.astype(np.float64))[:, axis.bins(rows)] <= -1).all()


def test_nor_where_the_other_one_nearly_points_along_the_axis() -> None:
    edge = 1 - 2 / BINS
    for turn in np.linspace(0, 2 * np.pi, 50):
        along, aside = np.array([np.cos(turn), np.sin(turn)]), np.array([-np.sin(turn), np.cos(turn)])
        axis = Axis(along.astype(np.float32))
        rows = unit((edge + 1e-6) * along - np.sqrt(1 - edge**2) * aside)[None]  # as far across as its bin allows
        others = np.array([9 * (np.cos(angle) * along + np.sin(angle) * aside) for angle in np.linspace(0, 1e-3, 200)])
        assert (axis.least(others)[:, axis.bins(rows)] <= exactly(rows, others.T).T).all()
