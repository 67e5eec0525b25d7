"""Figures that selection needs of each bullet at one base rate, computed once per table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from acefraud.core.bullet import Source, Status, balanced_precision
from acefraud.core.bullet_table import STATUSES, VERDICTS, BulletTable, Columns, RowSet
from acefraud.core.transaction import Verdict
from acefraud.roles.embedded.agent import weights_in
from acefraud.selection.draws import BetaShapes, Keys
from acefraud.support.arrays import BoolArray, FloatArray

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
