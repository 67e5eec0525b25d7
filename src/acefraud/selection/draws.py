"""Draws that depend on nothing but the seed, the transaction, the revision and the bullet.

A draw is a function of these four, not of a place in a sequence: bullets that cannot win need no draw, many
transactions can be drawn for at once, and whichever way a selection is computed, its draws are the same.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_12, _27, _30, _31 = (np.uint64(bits) for bits in (12, 27, 30, 31))

AT_ONCE = 4
"""Rounds that are computed together for a few draws: one in four is turned down, and a round costs its calls."""
FEW = 1024


def key_for(seed: int, transaction: str, revision: int) -> np.uint64:
    """What the draws of one selection start from.

    >>> int(key_for(0, "t1", 3)) == int(key_for(0, "t1", 3)) != int(key_for(0, "t1", 4))
    True
    """
    digest = hashlib.sha256(f"{seed}\x00{transaction}\x00{revision}".encode()).digest()
    return np.uint64(int.from_bytes(digest[:8], "big"))


@dataclass(frozen=True, slots=True)
class Shapes:
    """The parameters of many Beta distributions, with what a draw needs to know of them worked out beforehand.

    >>> Shapes.of(np.array([4.0]), np.array([2.0])).take(np.array([0])).low
    array([2.])
    """

    a: Column
    b: Column
    low: Column
    high: Column
    both: Column
    rate: Column
    steep: Column
    lift: Column

    @classmethod
    def of(cls, a: Column, b: Column) -> Shapes:
        """Of parameters that are at least 1 each."""
        low, high, both = np.minimum(a, b), np.maximum(a, b), a + b
        inner = 2 * low * high - both  # 0 where both are 1, which is drawn in another way
        rate = np.sqrt((both - 2) / np.where(inner > 0, inner, 1))
        steep = low + 1 / np.where(rate > 0, rate, 1)
        return cls(a, b, low, high, both, rate, steep, both * np.log(both) - np.log(4))

    @property
    def expected(self) -> Column:
        """What is expected of a draw from each."""
        return self.a / self.both

    def take(self, rows: npt.NDArray[np.int64]) -> Shapes:
        """Some of them."""
        return Shapes(
            self.a[rows],
            self.b[rows],
            self.low[rows],
            self.high[rows],
            self.both[rows],
            self.rate[rows],
            self.steep[rows],
            self.lift[rows],
        )


def beta(keys: Keys, shapes: Shapes) -> Column:
    """One draw from each Beta distribution. ``keys`` tell the draws apart.

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


def uniform(keys: Keys, first: int, count: int) -> Column:
    """Numbers above 0 and below 1, a row for each turn and a column for each key: the finalizer of SplitMix64."""
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


def _by_inversion(keys: Keys, a: Column, b: Column) -> Column:
    u = uniform(keys, 0, 1)[0]
    drawn: Column = np.where(b == 1, u ** (1 / a), 1 - u ** (1 / b))
    return drawn


def _attempts(keys: Keys, shapes: Shapes, turn: int, together: int) -> tuple[Column, npt.NDArray[np.bool_]]:
    """Some rounds: what is drawn by the first that may draw, and whether any may."""
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
