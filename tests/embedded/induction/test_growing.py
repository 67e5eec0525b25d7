"""Growing one condition: the beam finds what looking at everything finds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from acefraud.core.condition import Condition, Op, Test
from acefraud.embedded.induction.growing import Grown, GrowthOptions, Residual, condition_of, grow

COLUMNS, ROWS = 9, 80


def small_problem(seed: int) -> tuple[npt.NDArray[np.float32], Residual]:
    generator = np.random.default_rng(seed)
    matrix = (generator.random((ROWS, COLUMNS)) < generator.uniform(0.2, 0.8, COLUMNS)).astype(np.float32)
    chance = 0.1 + 0.7 * matrix[:, 0] * matrix[:, 1] * generator.random()
    y = (generator.random(ROWS) < chance).astype(np.float64)
    return matrix, Residual.of(y, np.full(ROWS, 0.25))


def brute_force(
    matrix: npt.NDArray[np.float32], residual: Residual, options: GrowthOptions, sign: int, allowed: set[int]
) -> tuple[float, float] | None:
    """Gain and step of the best conjunction, by looking at every one, row by row.

    A conjunction is grown test by test, so it counts only where one of its tests argues the same way alone.
    """
    best: tuple[float, float] | None = None
    alone: set[int] = set()
    for size in (1, 2):
        of_size: list[tuple[float, float]] = []
        for places in combinations(sorted(allowed), size):
            inside = [row for row in range(ROWS) if all(matrix[row, place] for place in places)]
            g = sum(float(residual.gradient[row]) for row in inside)
            h = sum(float(residual.hessian[row]) for row in inside)
            fits = len(inside) >= options.least_support and (not sign or g * sign > 0)
            if size == 1 and fits:
                alone.update(places)
            if fits and alone & set(places):
                of_size.append((g * g / (h + options.penalty), g / (h + options.penalty)))
        if of_size and (best is None or max(of_size)[0] > best[0] * options.improvement):
            best = max(of_size)
    return best


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("sign", [0, 1, -1])
def test_a_wide_beam_finds_the_best_of_all_conjunctions(seed: int, sign: int) -> None:
    matrix, residual = small_problem(seed)
    options = GrowthOptions(depth=2, beam=COLUMNS * COLUMNS, least_support=5)
    grown = grow(matrix, residual, options, sign=sign)
    expected = brute_force(matrix, residual, options, sign, set(range(COLUMNS)))
    assert (grown is None) == (expected is None)
    if grown is not None and expected is not None:
        assert grown.gain == pytest.approx(expected[0], rel=1e-4)
        assert grown.step == pytest.approx(expected[1], rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_only_allowed_columns_are_used(seed: int) -> None:
    matrix, residual = small_problem(seed)
    allowed = {1, 4, 6, 7}
    options = GrowthOptions(depth=2, beam=50, least_support=5)
    mask = np.array([place in allowed for place in range(COLUMNS)])
    grown = grow(matrix, residual, options, allowed=mask)
    expected = brute_force(matrix, residual, options, 0, allowed)
    assert grown is not None
    assert expected is not None
    assert set(grown.places) <= allowed
    assert grown.gain == pytest.approx(expected[0], rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_is_grown_has_the_support_depth_and_step_it_says(seed: int, depth: int) -> None:
    matrix, residual = small_problem(seed)
    grown = grow(matrix, residual, GrowthOptions(depth=depth, least_support=10))
    assert grown is not None
    inside = np.all(matrix[:, grown.places] > 0, axis=1)
    assert 1 <= len(set(grown.places)) == len(grown.places) <= depth
    assert inside.sum() >= 10
    g, h = float(residual.gradient[inside].sum()), float(residual.hessian[inside].sum())
    assert grown.step == pytest.approx(g / (h + 1), rel=1e-4)


def test_nothing_is_grown_where_no_conjunction_has_the_support() -> None:
    matrix, residual = small_problem(0)
    assert grow(matrix, residual, GrowthOptions(least_support=ROWS + 1)) is None
    assert grow(np.zeros((ROWS, 0), dtype=np.float32), residual, GrowthOptions()) is None


def test_a_further_test_must_be_worth_its_words() -> None:
    matrix, residual = small_problem(3)
    short = grow(matrix, residual, GrowthOptions(depth=3, improvement=1000.0, least_support=5))
    assert isinstance(short, Grown)
    assert len(short.places) == 1


def test_the_residual_is_the_first_and_second_derivative_of_the_log_loss() -> None:
    y, margin, step = np.array([1.0, 0.0, 1.0]), np.array([-1.0, 0.3, 2.0]), 1e-4

    def loss(at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(np.logaddexp(0, at) - y * at)

    residual = Residual.of(y, 1 / (1 + np.exp(-margin)))
    slope = (loss(margin + step) - loss(margin - step)) / (2 * step)
    bend = (loss(margin + step) - 2 * loss(margin) + loss(margin - step)) / step**2
    assert residual.gradient.tolist() == pytest.approx((-slope).tolist(), abs=1e-6)
    assert residual.hessian.tolist() == pytest.approx(bend.tolist(), abs=1e-4)


def test_tests_that_others_imply_are_left_out_of_the_condition() -> None:
    tests = [
        Test("amount", Op.ABOVE, 50),
        Test("vpn", Op.IS, True),
        Test("amount", Op.ABOVE, 80),
        Test("hour", Op.KNOWN),
    ]
    assert condition_of(tests, [0, 1, 2]) == Condition.parse("amount > 80 and vpn is true")
    assert condition_of(tests, [0, 3]) == Condition.parse("amount > 50 and hour is known")
