"""What can be said of products of vectors without looking at them: bounds by how far each leans to a common axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acefraud.core.roles import Vectors

Column = npt.NDArray[np.float64]
Bins = npt.NDArray[np.uint8]

BINS = 64
ROUNDING = 1e-5
"""No cosine of two vectors in single precision is further from the true one."""

_EDGES = np.arange(BINS + 1) * (2 / BINS) - 1
_LOW, _HIGH = _EDGES[:-1] - ROUNDING, _EDGES[1:] + ROUNDING
_ACROSS = np.sqrt(1 - np.where((_LOW < 0) & (_HIGH > 0), 0.0, np.minimum(np.abs(_LOW), np.abs(_HIGH)).clip(0, 1)) ** 2)
"""How much of a vector of length one in each bin lies across the axis, at most."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A direction that most vectors have in common."""

    direction: Vectors

    @classmethod
    def through(cls, vectors: Vectors) -> Axis:
        """Through the middle of these vectors."""
        middle = vectors.mean(axis=0, dtype=np.float64)
        return cls((middle / max(float(np.linalg.norm(middle)), 1e-9)).astype(np.float32))

    def bins(self, vectors: Vectors) -> Bins:
        """In which of the equal parts of -1 to 1 the cosine of each with the axis lies."""
        places = np.clip((np.vecdot(vectors, self.direction) + 1) * (BINS / 2), 0, BINS - 1)
        bins: Bins = places.astype(np.uint8)
        return bins

    def least(self, others: Column) -> Column:
        """A row for each of the others, a column for each bin: what the product with a vector in it is at least.

        Split along the axis and across it, a product is that of the parts along, give or take that of the lengths
        across.
        """
        direction = self.direction.astype(np.float64)
        direction /= max(float(np.linalg.norm(direction)), 1e-9)
        along = (others @ direction)[:, None]
        across = np.linalg.norm(others - along * direction, axis=1, keepdims=True) + ROUNDING
        least: Column = np.minimum(_LOW * along, _HIGH * along) - _ACROSS * across - ROUNDING
        return least
