"""The only source of randomness in the world."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from acefraud.errors import ConfigurationError
from acefraud.support.exact_math import exp

_BATCH = 4096
_FINE = 2.0**30
"""Steps between 0 and 1 to which normal numbers are rounded: the last bit of numpy's depends on the processor."""

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def _one_by_one(draw: Callable[[int], npt.NDArray[np.float64]]) -> Iterator[float]:
    while True:
        yield from draw(_BATCH).tolist()


class Dice:
    """Seeded draws. Streams of one seed are independent, so new wording never changes the facts of a seed.

    Single draws from numpy are slow, so uniform and normal numbers are fetched in batches.
    """

    def __init__(self, seed: int, stream: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ConfigurationError(f"seed must be a whole number of at least 0, got {seed!r}")
        self._rng = np.random.Generator(np.random.PCG64([seed, stream]))
        self._uniforms = _one_by_one(self._rng.random)
        self._normals = _one_by_one(lambda count: np.rint(self._rng.standard_normal(count) * _FINE) / _FINE)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A number between two bounds."""
        return low + (high - low) * next(self._uniforms)

    def normal(self) -> float:
        """A standard normal number."""
        return next(self._normals)

    def around(self, median: float, spread: float) -> float:
        """A positive number, log-normal around its median."""
        return median * exp(spread * self.normal())

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens."""
        return self.uniform() < probability

    def whole(self, low: int, high: int) -> int:
        """A whole number from low up to but not including high."""
        return low + int(self.uniform() * (high - low))

    def count(self, mean: float) -> int:
        """How often something happened; people differ in their rate, so the tail is longer than Poisson's."""
        if mean <= 0:
            return 0
        return int(self._rng.poisson(self.around(mean * 0.85, 0.57)))

    def pick(self, options: Sequence[T]) -> T:
        """One of several, all alike."""
        return options[int(self.uniform() * len(options))]

    def weighted(self, weights: Mapping[K, float]) -> K:
        """One of several, by weight."""
        left = self.uniform() * sum(weights.values())
        for option, weight in weights.items():
            left -= weight
            if left < 0:
                return option
        return option

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in another order."""
        order = list(items)
        for index in range(len(order) - 1, 0, -1):
            other = self.whole(0, index + 1)
            order[index], order[other] = order[other], order[index]
        return order
