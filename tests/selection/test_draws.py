"""Draws follow their distribution, and depend on seed, transaction, revision and bullet alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from acefraud.core.bullet_table import key_of
from acefraud.selection import bullet_stats
from acefraud.selection.bullet_stats import FEW, BetaShapes, Keys, beta, key_for, uniform
from acefraud.support.arrays import FloatArray

NEARLY = 1 + 1e-9


def keys_of(count: int, start: np.uint64 | None = None) -> Keys:
    """The keys of so many bullets in one selection."""
    keys = np.array([key_of(f"b{index}") for index in range(count)], dtype=np.uint64)
    return keys ^ (key_for(7, "t", 3) if start is None else start)


def drawn_for(a: float, b: float, keys: Keys) -> list[float]:
    found: list[float] = beta(keys, BetaShapes.of(np.full(len(keys), a), np.full(len(keys), b))).tolist()
    return found


def random_shapes(count: int, seed: int) -> BetaShapes:
    dice = np.random.default_rng(seed)
    some = [1.0, 1.0, NEARLY, 1.25, 2.0, 5.5, 40.0, 1_000.0, 250_000.0]
    return BetaShapes.of(dice.choice(some, count), dice.choice(some, count))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1),
        (4, 2),
        (1, 13),
        (13, 1),
        (9, 13),
        (1.5, 1.5),
        (1.001, 1.001),
        (NEARLY, NEARLY),
        (NEARLY, 5),
        (1.02, 300),
        (2_000, 3),
        (40_000, 60_000),
    ],
)
def test_draws_follow_the_beta_distribution(a: float, b: float) -> None:
    one_selection = drawn_for(a, b, keys_of(2000))
    one_bullet = drawn_for(a, b, np.array([key_for(7, f"t{i}", 3) for i in range(2000)]) ^ np.uint64(key_of("b1")))
    other = stats.beta(a * 1.2 + 0.5, b)
    for drawn in (one_selection, one_bullet):
        # Fixed keys: a right implementation gives these same draws each time; a wrong shape gives p far below 1e-6.
        assert stats.kstest(drawn, stats.beta(a, b).cdf).pvalue > 0.01
        assert stats.kstest(drawn, other.cdf).pvalue < 1e-6


def test_the_first_numbers_of_a_key_are_those_of_splitmix64() -> None:
    # The published test vector of the generator for the seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    found = uniform(np.array([1234567], dtype=np.uint64), 0, 3)[:, 0]
    assert found.tolist() == pytest.approx([(each >> 11) / 2**53 for each in expected], abs=2**-53)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20), st.integers(0, 200), st.integers(1, 20))
def test_numbers_lie_above_0_and_below_1_and_depend_on_key_and_turn_alone(
    some: list[int], first: int, count: int
) -> None:
    keys = np.array(some, dtype=np.uint64)
    found = uniform(keys, first, count)
    assert found.shape == (count, len(some))
    assert ((found > 0) & (found < 1)).all()
    for index in range(len(some)):
        for turn in range(count):
            assert uniform(keys[index : index + 1], first + turn, 1)[0, 0] == found[turn, index]


@pytest.mark.parametrize("bits", [0, 2**64 - 1])
def test_the_first_and_the_last_of_all_numbers_lie_between_too(bits: int) -> None:
    keys = np.array([key_that_gives(bits)], dtype=np.uint64)
    (number,) = uniform(keys, 0, 1)[0].tolist()
    assert abs(number - bits / 2**64) < 2**-52
    assert 0 < number < 1
    assert 0 < drawn_for(4, 2, keys)[0] < 1


def key_that_gives(bits: int) -> int:
    """The key whose first number is made of these 64 bits: SplitMix64 backwards."""
    z = bits
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        mixed = z
        for _ in range(3):
            z = mixed ^ (z >> shift)
        z = z * pow(factor, -1, 2**64) % 2**64
    return (z - 0x9E3779B97F4A7C15) % 2**64


def test_numbers_are_spread_evenly_over_bullets_and_over_turns() -> None:
    starts = [key_for(0, f"t{index}", 1) for index in range(40)]
    by_bullet = [uniform(keys_of(500, start), 0, 1)[0] for start in starts]
    by_turn = [uniform(keys_of(1, start), 0, 500)[:, 0] for start in starts]
    for runs in (by_bullet, by_turn):  # how unusual each run looks is itself spread evenly
        unusual = [stats.kstest(run, stats.uniform.cdf).pvalue for run in runs]
        assert stats.kstest(unusual, stats.uniform.cdf).pvalue > 0.01


@pytest.mark.parametrize("size", [1, 2, 17, FEW - 1, FEW, FEW + 1, 700])
def test_a_draw_is_the_same_to_the_last_bit_alone_among_few_and_among_many(size: int) -> None:
    keys, shapes = keys_of(700), random_shapes(700, seed=1)
    together = beta(keys, shapes)
    for start in range(0, 700 - size + 1, max(size, 50)):
        rows = np.arange(start, start + size)
        assert beta(keys[rows], shapes.take(rows)).tolist() == together[rows].tolist()


class Inexact:
    """numpy on a processor whose exponentials and logarithms are wrong by up to four units in the last place."""

    def __init__(self, seed: int) -> None:
        self._dice = np.random.default_rng(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def exp(self, x: FloatArray) -> FloatArray:
        return np.exp(x) * self._wrong(x)

    def log(self, x: FloatArray) -> FloatArray:
        return np.log(x) * self._wrong(x)

    def _wrong(self, x: FloatArray) -> FloatArray:
        return 1 + 4 * 2.0**-52 * self._dice.integers(-1, 2, np.shape(x)).astype(np.float64)


@pytest.mark.parametrize("largest", [3.0, 1_000.0, 1e7, 1e13])
def test_draws_do_not_depend_on_the_last_bits_of_numpy(monkeypatch: pytest.MonkeyPatch, largest: float) -> None:
    a, b = 1 + np.floor(largest * np.random.default_rng(2).random((2, 100_000)) ** 4)
    keys = np.arange(100_000, dtype=np.uint64)
    drawn = beta(keys, BetaShapes.of(a, b))
    monkeypatch.setattr(bullet_stats, "np", Inexact(3))
    assert (beta(keys, BetaShapes.of(a, b)) == drawn).all()


def test_the_order_of_bullets_changes_no_draw() -> None:
    keys, shapes = keys_of(400), random_shapes(400, seed=2)
    order = np.random.default_rng(3).permutation(400)
    assert beta(keys[order], shapes.take(order)).tolist() == beta(keys, shapes)[order].tolist()


def test_shapes_worked_out_for_some_are_those_taken_from_all() -> None:
    shapes, keys = random_shapes(400, seed=4), keys_of(400)
    for rows in (np.arange(7, 8), np.arange(100, 117), np.arange(0, 400, 3)):
        taken, made = shapes.take(rows), BetaShapes.of(shapes.a[rows], shapes.b[rows])
        assert beta(keys[rows], taken).tolist() == beta(keys[rows], made).tolist()
        assert taken.expected.tolist() == made.expected.tolist()


@given(st.floats(1, 1e9), st.floats(1, 1e9), st.integers(0, 2**64 - 1))
def test_any_draw_is_a_share_and_can_be_made_again(a: float, b: float, key: int) -> None:
    (drawn,) = drawn_for(a, b, np.array([key], dtype=np.uint64))
    assert 0 <= drawn <= 1
    assert drawn_for(a, b, np.array([key], dtype=np.uint64)) == [drawn]


def test_nobody_is_drawn_for_where_there_is_nobody() -> None:
    assert drawn_for(1, 1, np.empty(0, dtype=np.uint64)) == []


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (4.0, 2.0), (1.0, 13.0)])
def test_each_bullet_has_a_draw_of_its_own(a: float, b: float) -> None:
    assert len(set(drawn_for(a, b, keys_of(1000)))) == 1000


@pytest.mark.parametrize("other", [(1, "t", 5), (0, "u", 5), (0, "t", 6), (0, "", 5), (-1, "t", 5)])
def test_draws_are_the_same_for_the_same_seed_transaction_and_revision_only(other: tuple[int, str, int]) -> None:
    first = drawn_for(3, 2, keys_of(50, key_for(0, "t", 5)))
    assert drawn_for(3, 2, keys_of(50, key_for(0, "t", 5))) == first
    assert not set(drawn_for(3, 2, keys_of(50, key_for(*other)))) & set(first)


def test_seed_transaction_and_revision_are_told_apart_wherever_one_ends_and_the_next_begins() -> None:
    assert key_for(1, "2", 3) != key_for(12, "", 3) != key_for(1, "", 23) != key_for(1, "2", 3)


def test_draws_of_two_bullets_and_of_two_selections_have_nothing_to_do_with_one_another() -> None:
    starts = [key_for(0, f"t{index}", 1) for index in range(2000)]
    first, second = (drawn_for(3, 2, np.array(starts) ^ np.uint64(key_of(name))) for name in ("b1", "b2"))
    assert (
        abs(stats.pearsonr(first, second).statistic) < 0.06
    )  # a chance correlation of 2,000 pairs is below, 99 in 100
    one, other = (drawn_for(3, 2, keys_of(2000, start)) for start in starts[:2])
    assert abs(stats.pearsonr(one, other).statistic) < 0.06


@pytest.mark.parametrize(("a", "b"), [(1, 1), (4, 2), (1, 13), (500, 0.5 + 500)])
def test_what_is_expected_of_a_draw_is_the_mean_of_its_distribution(a: float, b: float) -> None:
    expected = BetaShapes.of(np.array([float(a)]), np.array([float(b)])).expected
    assert expected.tolist() == pytest.approx([stats.beta(a, b).mean()])
