"""Figures that selection needs of each bullet at one base rate, computed once per table, and random draws from them.

Draws are a function of the seed, the transaction, the revision and the bullet. They do not depend on a position in a
sequence. So many transactions can be drawn for at once, and a decision can be replayed however it was computed.

A draw is what `exact_math` makes of it, rounded. The functions of numpy are many times as fast, but their last bits
depend on the processor. So numpy comes first, and only what lies so near to a rounding edge, or to the edge of being
accepted, that these bits could tip it is computed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from acefraud.core.bullet import Source, Status, balanced_precision
from acefraud.core.bullet_table import STATUSES, VERDICTS, BulletTable, Columns, RowSet
from acefraud.core.transaction import Verdict
from acefraud.roles.embedded.agent import weights_in
from acefraud.support.arrays import BoolArray, FloatArray, IntArray
from acefraud.support.exact_math import exp_of, log, log_of

Keys = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_12, _27, _30, _31 = (np.uint64(bits) for bits in (12, 27, 30, 31))

AT_ONCE = 4
"""Attempts that are computed together for a few draws: one in four is rejected, and each attempt costs numpy calls."""
FEW = 1024
_STEPS_OF_DRAWS = 2.0**28
_ERROR = 2.0**-49
"""What logarithms and powers of numpy, and those of `exact_math`, may differ by: eight units in the last place."""
Function = Callable[[FloatArray], FloatArray]


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

    __slots__ = ("_table", "a", "b", "both", "doubt", "high", "lift", "low", "rate", "steep")

    def __init__(self, table: FloatArray) -> None:
        self._table = table
        self.a, self.b, self.low, self.high, self.both, self.rate, self.steep, self.lift, self.doubt = table

    @classmethod
    def of(cls, a: FloatArray, b: FloatArray) -> BetaShapes:
        """From parameters of 1 or more."""
        low, high, both = np.minimum(a, b), np.maximum(a, b), a + b
        outer, inner = both - 2, 2 * low * high - both  # 0 where both are 1
        rate = np.sqrt(np.divide(outer, inner, out=np.ones(both.shape), where=(outer > 0) & (inner > 0)))
        steep = low + 1 / rate
        logs = log_of(both)
        # In units of `_ERROR` the margin of an attempt is off by no more than 47 steep, for v, + both * (45 + 42 + 1.2
        # logs), for the logarithm of high + w, which is at most logs + 37, + 121 for the last logarithm + 0.4 times the
        # size of these terms, for the roundings of their sum.
        doubt = _ERROR * (steep + both) * (250 + 2 * logs)
        return cls(np.stack([a, b, low, high, both, rate, steep, both * logs - log(4.0), doubt]))

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


def _attempts(keys: Keys, shapes: BetaShapes, turn: int, together: int) -> tuple[FloatArray, BoolArray]:
    """The first accepted of some attempts for each key, and whether there is one."""
    numbers = uniform(keys, 2 * turn, 2 * together)
    first, second = numbers[::2], numbers[1::2]
    drawn, margin = _attempt(first, second, shapes, np.exp, np.log)
    near = np.abs(margin) <= shapes.doubt
    if np.count_nonzero(near):
        some = shapes.take(np.nonzero(near)[1])
        margin[near] = _attempt(first[near], second[near], some, exp_of, log_of)[1]
    accepted = margin >= 0
    which, each = accepted.argmax(axis=0), np.arange(len(keys))

    def exactly(some: IntArray) -> FloatArray:
        at = which[some], some
        return _attempt(first[at], second[at], shapes.take(some), exp_of, log_of)[0]

    return _rounded(drawn[which, each], exactly), accepted[which, each]


def _attempt(
    first: FloatArray, second: FloatArray, shapes: BetaShapes, exp: Function, log: Function
) -> tuple[FloatArray, FloatArray]:
    """Draws from two uniform numbers each, and how far each is accepted: at 0 or more.

    The rate is at most 1, so v is at most 37 in size, and its error at most 42 times `_ERROR`. That of w, as a part of
    it, is at most 44 times, and that of a draw a quarter of it, for it is w / (high + w) or the rest of 1. The power
    that the inversion takes is at most 1, and its error as large as that of w.
    """
    v = shapes.rate * log(first / (1 - first))
    w = shapes.low * exp(v)
    under = shapes.high + w
    margin = shapes.steep * v + shapes.lift - shapes.both * log(under) - log(first * first * second)
    drawn = np.where(shapes.a == shapes.low, w, shapes.high) / under
    if np.count_nonzero(plain := shapes.low == 1):  # faster than any()
        power = exp(log(first) / shapes.high)
        drawn = np.where(plain, np.where(shapes.b == 1, power, 1 - power), drawn)
        margin = np.where(plain, np.inf, margin)
    return drawn, margin


def _rounded(drawn: FloatArray, exactly: Callable[[IntArray], FloatArray]) -> FloatArray:
    """Draws rounded down to whole steps. Those so near to an edge that an error could tip them are made `exactly`."""
    most = 100 * _ERROR * _STEPS_OF_DRAWS
    rest, steps = np.modf(drawn * _STEPS_OF_DRAWS + most)
    near = rest <= 2 * most
    if np.count_nonzero(near):
        some = np.flatnonzero(near)
        steps[some] = np.floor(exactly(some) * _STEPS_OF_DRAWS)
    steps /= _STEPS_OF_DRAWS
    return steps


RAREST = 1e-6
"""A base rate is kept this far from 0 and from 1."""


@dataclass(frozen=True)
class BulletStats:
    """One entry per bullet: what its draws start from, its record, and by how much it moves a decision."""

    keys: Keys
    merits: FloatArray
    success: FloatArray
    weights: FloatArray

    @cached_property
    def strength(self) -> FloatArray:
        """How far each moves a decision, in either direction."""
        return np.abs(self.weights)

    @cached_property
    def shapes(self) -> BetaShapes:
        """The distributions that draws come from: Beta(for + 1, against + 1)."""
        return BetaShapes.of(self.merits[:, 0] + 1, self.merits[:, 1] + 1)


def stats_of(table: BulletTable, base_rate: float) -> BulletStats:
    """The figures of all bullets."""

    def compute() -> BulletStats:
        merits = merits_in(table.columns, base_rate)
        keys = np.ascontiguousarray(table.columns["key"])
        return BulletStats(keys, merits, success_of(merits), weights_in(table.columns, base_rate))

    return table.cached(("stats", base_rate), compute)


def merits_in(columns: Columns, base_rate: float) -> FloatArray:
    """For and against each bullet: two columns of counts.

    Where fraud and legitimate cases are equally common these are the helpful and harmful decisions of the ACE system.
    The rarer fraud is, the more they give way to the bullet's own record, counted as if both were equally common: at
    1 % fraud nearly every decision is right whatever a bullet said, but one that is right one time in five is very
    good.
    """
    base = min(max(base_rate, RAREST), 1 - RAREST)
    balance = 4 * base * (1 - base)
    support = columns["shown_support"] + columns["support"]
    fraud = balanced_precision(columns["shown_frauds"] + columns["frauds"], support, base)
    right = np.where(columns["argues"] == VERDICTS.index(Verdict.DECLINE), fraud, 1 - fraud)
    own = np.where((columns["argues"] == 0) | (support == 0), 0.0, (1 - balance) * support)
    return np.column_stack(
        [balance * columns["helpful"] + own * right, balance * columns["harmful"] + own * (1 - right)]
    )


def success_of(merits: FloatArray) -> FloatArray:
    """The share that speaks for each bullet; 0.5 while nothing is known."""
    total = merits.sum(axis=1)
    return np.where(total > 0, merits[:, 0] / np.where(total > 0, total, 1), 0.5)


def good_in_use(
    table: BulletTable, node: int | None, source: Source | None, base_rate: float, threshold: float
) -> RowSet:
    """The rows of a node in use with a record that is good enough. Pinned bullets always are."""

    def compute() -> RowSet:
        good: BoolArray = stats_of(table, base_rate).success >= threshold
        good |= table.columns["status"] == STATUSES.index(Status.PINNED)
        return RowSet(good & table.in_use(node, source).mask)

    return table.cached(("good", node, source, threshold, base_rate), compute)
