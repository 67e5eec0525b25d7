"""Sums with the same bits on every processor and for any number of threads.

A linear algebra library adds in an order of its own, and each order rounds in another way. So numbers are cut to so few
digits before they are added that no sum of them needs rounding: then every order gives the same.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from acefraud.support.arrays import BoolArray, FloatArray

UNIT = 2.0**-26
"""Multiples of this add up exactly as long as the sum of their magnitudes stays below 2^27."""
_WIDE, _NARROW = 52, 23
"""Binary digits of whole numbers whose sums float64 and float32 hold: one less than they have, because rounding them to
whole numbers may add to a sum."""
_SMALL = 2**18
"""Cells of a matrix that is multiplied in float64."""
_BLOCK = 512
"""Rows of a larger matrix that are multiplied together."""
_HALF = 15
"""Binary digits of each half of a number: added up over a block, it keeps within `_NARROW`."""


def cut(numbers: npt.ArrayLike, unit: float = UNIT) -> FloatArray:
    """Each number as the nearest multiple of a unit.

    >>> cut([0.3], unit=0.25).tolist()
    [0.25]
    """
    return np.rint(np.asarray(numbers) * (1 / unit)) * unit


def unit_for(total: float, digits: int) -> float:
    """A power of two that is so small that numbers up to `total` have at least so many binary digits, or one less.

    >>> unit_for(100.0, 24) == 2.0 ** (7 - 24), unit_for(0.0, 24)
    (True, 1.0)
    """
    return math.ldexp(1.0, math.frexp(total)[1] - digits) if total else 1.0


class MaskProducts:
    """Products of a matrix of masks with vectors.

    A small matrix is multiplied in float64, which takes the fewest calls. A large one is held in float32, half the
    memory to walk through, and numbers are cut into two halves that it can add up exactly.

    >>> products = MaskProducts(np.array([[True, False], [True, True]]))
    >>> products.by_row(np.array([0.5, 0.25])).tolist(), products.by_column(np.array([1.0, 2.0])).tolist()
    ([0.5, 0.75], [3.0, 2.0])
    """

    def __init__(self, masks: BoolArray) -> None:
        self._rows, self._columns = masks.shape
        self._small = masks.astype(np.float64) if masks.size <= _SMALL else np.empty(0)
        if masks.size > _SMALL:
            blocks = -(-self._rows // _BLOCK)
            padded = np.zeros((blocks * _BLOCK, self._columns), dtype=np.float32)
            padded[: self._rows] = masks
            self._blocks = padded.reshape(blocks, _BLOCK, self._columns)

    def by_row(self, weights: FloatArray) -> FloatArray:
        """For each row the sum of the weights of its columns."""
        total = float(np.abs(weights).sum())
        if self._small.ndim == 2:
            return cut(weights, unit_for(total, _WIDE)) @ self._small.T
        unit = unit_for(total, _NARROW)
        finer = _NARROW - 1 - self._columns.bit_length()
        high = np.rint(weights * (1 / unit))
        low = np.rint((weights - high * unit) * (2.0**finer / unit))
        halves = np.stack([high, low], axis=1).astype(np.float32)
        sums = np.matmul(self._blocks, halves).reshape(-1, 2)[: self._rows].astype(np.float64)
        sums[:, 0] += sums[:, 1] * 2.0**-finer
        found: FloatArray = sums[:, 0] * unit
        return found

    def by_column(self, numbers: FloatArray) -> FloatArray:
        """For each column the sum of the numbers of its rows."""
        if self._small.ndim == 2:
            return cut(numbers, unit_for(float(np.abs(numbers).sum()), _WIDE)) @ self._small
        unit = unit_for(float(np.abs(numbers).max()), 2 * _HALF)
        halves = np.zeros((2, len(self._blocks) * _BLOCK))
        low, high = halves
        np.rint(numbers * (1 / unit), out=low[: self._rows])
        np.rint(low * 2.0**-_HALF, out=high)
        low -= high * 2.0**_HALF
        parts = halves.astype(np.float32).reshape(2, -1, _BLOCK).swapaxes(0, 1)
        low_sum, high_sum = np.matmul(parts, self._blocks).sum(axis=0, dtype=np.float64)
        found: FloatArray = (low_sum + high_sum * 2.0**_HALF) * unit
        return found


def solve(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """The solution of linear equations with a positive definite matrix, by elimination in a fixed order.

    >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    rows = np.column_stack([matrix, vector])
    for at in range(len(rows)):
        rows[at] /= rows[at, at]
        others = rows[:, at].copy()
        others[at] = 0.0
        rows -= others[:, None] * rows[at]
    solution: FloatArray = rows[:, -1]
    return solution
