"""Random draws that are a function of the seed, the transaction, the revision and the bullet.

They do not depend on a position in a sequence. So many transactions can be drawn for at once, and a decision can be
replayed however it was computed.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from acefraud.support.arrays import FloatArray

Keys = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_12, _27, _30, _31 = (np.uint64(bits) for bits in (12, 27, 30, 31))

AT_ONCE = 4
"""Attempts that are computed together for a few draws: one in four is rejected, and each attempt costs numpy calls."""
FEW = 1024


def key_for(seed: int, transaction: str, revision: int) -> np.uint64:
    """The key that the draws of one selection start from.

    >>> int(key_for(0, "t1", 3)) == int(key_for(0, "t1", 3)) != int(key_for(0, "t1", 4))
    True
    """
    digest = hashlib.sha256(f"{seed}\x00{transaction}\x00{revision}".encode()).digest()
    return np.uint64(int.from_bytes(digest[:8], "big"))


class BetaShapes:
    """The parameters of many Beta distributions, and what a draw needs of them.

    >>> BetaShapes.of(np.array([4.0]), np.array([2.0])).take(np.array([0])).low
    array([2.])
    """

    __slots__ = ("_table", "a", "b", "both", "high", "lift", "low", "rate", "steep")

    def __init__(self, table: FloatArray) -> None:
        self._table = table
        self.a, self.b, self.low, self.high, self.both, self.rate, self.steep, self.lift = table

    @classmethod
    def of(cls, a: FloatArray, b: FloatArray) -> BetaShapes:
        """From parameters of 1 or more."""
        low, high, both = np.minimum(a, b), np.maximum(a, b), a + b
        inner = 2 * low * high - both  # 0 where both are 1, which is drawn in another way
        rate = np.sqrt((both - 2) / np.where(inner > 0, inner, 1))
        steep = low + 1 / np.where(rate > 0, rate, 1)
        return cls(np.stack([a, b, low, high, both, rate, steep, both * np.log(both) - np.log(4)]))

    @property
    def expected(self) -> FloatArray:
        """The expected value of each."""
        expected: FloatArray = self.a / self.both
        return expected

    def take(self, rows: npt.NDArray[np.int64]) -> BetaShapes:
        """Some of them."""
        return BetaShapes(self._table[:, rows])


def beta(keys: Keys, shapes: BetaShapes) -> FloatArray:
    """One draw from each Beta distribution. The keys take the place of a random state.

    By Cheng's rejection method BB (Communications of the ACM 21, 1978); where a or b is 1, by inversion.
    """
    together = AT_ONCE if len(keys) <= FEW else 1
    drawn, accepted = _attempts(keys, shapes, 0, together)
    turn = together
    while not accepted.all():
        left = np.flatnonzero(~accepted)
        again, fine = _attempts(keys[left], shapes.take(left), turn, together)
        drawn[left[fine]] = again[fine]
        accepted[left[fine]] = True
        turn += together
    plain = shapes.low == 1
    if plain.any():
        drawn[plain] = _by_inversion(keys[plain], shapes.a[plain], shapes.b[plain])
    return drawn


def uniform(keys: Keys, first: int, count: int) -> FloatArray:
    """Numbers between 0 and 1, exclusive: a row for each turn, a column for each key (finalizer of SplitMix64)."""
    steps = _STEPS[first : first + count] if first + count <= len(_STEPS) else _steps(first, count)
    z = keys + steps[:, None]
    z ^= z >> _30
    z *= _MIX_1
    z ^= z >> _27
    z *= _MIX_2
    z ^= z >> _31
    z >>= _12
    return (z.astype(np.float64) + 0.5) * 2.0**-52


def _steps(first: int, count: int) -> Keys:
    return _STEP * np.arange(first + 1, first + count + 1, dtype=np.uint64)


_STEPS = _steps(0, 64)


def _by_inversion(keys: Keys, a: FloatArray, b: FloatArray) -> FloatArray:
    u = uniform(keys, 0, 1)[0]
    drawn: FloatArray = np.where(b == 1, u ** (1 / a), 1 - u ** (1 / b))
    return drawn


def _attempts(keys: Keys, shapes: BetaShapes, turn: int, together: int) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The first accepted of some attempts for each key, and whether there is one."""
    numbers = uniform(keys, 2 * turn, 2 * together)
    first, second = numbers[::2], numbers[1::2]
    v = shapes.rate * np.log(first / (1 - first))
    w = shapes.low * np.exp(v)
    under = shapes.high + w
    accepted = shapes.steep * v + shapes.lift - shapes.both * np.log(under) >= np.log(first * first * second)
    accepted |= shapes.low == 1
    which = accepted.argmax(axis=0)
    each = np.arange(len(keys))
    w, under = w[which, each], under[which, each]
    return np.where(shapes.a == shapes.low, w, shapes.high) / under, accepted[which, each]
