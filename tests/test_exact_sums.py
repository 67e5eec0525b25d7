"""Sums and products that are the same bits in any order, and right."""

from __future__ import annotations

import numpy as np
import pytest

from acefraud.support.exact_sums import MaskProducts, cut, solve, unit_for

SHAPES = {"small": (300, 40), "large": (9_001, 70)}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_products_do_not_depend_on_the_order(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    masks, weights = generator.random(shape) < 0.2, generator.normal(0, 2, shape[1])
    numbers = generator.normal(0, 1, shape[0]) * 10.0 ** generator.integers(-6, 4, shape[0])
    products = MaskProducts(masks)
    rows, columns = generator.permutation(shape[0]), generator.permutation(shape[1])
    shuffled = MaskProducts(masks[rows][:, columns])
    assert (shuffled.by_row(weights[columns]) == products.by_row(weights)[rows]).all()
    assert (shuffled.by_column(numbers[rows]) == products.by_column(numbers)[columns]).all()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_products_are_right(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(1)
    masks, weights, numbers = generator.random(shape) < 0.2, generator.normal(size=shape[1]), generator.random(shape[0])
    products = MaskProducts(masks)
    assert np.allclose(products.by_row(weights), masks @ weights, rtol=0, atol=1e-8)
    assert np.allclose(products.by_column(numbers), numbers @ masks, rtol=1e-7)


def test_weights_of_one_sign_add_up_without_rounding() -> None:
    """What rounding adds to each of them must not push a sum out of what the narrow numbers hold."""
    masks = np.ones(SHAPES["large"], dtype=np.bool_)
    for seed in range(20):
        weights = np.random.default_rng(seed).random(masks.shape[1])
        weights *= (1 - 2.0**-30) / weights.sum()  # their sum is just below a power of two
        (found,) = set(MaskProducts(masks).by_row(weights).tolist())
        assert found == MaskProducts(masks[:, ::-1]).by_row(weights[::-1])[0]
        assert found == pytest.approx(weights.sum(), abs=2.0**-36)


def test_products_with_nothing_are_nothing() -> None:
    assert MaskProducts(np.zeros((3, 0), dtype=np.bool_)).by_row(np.empty(0)).tolist() == [0.0, 0.0, 0.0]
    assert MaskProducts(np.zeros((0, 2), dtype=np.bool_)).by_column(np.empty(0)).tolist() == [0.0, 0.0]


def test_what_is_cut_adds_up_in_any_order_and_in_parts() -> None:
    generator = np.random.default_rng(2)
    numbers = cut(generator.normal(size=200_000))
    shuffled = generator.permutation(numbers)
    parts = sum(float(part.sum()) for part in np.array_split(shuffled, 7))
    assert float(numbers.sum()) == float(np.cumsum(shuffled)[-1]) == parts


@pytest.mark.parametrize("total", [1e-300, 0.75, 1.0, 3e9])
def test_a_unit_leaves_as_many_digits_as_were_asked(total: float) -> None:
    assert 2.0**23 <= total / unit_for(total, 24) < 2.0**24


def test_equations_are_solved() -> None:
    generator = np.random.default_rng(3)
    square = generator.normal(size=(40, 40))
    matrix, vector = square @ square.T + np.eye(40), generator.normal(size=40)
    assert np.allclose(matrix @ solve(matrix, vector), vector)
